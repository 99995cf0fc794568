#include "backend/daemon/guests.hh"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>

#include "backend/daemon/bounds/guest_sources.hh"
#include "backend/gate/gate_messages.hh"
#include "backend/identity/unix_names.hh"
#include "base/errno_text.hh"
#include "base/hex.hh"
#include "base/log.hh"
#include "base/log_fields.hh"
#include "base/random.hh"
#include "base/schemes.hh"
#include "transport/resumable/stream.hh"
#include "transport/tls/handed_over.hh"
#include "wire/checkpoint.hh"
#include "wire/features.hh"
#include "wire/make_frame.hh"

namespace outboard::backend {
namespace {

/// How long a guest that was answered may take to read it, and how much it may still send meanwhile: closing
/// with unread bytes would reset the connection and destroy the answer on its way.
constexpr std::chrono::seconds parting_time{1};
constexpr std::size_t parting_bytes = 256u << 10;

/// What a session's environment may take, names and values together. The variables that drivers read are
/// short; the daemon keeps them as long as the session lives, and shows them in lists.
constexpr std::size_t most_environment = 16u << 10;

/// Why an environment is refused; empty: it is not. It is not cut: a program would compute under other
/// settings than its user chose.
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

/// Of a local socket: who is at the other end by the kernel's word, or why it does not say.
std::optional<result<transport::peer_identity>> peer_by_kernel(const transport::connection& connection) {
  if (!connection.what().peer_identity) return std::nullopt;
  return connection.peer();
}

/// As this machine's own list has it: whoever asks a directory for names may wait for it, and all clients
/// with him.
std::string name_of_user(std::uint32_t user) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> list(std::fopen("/etc/passwd", "re"), std::fclose);
  std::array<char, 4096> text{};
  passwd entry{};
  passwd* found = nullptr;
  while (list && ::fgetpwent_r(list.get(), &entry, text.data(), text.size(), &found) == 0) {
    if (found->pw_uid == user) return found->pw_name;
  }
  return "uid " + std::to_string(user);
}

constexpr std::string_view anyone = "anyone";

/// For the kernel everybody of another user name space who has no number here (overflowuid; "nobody").
constexpr std::string_view user_without_number = "user 65534";

}  // namespace

struct guests::guest {
  guest(guest_id i, std::string s, std::string f, const token_finder* tokens, std::uint64_t features)
      : id(i),
        scheme(std::move(s)),
        from(std::move(f)),
        shake(tokens, random_value<wire::nonce>(), features) {}

  /// Who it is: the kernel vouches for the user and process of a local socket; others are named by the token
  /// that their hello proves, and until then could be anyone.
  void identify(const std::optional<result<transport::peer_identity>>& by_kernel) {
    if (!by_kernel) {
      peer = without_port(from);
      identity = anyone;
    } else if (by_kernel->ok()) {
      user = (*by_kernel)->user;
      groups = (*by_kernel)->groups;
      groups.push_back((*by_kernel)->group);
      process = (*by_kernel)->process;
      identity = peer = "user " + std::to_string(*user);
    }
  }

  /// By MUNGE. A certificate says more than a number of a user.
  void identify(const munge::claim& by) {
    if (certified) return;
    user = by.user;
    groups = {by.group};
    by_munge = true;
    identity = "user " + std::to_string(by.user);
  }

  guest_id id;
  std::string scheme, from, peer, identity;
  std::string source;  ///< guest_sources.hh
  std::int32_t process = -1;
  handshake shake;
  unique_fd socket;
  std::optional<std::uint32_t> user;
  std::vector<std::uint32_t> groups;
  bool by_munge = false;
  std::vector<std::string> also;  ///< further names of who shows a certificate
  event_loop::id watch = 0, timer = 0;
  bool leaving = false;      ///< nothing it sends matters any more
  shared_answer last_words;  ///< none: all is sent
  wire::proof proof{};       ///< sent in place of the last bytes of them, if `ends_with_proof`
  bool ends_with_proof = false;
  std::size_t sent = 0;  ///< of them
  std::size_t ignored = 0;
  // Behind the gate:
  bool encrypted = false;
  bool certified = false;        ///< it has shown a certificate, whose subject it is
  unique_fd client;              ///< its own socket, for who serves it; `socket` is a local one
  std::vector<std::byte> facts;  ///< channel_facts with their length, as they come
  bool facts_read = false;
  transport::tls::secret key{};  ///< of the inner connection
};

