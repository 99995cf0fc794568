#include "backend/daemon/guests.hh"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/gate/gate_messages.hh"
#include "backend/identity/peer_groups.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/schemes.hh"
#include "transport/resumable/stream.hh"
#include "transport/tls/handed_over.hh"
#include "wire/checkpoint.hh"
#include "wire/features.hh"
#include "wire/monitor.hh"

namespace outboard::backend {
namespace {

/// How long a guest may take to read its answer, and how much it may still send meanwhile. A socket that is
/// closed with unread bytes resets the connection, and the answer would be lost on its way.
constexpr std::chrono::seconds parting_time{1};
constexpr std::size_t parting_bytes = 256u << 10;

/// What a session's environment may take, names and values together. The variables that drivers read are
/// short; the daemon keeps them as long as the session lives, and shows them in lists.
constexpr std::size_t most_environment = 16u << 10;

/// Says why the environment is refused; "" if it is not. It is not cut, because a program would then compute
/// under other settings than its user chose.
std::string environment_problem(const decltype(wire::hello::environment)& environment) {
  std::size_t bytes = 0;
  const std::pair<std::string, std::string>* longest = nullptr;
  for (const auto& variable : environment) {
    bytes += variable.first.size() + variable.second.size();
    if (!longest || variable.second.size() > longest->second.size()) longest = &variable;
  }
  if (bytes <= most_environment) return {};
  return fmt::format("the hello's variables take {} bytes, the limit is {}; shorten them, {} above all",
                     bytes, most_environment, longest->first);
}

wire::nonce fresh_challenge() {
  wire::nonce challenge;
  // Below 256 bytes getrandom(2) is neither short nor interrupted.
  CHECK(::getrandom(challenge.data(), challenge.size(), 0) == static_cast<ssize_t>(challenge.size()));
  return challenge;
}

/// Names the other end, without the port, which differs between two connections of one peer.
std::string peer_of(const transport::connection& connection) {
  if (connection.what().peer_identity) {
    const auto peer = connection.peer();
    return peer.ok() ? fmt::format("user {}", peer->user) : "";
  }
  const std::string name = connection.describe();
  return name.substr(0, name.rfind(':'));
}

/// Returns the user and process at the other end of a local socket, as the kernel reports them.
std::optional<transport::peer_identity> known_peer(const transport::connection& connection) {
  if (!connection.what().peer_identity) return std::nullopt;
  const auto peer = connection.peer();
  return peer.ok() ? std::optional(*peer) : std::nullopt;
}

/// A user's name on this machine.
std::string name_of(std::uint32_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry ? entry->pw_name : fmt::format("uid {}", user);
}

constexpr std::string_view anyone = "anyone";

/// The kernel reports this user (overflowuid, "nobody") for all users of another user name space who have no
/// number here.
constexpr std::string_view user_without_number = "user 65534";

/// The kernel vouches for the user of a local socket. A token names other clients, once they have proven it.
credential credential_of(const transport::connection& connection,
                         const std::optional<transport::peer_identity>& known) {
  credential who;
  who.name = connection.what().peer_identity ? peer_of(connection) : std::string(anyone);
  if (known) who.user = known->user;
  return who;
}

/// The right without which a hello of this purpose is refused.
right needed_for(wire::purpose wanted) {
  if (wanted == wire::purpose_checkpoint) return right::suspend;
  if (wanted == wire::purpose_monitor) return right::list;
  return right::run;
}

}  // namespace

struct guests::guest {
  guest(guest_id i, std::string where, std::string s, std::string f, std::string p, credential c,
        std::optional<transport::peer_identity> known, const token_finder* tokens, std::uint64_t features)
      : id(i),
        source(std::move(where)),
        scheme(std::move(s)),
        from(std::move(f)),
        peer(std::move(p)),
        who(std::move(c)),
        vouched(known),
        shake(tokens, fresh_challenge(), features) {}