bool accepted_session::may_join(const std::string& of, const std::string& begun_by) const {
  return identity == of && (transport::tls::is_encrypted(scheme) || !transport::tls::is_encrypted(begun_by));
}

guests::guests(event_loop& loop, guest_rules rules, begin_session begin, answer_question answer)
    : loop_(loop),
      rules_(std::move(rules)),
      begin_session_(std::move(begin)),
      answer_question_(std::move(answer)),
      sources_(rules_.limits.unauthenticated),
      log_(loop) {
  find_token_ = [this](const wire::token_id& id) { return rules_.tokens->find(id); };
  read_credential_ = [this](const std::string& credential) {
    return munge::read_credential(rules_.munge.socket, credential);
  };
  find_shared_token_ = [this](const wire::token_id& id) { return rules_.tokens->find(id, true); };
}

guests::~guests() {
  while (!guests_.empty()) erase(guests_.begin()->first);
}

std::string guests::peer_problem(const result<transport::peer_identity>& peer) const {
  if (!peer.ok()) return peer.error().message;
  return may_come(peer->user)
             ? ""
             : "user " + std::to_string(peer->user) + " may not use this socket (see allow_users)";
}

bool guests::may_come(std::uint32_t user, bool by_munge) const {
  const bool is_host = !by_munge && (user == 0 || user == ::geteuid());
  return rules_.any_peer_user || is_host ||
         std::ranges::find(rules_.peer_users, user) != rules_.peer_users.end();
}

void guests::let_in(std::vector<std::uint32_t> users, bool any) {
  rules_.peer_users = std::move(users);
  rules_.any_peer_user = any;
}

std::uint64_t guests::features_for(const transport::capabilities& can) const {
  std::uint64_t features = wire::feature_lane_uploads | wire::feature_build_files | wire::feature_words |
                           wire::feature_failure_lines | wire::feature_profile | wire::feature_samples;
  if (can.passes_descriptors)
    return features | wire::feature_fine_grain | wire::feature_transfer_areas |
           (rules_.rings && can.same_host ? wire::feature_rings : 0);
  if (rules_.limits.linger_seconds != 0 && transport::may_resume(can)) features |= wire::feature_resume;
  if (rules_.image_recall) features |= wire::feature_image_recall;
  if (rules_.data_connections)
    features |= wire::feature_data_connections | (rules_.compression ? wire::feature_packed_pieces : 0);
  return features;
}

/// What checks a guest's token; null: none is asked for.
const token_finder* guests::tokens_for(bool vouched) const {
  if (!rules_.tokens->asks(vouched)) return nullptr;
  return vouched ? &find_shared_token_ : &find_token_;
}

void guests::ask_for_munge(guest& g) const {
  if (rules_.munge.on) g.shake.take_credentials(read_credential_);
}

void guests::admit(std::unique_ptr<transport::connection> connection, const std::string& scheme) {
  const auto by_kernel = peer_by_kernel(*connection);
  const std::string problem = by_kernel ? peer_problem(*by_kernel) : "";
  const std::string from = connection->describe();
  const std::uint64_t features = features_for(connection->what());
  auto socket = connection->detach();
  if (!socket.ok()) {
    rules_.audit.write_some(without_port(from), "refused",
                            {{"from", from}, {"reason", socket.error().message}});
    log_.info(without_port(from), "refused ", from, ": ", socket.error().message);
    ++refused_;
    return;
  }
  const bool vouched = by_kernel && by_kernel->ok();
  auto made = std::make_unique<guest>(next_++, scheme, from, tokens_for(vouched), features);
  made->identify(by_kernel);
  if (!by_kernel) ask_for_munge(*made);
  made->socket = std::move(*socket);
  const int named_by = made->socket.get();
  greet(enter(std::move(made), named_by), problem);
}

void guests::admit_behind_gate(gate_arrival&& arrival, const std::string& scheme) {
  auto made = std::make_unique<guest>(next_++, scheme, arrival.from, tokens_for(false),
                                      features_for(transport::capabilities{.detachable = true}));
  made->identify(std::nullopt);
  ask_for_munge(*made);
  made->encrypted = true;
  made->socket = std::move(arrival.local);
  made->client = std::move(arrival.client);
  const int named_by = made->client.get();
  greet(enter(std::move(made), named_by), "");
}

/// Finds room for a guest. The socket says which source it comes from.
guests::guest& guests::enter(std::unique_ptr<guest> made, int named_by) {
  made->source = source_of(named_by, made->peer.empty() ? without_port(made->from) : made->peer);
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
    drop(*guests_.at(id), "no hello within " + std::to_string(rules_.limits.hello_seconds) + " s");
  });
  if (!problem.empty()) return refuse(g, {wire::refusal_reason::token, problem});
  const std::vector<std::byte> greeting = g.shake.greeting();
  // The first bytes of a connection fit into any socket's buffer.
  if (::send(g.socket.get(), greeting.data(), greeting.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(greeting.size())) {
    drop(g, "it did not take the greeting");
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

/// What the gate says of an encrypted connection, before the client's first byte.
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
  if (!facts.certificate.empty()) {
    g.identity = facts.certificate;
    g.also = facts.also;
    g.certified = true;
    g.shake.waive_token();
  }
  g.facts = {};
  g.facts_read = true;
  return true;
}

void guests::read_hello(guest& g) {
  if (g.encrypted && !g.facts_read && !read_facts(g)) return;
  while (true) {
    const auto wanted = g.shake.wanted();
    const ssize_t got = ::recv(g.socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return drop(g, errno_text(errno));
    if (got == 0) return drop(g, "it left before its hello");
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
  if (g.shake.user()) {
    g.identify(*g.shake.user());
  } else if (g.shake.seal() != wire::seal{}) {
    const wire::token_id& token = g.shake.hello().token;
    if (const std::string problem = rules_.tokens->problem_of(token, std::time(nullptr)); !problem.empty())
      return refuse(g, {wire::refusal_reason::token, problem});
    if (!g.user && !g.certified) g.identity = rules_.tokens->identity_of(token);
  } else if (!g.user && !g.certified && rules_.tokens->asks(false)) {
    // The first token was made while it said its hello.
    return refuse(
        g, {wire::refusal_reason::token, "this server asks for a token since just now; connect again"});
  }
  // The configuration may have been read again while it said its hello.
  if (g.user && !may_come(*g.user, g.by_munge)) {
    return refuse(g,
                  {wire::refusal_reason::token,
                   g.identity + (g.by_munge ? " may not use this server" : " may no longer use this server") +
                       " (allow_users)"});
  }
  if (const std::string problem = environment_problem(g.shake.hello().environment); !problem.empty())
    return refuse(g, {wire::refusal_reason::malformed, problem});
  if (g.shake.hello().wanted == wire::purpose::admin) return answer_admin(g);
  loop_.forget(std::exchange(g.watch, 0));
  // Lists and logs say who it is: what nobody vouches for is marked.
  std::string& user = g.shake.hello().user;
  constexpr std::size_t most_claimed = 255;  // the worker decodes it again: it must not grow beyond its limit
  user = g.user ? name_of_user(*g.user) : user.substr(0, most_claimed) + '?';
  accepted_session session = session_of(g);
  if (!session.connection) return refuse(g, {wire::refusal_reason::busy, "out of descriptors"});
  const auto refusal = begin_session_(std::move(session));
  if (refusal) return refuse(g, *refusal);
  erase(g.id);
}

/// The session gets a descriptor of its own: ours still serves to say that it is refused. Where rings are
/// wanted the worker turns the socket into them.
accepted_session guests::session_of(guest& g) {
  // What is kept for a token is not for another one of its name.
  const std::string owner =
      is_named_token(g.identity) ? g.identity + ' ' + hex(g.shake.hello().token) : g.identity;
  wire::hello hello = std::move(g.shake.hello());
  // A worker has no use for it.
  hello.features &= ~wire::feature_munge;
  hello.credential.clear();
  // What the daemon itself answers comes through the gate; a worker ends the encrypted connection itself.
  const bool of_daemon = g.encrypted && hello.wanted == wire::purpose_checkpoint;
  const std::string_view handed_over_as =
      of_daemon ? scheme_with(&scheme_traits::has_socket_file).name : traits_of(g.scheme).handed_over_as;
  accepted_session session{
      .connection = unique_fd(::fcntl(g.socket.get(), F_DUPFD_CLOEXEC, 0)),
      .scheme = handed_over_as.empty() ? g.scheme : std::string(handed_over_as),
      .from = g.from,
      .peer = g.peer,
      .identity = g.identity,
      .process = g.process,
      .hello = std::move(hello),
      .images = {g.shake.challenge(), scope_of(owner, rules_.tokens->secret())},
      .seal = g.shake.seal(),
      .user = g.user,
      .groups = g.groups,
      .by_munge = g.by_munge,
      .also = g.also,
  };
  if (!g.encrypted || of_daemon || !session.connection) return session;
  session.scheme = transport::tls::handed_over(g.scheme, g.key);
  session.answers = std::move(session.connection);
  session.connection = std::move(g.client);
  return session;
}

void guests::answer_admin(guest& g) {
  const auto answer =
      answer_question_(g.shake.hello().admin_question, {g.identity, g.user, g.groups, g.by_munge, g.also});
  if (!answer.ok()) {
    wire::refusal_reason reason = wire::refusal_reason::question;
    if (answer.error().next == action::retry) reason = wire::refusal_reason::busy;
    if (answer.error().reason == no_right) reason = wire::refusal_reason::token;
    return refuse(g, {reason, answer.error().message});
  }
  log::debug("answered \"", g.shake.hello().admin_question, "\" to ", g.from);
  // All askers share the answer but for the proof at its end.
  const std::span<const std::byte> payload = std::span(**answer).subspan(wire::header_size);
  g.proof = wire::proof_of(payload, g.shake.seal());
  g.ends_with_proof = true;
  leave(g, *answer);
}

void guests::tell_of_refusal(const guest& g, const std::string& why) {
  rules_.audit.write_some(g.source, "refused", {{"by", g.identity}, {"from", g.from}, {"reason", why}});
  const log::with_fields fields({{"from", g.from}, {"reason", why}});
  log_.info(g.source, "refused ", g.from, ": ", why);
}

void guests::refuse(guest& g, const wire::refusal& why) {
  tell_of_refusal(g, why.message);
  ++refused_;
  leave(g,
        std::make_shared<const std::vector<std::byte>>(make_frame(wire::frame_kind::refusal, encode(why))));
}

void guests::leave(guest& g, shared_answer last_words) {
  const guest_id id = g.id;
  g.leaving = true;
  g.last_words = std::move(last_words);
  loop_.forget(g.timer);
  g.timer = loop_.after(parting_time, [this, id] { erase(id); });
  // Where it cannot be watched, it gets what its socket takes at once.
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

void guests::drop(guest& g, const std::string& why) {
  // One that was answered has its line in the log already.
  if (!g.leaving) {
    tell_of_refusal(g, why);
    ++refused_;
  }
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

bool is_named_token(const std::string& identity) { return identity.starts_with("token "); }

bool is_known(const std::string& identity) {
  return !identity.empty() && identity != anyone && identity != user_without_number;
}

status resolve_users(const std::vector<std::string>& names, guest_rules& rules) {
  for (const std::string& name : names) {
    if (name == "*") {
      rules.any_peer_user = true;
      continue;
    }
    const auto number = user_number(name);
    if (!number) return failure("allow_users: there is no user \"" + name + "\"");
    rules.peer_users.push_back(*number);
  }
  return {};
}

}  // namespace outboard::backend