  guest_id id;
  std::string source, scheme, from, peer;
  credential who;
  std::optional<transport::peer_identity> vouched;  ///< as the kernel reports it
  handshake shake;
  unique_fd socket;
  event_loop::id watch = 0, timer = 0;
  bool leaving = false;      ///< it has its answer, and what it sends is ignored
  shared_answer last_words;  ///< nothing: all is sent
  wire::proof proof{};       ///< sent in place of the last bytes, if `ends_with_proof`
  bool ends_with_proof = false;
  std::size_t sent = 0;  ///< of last_words
  std::size_t ignored = 0;
  // Behind the gate:
  bool encrypted = false;
  unique_fd client;              ///< its own socket, for the process that serves it; `socket` is a local one
  std::vector<std::byte> facts;  ///< channel_facts with their length, as they come
  transport::tls::secret key{};  ///< of the inner connection
  std::string certificate;       ///< "certificate CN=alice"
};

guests::guests(event_loop& loop, guest_rules rules, begin_session begin, answer_question answer)
    : loop_(loop),
      rules_(std::move(rules)),
      begin_session_(std::move(begin)),
      answer_question_(std::move(answer)),
      sources_(rules_.limits.unauthenticated),
      log_(loop) {
  find_token_ = [this](const wire::token_id& id) { return rules_.tokens->find(id); };
}

guests::~guests() {
  while (!guests_.empty()) erase(guests_.begin()->first);
}

std::string guests::peer_problem(const credential& who) const {
  if (!who.user) return {};
  const bool allowed = rules_.allowed.any || is_local_administrator(who) ||
                       std::ranges::find(rules_.allowed.users, *who.user) != rules_.allowed.users.end() ||
                       rules_.identities->has_row_for(*who.user, who.groups);
  return allowed ? "" : fmt::format("user {} may not use this socket (see allow_users)", *who.user);
}

void guests::change(const limit_settings& limits, const local_users& allowed) {
  rules_.limits = limits;
  rules_.allowed = allowed;
  sources_.set_most(limits.unauthenticated);
}

std::uint64_t guests::features_for(const transport::capabilities& can) const {
  std::uint64_t features = wire::feature_lane_uploads | wire::feature_build_files;
  if (can.passes_descriptors)
    return features | wire::feature_fine_grain | wire::feature_transfer_areas |
           (rules_.rings && can.same_host ? wire::feature_rings : 0);
  if (rules_.limits.linger_seconds != 0 && transport::may_resume(can)) features |= wire::feature_resume;
  if (rules_.image_recall) features |= wire::feature_image_recall;
  if (rules_.data_connections)
    features |= wire::feature_data_connections | (rules_.compression ? wire::feature_packed_pieces : 0);
  return features;
}

void guests::admit(std::unique_ptr<transport::connection> connection, const std::string& scheme) {
  const std::string from = connection->describe();
  std::string peer = peer_of(*connection);
  const std::uint64_t features = features_for(connection->what());
  const auto known = known_peer(*connection);
  const bool unknown_user = connection->what().peer_identity && !known;
  credential who = credential_of(*connection, known);
  auto socket = connection->detach();
  if (!socket.ok()) {
    log_.info(peer, "refused ", from, ": ", socket.error().message);
    ++refused_;
    return;
  }
  if (known) who.groups = peer_groups(socket->get());
  const std::string problem = unknown_user ? "the kernel does not say which user it is" : peer_problem(who);
  auto made =
      std::make_unique<guest>(next_++, "", scheme, from, std::move(peer), std::move(who), known,
                              rules_.tokens->asks(known.has_value()) ? &find_token_ : nullptr, features);
  made->socket = std::move(*socket);
  const std::string peer_name = made->peer;
  const int named_by = made->socket.get();
  greet(enter(std::move(made), named_by, peer_name), problem);
}

void guests::admit_behind_gate(gate_arrival&& arrival, const std::string& scheme) {
  std::string peer = arrival.from.substr(0, arrival.from.rfind(':'));
  auto made = std::make_unique<guest>(next_++, "", scheme, arrival.from, peer,
                                      credential{.name = std::string(anyone), .user = {}, .groups = {}},
                                      std::nullopt, rules_.tokens->asks(false) ? &find_token_ : nullptr,
                                      features_for(transport::capabilities{.detachable = true}));
  made->encrypted = true;
  made->socket = std::move(arrival.local);
  made->client = std::move(arrival.client);
  const int named_by = made->client.get();
  greet(enter(std::move(made), named_by, peer), "");
}

/// Finds room for a guest. The socket says which source it comes from.
guests::guest& guests::enter(std::unique_ptr<guest> made, int named_by, const std::string& peer) {
  made->source = source_of(named_by, peer);
  if (const auto in_the_way = sources_.in_the_way_of(made->source))
    drop(*guests_.at(in_the_way->guest), in_the_way->why);
  const guest_id id = made->id;
  guest& g = *guests_.emplace(id, std::move(made)).first->second;
  sources_.enter(g.source, id);
  return g;
}

void guests::greet(guest& g, const std::string& problem) {
  const guest_id id = g.id;
  if (const status watched = watch(g); !watched.ok())
    return refuse(g, {wire::refusal_reason::busy, watched.error().message});
  g.timer = loop_.after(std::chrono::seconds(rules_.limits.hello_seconds), [this, id] {
    drop(*guests_.at(id), fmt::format("it sent no hello within {} s", rules_.limits.hello_seconds));
  });
  if (!problem.empty()) return refuse(g, {wire::refusal_reason::token, problem});
  const std::vector<std::byte> greeting = g.shake.greeting();
  // The first bytes of a connection fit into any socket's buffer.
  if (::send(g.socket.get(), greeting.data(), greeting.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(greeting.size())) {
    drop(g, "it disconnected before it was greeted");
  }
}

status guests::watch(guest& g) {
  auto watch = loop_.watch(g.socket.get(), EPOLLIN,
                           [this, id = g.id](std::uint32_t events) { on_events(id, events); });
  if (!watch.ok()) return std::move(watch).error();
  g.watch = *watch;
  return {};
}

void guests::on_events(guest_id id, std::uint32_t events) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  guest& g = *at->second;
  if (!g.leaving) return read_hello(g);
  if ((events & EPOLLOUT) != 0 && g.last_words) return write_answer(g);
  read_rest(g);
}

/// Reads what the gate says of an encrypted connection before the client's first byte. Returns false if there
/// is more to come, or if the guest is gone.
bool guests::read_facts(guest& g) {
  constexpr std::size_t length_size = sizeof(std::uint32_t);
  for (;;) {
    std::size_t wanted = length_size;
    if (g.facts.size() >= length_size) {
      wire::reader length(std::span(g.facts).first(length_size));
      wanted += std::min(length.get<std::uint32_t>(), most_channel_facts);
      if (g.facts.size() == wanted) break;
    }
    const std::size_t have = g.facts.size();
    g.facts.resize(wanted);
    const ssize_t got = ::recv(g.socket.get(), g.facts.data() + have, wanted - have, MSG_DONTWAIT);
    g.facts.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) return erase(g.id), false;  // the gate has said why
  }
  wire::reader r(std::span(g.facts).subspan(length_size));
  const auto facts = marshal::take_body<channel_facts>(r);
  if (!r.finished() || facts.inner_key.size() != g.key.size()) return drop(g, "the gate failed"), false;
  std::memcpy(g.key.data(), facts.inner_key.data(), g.key.size());
  g.shake.bind(std::as_bytes(std::span(facts.binding)));
  g.certificate = facts.certificate;
  if (!g.certificate.empty()) {
    g.who.name = g.certificate;
    g.shake.waive_token();
  }
  g.facts.assign(1, std::byte{});  // read, and not to be kept
  return true;
}

void guests::read_hello(guest& g) {
  if (g.encrypted && g.facts.size() != 1 && !read_facts(g)) return;
  while (true) {
    const auto wanted = g.shake.wanted();
    const ssize_t got = ::recv(g.socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return drop(g, errno_text(errno));
    if (got == 0) return gone(g);
    switch (g.shake.advance(static_cast<std::size_t>(got))) {
      case handshake::state::wants_bytes:
        continue;
      case handshake::state::refused:
        return refuse(g, g.shake.refusal());
      case handshake::state::accepted:
        return finish_hello(g);
    }
  }
}

void guests::finish_hello(guest& g) {
  const wire::token_id& token = g.shake.hello().token;
  if (g.shake.seal() != wire::seal{}) {
    if (const std::string problem = rules_.tokens->problem_of(token, std::time(nullptr)); !problem.empty())
      return refuse(g, {wire::refusal_reason::token, problem});
    if (!g.vouched && g.certificate.empty()) g.who.name = rules_.tokens->identity_of(token);
  }
  if (const std::string problem = environment_problem(g.shake.hello().environment); !problem.empty())
    return refuse(g, {wire::refusal_reason::malformed, problem});
  const shared_terms terms = rules_.identities->terms_of(g.who);
  if (g.shake.hello().wanted == wire::purpose::admin) return answer_admin(g, terms);
  if (const right needed = needed_for(g.shake.hello().wanted); !terms->may.has(needed))
    return refuse_known(g, *terms, lacks_right(*terms, needed));
  loop_.forget(std::exchange(g.watch, 0));
  accepted_session session = session_of(g, terms);
  if (!session.connection)
    return refuse(g, {wire::refusal_reason::busy, "the server has no file descriptor left"});
  const auto refusal = begin_session_(std::move(session));
  if (refusal) return refuse_known(g, *terms, *refusal);
  erase(g.id);
}

accepted_session guests::session_of(guest& g, const shared_terms& terms) {
  wire::hello hello = std::move(g.shake.hello());
  // If the kernel knows the user, the client does not choose its name in lists and logs.
  if (g.vouched) hello.user = name_of(g.vouched->user);
  // What the daemon itself serves comes through the gate; a worker ends the encrypted connection itself.
  const bool of_daemon = g.encrypted && hello.wanted == wire::purpose_checkpoint;
  const std::string_view handed_over = of_daemon ? "unix" : traits_of(g.scheme).handed_over_as;
  accepted_session session{{},
                           std::string(handed_over.empty() ? std::string_view(g.scheme) : handed_over),
                           g.from,
                           g.peer,
                           terms->name,
                           g.who,
                           terms,
                           g.vouched ? g.vouched->process : -1,
                           std::move(hello),
                           {g.shake.challenge(), scope_of(terms->name, rules_.tokens->secret())},
                           g.shake.seal()};
  // The session gets a duplicate of the descriptor: ours still serves to send a refusal. If the client wants
  // rings, the worker turns the socket into them.
  unique_fd talks(::fcntl(g.socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!g.encrypted || of_daemon || !talks) {
    session.connection = std::move(talks);
    return session;
  }
  session.scheme = transport::tls::handed_over(g.scheme, g.key);
  session.connection = std::move(g.client);
  session.answers = std::move(talks);
  return session;
}

void guests::answer_admin(guest& g, const shared_terms& terms) {
  const auto answer = answer_question_({g.shake.hello(), g.who, terms, g.from});
  if (!answer.ok()) {
    const bool busy = answer.error().next == action::retry;
    return refuse(
        g, {busy ? wire::refusal_reason::busy : wire::refusal_reason::question, answer.error().message});
  }
  log::debug("answered the question \"", g.shake.hello().admin_question, "\" of ", g.from);
  // All askers share the answer but for the proof at its end.
  const std::span<const std::byte> payload = std::span(**answer).subspan(wire::header_size);
  g.proof = wire::proof_of(payload, g.shake.seal());
  g.ends_with_proof = true;
  leave(g, *answer);
}

void guests::refuse(guest& g, const wire::refusal& why) {
  log_.info(g.source, "refused ", g.from, ": ", why.message);
  ++refused_;
  leave(g,
        std::make_shared<const std::vector<std::byte>>(make_frame(wire::frame_kind::refusal, encode(why))));
}

/// A client that has proven who it is.
void guests::refuse_known(guest& g, const identity_terms& terms, const wire::refusal& why) {
  if (rules_.audit)
    rules_.audit->write_at_most({g.who.name, terms.name, g.from}, "was refused", "why", why.message);
  refuse(g, why);
}

void guests::leave(guest& g, shared_answer last_words) {
  const guest_id id = g.id;
  g.leaving = true;
  g.last_words = std::move(last_words);
  loop_.forget(g.timer);
  g.timer = loop_.after(parting_time, [this, id] { erase(id); });
  // A guest that cannot be watched gets what fits into its socket at once.
  if (g.watch == 0 && !watch(g).ok()) {
    (void)::send(g.socket.get(), g.last_words->data(), g.last_words->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return erase(id);
  }
  write_answer(g);
}

/// The bytes that come next and lie in a row.
std::span<const std::byte> guests::left_to_send(const guest& g) {
  const std::size_t shared = g.last_words->size() - (g.ends_with_proof ? g.proof.size() : 0);
  if (g.sent < shared) return std::span(*g.last_words).first(shared).subspan(g.sent);
  return std::span(g.proof).subspan(g.sent - shared);
}

void guests::write_answer(guest& g) {
  while (g.last_words && g.sent < g.last_words->size()) {
    const std::span<const std::byte> left = left_to_send(g);
    const ssize_t sent = ::send(g.socket.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return loop_.change(g.watch, EPOLLIN | EPOLLOUT);
    if (sent < 0) return erase(g.id);
    g.sent += static_cast<std::size_t>(sent);
  }
  g.last_words.reset();
  ::shutdown(g.socket.get(), SHUT_WR);
  loop_.change(g.watch, EPOLLIN);
}

void guests::read_rest(guest& g) {
  std::array<std::byte, 4096> nothing;
  while (g.ignored < parting_bytes) {
    const ssize_t got = ::recv(g.socket.get(), nothing.data(), nothing.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return erase(g.id);
    g.ignored += static_cast<std::size_t>(got);
  }
  erase(g.id);
}

void guests::drop(guest& g, std::string_view why) {
  // A guest that has its answer also has its line in the log.
  if (!g.leaving) {
    log_.info(g.source, "refused ", g.from, ": ", why);
    ++refused_;
  }
  erase(g.id);
}

/// Health checks and port scanners do this.
void guests::gone(guest& g) {
  log_.info(g.source, g.from, " disconnected without asking for anything");
  ++refused_;
  erase(g.id);
}

void guests::erase(guest_id id) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  loop_.forget(at->second->watch);
  loop_.forget(at->second->timer);
  sources_.leave(at->second->source, id);
  guests_.erase(at);
}

wire::refusal lacks_right(const identity_terms& who, right needed) {
  return {wire::refusal_reason::token,
          fmt::format("{} has no right to do this here: identity.rights is without \"{}\"; ask the server's "
                      "administrator",
                      who.name, word_of(needed))};
}

bool is_known(const std::string& identity) {
  return !identity.empty() && identity != anyone && identity != user_without_number;
}

}  // namespace outboard::backend
