#include "frontend/dial.hh"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "base/munge.hh"
#include "base/random.hh"
#include "base/schemes.hh"
#include "base/version.hh"
#include "frontend/encryption.hh"
#include "marshal/cuda/driver_variables.hh"
#include "transport/resumable/stream.hh"
#include "transport/send_whole.hh"
#include "wire/checkpoint.hh"
#include "wire/features.hh"
#include "wire/frame.hh"
#include "wire/make_frame.hh"
#include "wire/munge_proof.hh"
#include "wire/opencl_session.hh"
#include "wire/token_proof.hh"

namespace outboard::frontend {
namespace {

using transport::connection_broke;
using transport::deadline;
using transport::gone;
using transport::io;

/// A start whose connection breaks is begun again so often, after pauses that begin with this one and double.
constexpr int fresh_starts = 4;
constexpr std::chrono::milliseconds first_pause{50};

outboard::error not_there(std::string message) { return {action::reconnect, std::move(message)}; }

struct frame {
  wire::frame_header header;
  std::vector<std::byte> payload;
};

result<frame> receive_frame(transport::connection& from, std::uint32_t limit, deadline until) {
  std::array<std::byte, wire::header_size> raw;
  // Not a byte more: what follows the welcome belongs to the session.
  if (const io got = transport::receive_whole(from, raw, until); got != io::done) return gone(got);
  auto header = wire::decode_header(raw, limit);
  if (!header.ok()) return not_there("it does not speak Outboard's protocol");
  frame f{*header, std::vector<std::byte>(header->size)};
  if (const io got = transport::receive_whole(from, f.payload, until); got != io::done) return gone(got);
  return f;
}

struct received_greeting {
  wire::greeting content;
  std::vector<std::byte> payload;  ///< what the token's proof covers
};

/// What a refusal says.
outboard::error refused(std::span<const std::byte> payload) {
  const auto refusal = wire::decode_refusal(payload);
  if (!refusal.ok()) return refusal.error();
  return {refusal->reason == wire::refusal_reason::busy ? action::retry : action::fail,
          "it refused: " + refusal->message, static_cast<int>(refusal->reason)};
}

result<received_greeting> receive_greeting(transport::connection& from, deadline until) {
  const deadline patience = std::min(until, transport::clock::now() + greeting_patience);
  auto first = receive_frame(from, wire::max_hello_payload, patience);
  if (!first.ok()) return std::move(first).error();
  // A server that speaks TLS only says so to a client that does not begin with it.
  if (first->header.kind == wire::frame_kind::refusal) return refused(first->payload);
  if (first->header.kind != wire::frame_kind::greeting) return not_there("its first message is no greeting");
  auto greeting = wire::decode_greeting(first->payload);
  if (!greeting.ok()) return not_there(greeting.error().message);
  return received_greeting{std::move(*greeting), std::move(first->payload)};
}

/// By what we show who we are.
struct proofs {
  std::span<const std::byte> token;
  bool munge = false;        ///< a MUNGE credential, in the place of a token
  bool certificate = false;  ///< which may stand for a token
};

/// A server that asks for none of the proofs that we have.
outboard::error cannot_show_itself(const proofs& ours) {
  if (!ours.token.empty()) {
    return failure(
        "it asks for no token, so nothing shows that it is the server you mean; start it with --token-file, "
        "or give no token (--token-file, OUTBOARD_TOKEN_FILE, token_file) for it");
  }
  return failure(
      "it takes no MUNGE credentials, so nothing shows that it is the server you mean; set munge = true "
      "there, or OUTBOARD_MUNGE=0 here");
}

outboard::error asks_for_token(bool by_munge, const proofs& ours) {
  std::string more;
  if (by_munge) more = "; or show by MUNGE which user you are: munge = true, OUTBOARD_MUNGE=1";
  if (ours.munge) more = "; it takes no MUNGE credentials (munge = true there)";
  return {action::fail,
          "it asks for a token; name the file that holds it with --token-file, OUTBOARD_TOKEN_FILE or "
          "token_file in the configuration" +
              more,
          static_cast<int>(wire::refusal_reason::token)};
}

/// Fills in what depends on the greeting, or refuses the server by name. `peer_known`: the kernel says who
/// listens there, or its key is known.
status answer_greeting(wire::hello& hello, const wire::greeting& greeting, const proofs& ours,
                       bool peer_known) {
  hello.protocol = std::min(wire::protocol_max, greeting.protocol_highest);
  if (hello.protocol < std::max(wire::protocol_min, greeting.protocol_lowest)) {
    return failure("it is " + greeting.product + " and speaks protocol " +
                   std::to_string(greeting.protocol_lowest) + " to " +
                   std::to_string(greeting.protocol_highest) + ", but we (" + std::string(product) +
                   ") speak " + std::to_string(wire::protocol_min) + " to " +
                   std::to_string(wire::protocol_max) + "; install the same version on both sides");
  }
  hello.features &= greeting.features;
  hello.challenge = random_value<wire::nonce>();
  const bool by_munge = (greeting.features & wire::feature_munge) != 0;
  if (by_munge && ours.munge) hello.features |= wire::feature_munge;
  const bool proves = !ours.token.empty() || ours.munge;
  if (!greeting.token_required) return !proves || peer_known ? status() : cannot_show_itself(ours);
  if (ours.token.empty() && !ours.certificate && !(by_munge && ours.munge))
    return asks_for_token(by_munge, ours);
  return {};
}

outboard::error no_proof(bool by_munge) {
  return failure(
      std::string(by_munge ? "it did not read our MUNGE credential" : "it does not know the token") +
      ", so it is not the server you mean, or somebody on the network changed what it says; ask who runs it");
}

outboard::error no_session_within(std::chrono::seconds wait) {
  return {action::retry, "it has begun no session for us within " + std::to_string(wait.count()) +
                             " s: others run first, or it hangs (wait_seconds in the configuration, "
                             "OUTBOARD_WAIT_SECONDS)"};
}

/// The same connection by the transport of rings, once the server has seen that it reaches us without a
/// relay.
result<std::unique_ptr<transport::connection>> prepare_for_rings(
    const transport::registry& transports, std::unique_ptr<transport::connection> link) {
  const unique_fd probe(::eventfd(0, EFD_CLOEXEC));
  if (!probe) return outboard::error{action::retry, "no descriptor to show that we share this host"};
  OUTBOARD_TRY(link->send_descriptor(probe.get()));
  auto socket = link->detach();
  if (!socket.ok()) return std::move(socket).error();
  return transports.find(memory_scheme().name)->attach(std::move(*socket));
}

/// What the proof of the token covers besides the hello.
std::vector<std::byte> proven(std::span<const std::byte> greeting, const secured& over) {
  if (!over.tls) return wire::bound_greeting(greeting, {});
  return wire::bound_greeting(greeting, over.tls->outer()->binding());
}

/// Behind the hello, another process of the server has the connection, with keys of its own.
status begin_inner(const secured& over, wire::purpose wanted, deadline until) {
  if (!over.tls || wanted == wire::purpose::admin || wanted == wire::purpose_checkpoint) return {};
  const auto library = transport::tls::load();
  if (!library.ok()) return library.error();
  auto inner = (*library)->start_client(over.tls->outer()->inner_key());
  if (!inner) return outboard::error{action::retry, "no memory is left for an encrypted connection"};
  return over.tls->begin_inner(std::move(inner), until);
}

/// Behind the welcome of a session that can be resumed.
result<std::optional<wire::resume_terms>> receive_terms(transport::connection& from, std::uint64_t features,
                                                        deadline until) {
  if ((features & wire::feature_resume) == 0) return std::optional<wire::resume_terms>();
  std::array<std::byte, wire::resume_terms_size> raw;
  if (const io got = transport::receive_whole(from, raw, until); got != io::done) return gone(got);
  auto terms = wire::decode_resume_terms(raw);
  if (!terms.ok()) return std::move(terms).error();
  return std::optional(*terms);
}

struct proven_hello {
  std::vector<std::byte> payload;
  wire::seal seal{};      ///< that the welcome must have
  bool by_token = false;  ///< then the welcome shows that the server is the one we mean
};

result<proven_hello> prove_ourselves(wire::hello& hello, const received_greeting& greeting,
                                     std::span<const std::byte> token, const secured& over,
                                     const munge_settings& munge) {
  proven_hello made{.payload = wire::encode(hello)};
  const std::vector<std::byte> covered = proven(greeting.payload, over);
  if ((hello.features & wire::feature_munge) != 0) {
    wire::munge_question asked = wire::ask_munge(made.payload, covered);
    auto credential = munge::make_credential(munge.socket, asked.content);
    if (!credential.ok()) return std::move(credential).error();
    hello.credential = std::move(*credential);
    made = {.payload = wire::encode(hello), .seal = asked.seal};
  } else if (greeting.content.token_required && !token.empty()) {
    made.seal = wire::prove(made.payload, token, covered);
    made.by_token = true;
  }
  if (made.payload.size() <= wire::max_hello_payload) return made;
  return failure("our hello would be " + std::to_string(made.payload.size()) + " bytes, the limit is " +
                 std::to_string(wire::max_hello_payload) + "; shorten the CUDA_* variables");
}

result<dialed> shake_hands(const transport::registry& transports, secured& over, wire::hello hello,
                           std::span<const std::byte> token, bool only_rings, deadline until,
                           std::chrono::seconds wait, encryption& encrypts, const complete_hello& complete) {
  std::unique_ptr<transport::connection> link = std::move(over.link);
  auto greeting = receive_greeting(*link, until);
  if (!greeting.ok()) return std::move(greeting).error();
  const auto greeted = transport::clock::now();
  const bool by_kernel = link->what().peer_identity;
  OUTBOARD_TRY(answer_greeting(hello, greeting->content,
                               {.token = token,
                                .munge = encrypts.munge().on && token.empty() && !by_kernel,
                                .certificate = over.shows_certificate},
                               by_kernel || (over.tls && over.known)));
  if (complete && !complete(hello, greeting->content.challenge)) return not_there("it is no longer wanted");
  if (only_rings && (hello.features & wire::feature_rings) == 0)
    return failure("it shares no memory (`rings` is off there, or it is older than that); use " +
                   std::string(memory_scheme().handed_over_as) + ":");
  const auto ours = prove_ourselves(hello, *greeting, token, over, encrypts.munge());
  if (!ours.ok()) return ours.error();
  // A refusal that came early makes sending fail; its reason is still there to be read.
  status sent = transport::send_whole(*link, wire::make_frame(wire::frame_kind::hello, ours->payload), until);
  if (sent.ok()) sent = begin_inner(over, hello.wanted, until);
  if (sent.ok() && (hello.features & wire::feature_rings) != 0) {
    auto prepared = prepare_for_rings(transports, std::move(link));
    if (!prepared.ok()) return std::move(prepared).error();
    link = std::move(*prepared);
  }
  const bool opens = wire::opens_session(hello.wanted);
  const deadline patience =
      opens || hello.wanted == wire::purpose_resume ? transport::clock::now() + wait : until;
  auto reply = receive_frame(*link, wire::max_frame_payload, patience);
  if (!reply.ok() && sent.ok() && opens && transport::clock::now() >= patience)
    return no_session_within(wait);
  if (const std::string why = reply.ok() || !over.tls ? "" : over.tls->problem(); !why.empty())
    return failure(why);
  if (!reply.ok()) return sent.ok() ? std::move(reply).error() : sent.error();
  if (reply->header.kind == wire::frame_kind::refusal) return refused(reply->payload);
  if (reply->header.kind != wire::frame_kind::welcome) return failure("its second message is no welcome");
  auto welcome = wire::decode_welcome(reply->payload);
  if (!welcome.ok()) return failure("its welcome was not understood: " + welcome.error().message);
  if (!wire::has_seal(reply->payload, ours->seal))
    return no_proof((hello.features & wire::feature_munge) != 0);
  if (ours->by_token || over.known) encrypts.remember(over);
  auto terms = receive_terms(*link, opens ? welcome->features : 0, patience);
  if (!terms.ok()) return std::move(terms).error();
  return dialed{.connection = std::move(link),
                .welcome = std::move(*welcome),
                .url = {},
                .server_product = std::move(greeting->content.product),
                .challenge = greeting->content.challenge,
                .terms = *terms,
                .greeted_after = greeted.time_since_epoch()};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// For callers of dial(), to whom it makes no difference.
int without_breaks(int reason) { return reason == connection_broke ? 0 : reason; }

/// `broke`: whether a connection over a network stood and then broke, before it carried a session.
result<dialed> dial_once(const transport::registry& transports, std::string_view url, wire::hello hello,
                         std::span<const std::byte> token, deadline until, std::chrono::seconds wait,
                         encryption& encrypts, const complete_hello& complete, bool& broke) {
  const auto began = transport::clock::now();
  auto link = transports.connect(url, until);
  if (!link.ok()) {
    broke = link.error().reason == connection_broke;
    // Some begin with the address, and with what a name in it stands for.
    const std::string& reason = link.error().message;
    return outboard::error{
        action::reconnect,
        "no server at " + (reason.starts_with(url) ? "" : std::string(url) + ": ") + reason,
        without_breaks(link.error().reason)};
  }
  const transport::capabilities can = (*link)->what();
  const bool by_rings = traits_of(url).shares_memory;
  const bool may_share =
      can.same_host && can.passes_descriptors && transports.find(memory_scheme().name) != nullptr;
  if (!wire::opens_session(hello.wanted)) {
    hello.features = 0;
  } else if (!may_share) {
    hello.features &= ~wire::feature_rings;
    if (!transport::may_resume(can)) hello.features &= ~wire::feature_resume;
  } else if (by_rings) {
    hello.features |= wire::feature_rings;
  }
  const bool only_rings = by_rings && wire::opens_session(hello.wanted);
  auto over = encrypts.secure(std::move(*link), url, !token.empty(), until);
  auto done = over.ok() ? shake_hands(transports, *over, std::move(hello), token, only_rings, until, wait,
                                      encrypts, complete)
                        : result<dialed>(over.error());
  if (!done.ok()) {
    broke = done.error().reason == connection_broke && transport::may_resume(can);
    const bool answered = done.error().next != action::reconnect;
    return outboard::error{done.error().next,
                           std::string(answered ? "server " : "no Outboard server at ") + std::string(url) +
                               ": " + done.error().message,
                           without_breaks(done.error().reason)};
  }
  done->url = url;
  done->greeted_after -= began.time_since_epoch();
  return done;
}

}  // namespace

result<dialed> dial(const transport::registry& transports, std::string_view url, wire::hello hello,
                    std::span<const std::byte> token, deadline until, std::chrono::seconds wait,
                    const std::shared_ptr<encryption>& given, const complete_hello& complete) {
  const std::shared_ptr<encryption> encrypts = given ? given : std::make_shared<encryption>();
  encrypts->prepare(url);
  bool broke = false;
  auto made = dial_once(transports, url, hello, token, until, wait, *encrypts, complete, broke);
  // Nothing of the program has happened yet, and the server ends a session whose client never spoke.
  const bool again = wire::opens_session(hello.wanted);
  auto pause = first_pause;
  for (int i = 0; again && broke && i < fresh_starts && !made && made.error().next == action::reconnect;
       ++i) {
    std::this_thread::sleep_for(pause);
    pause *= 2;
    broke = false;
    until = std::max(until, transport::clock::now() + greeting_patience);  // it may have waited for a place
    made = dial_once(transports, url, hello, token, until, wait, *encrypts, complete, broke);
  }
  return made;
}

wire::hello introduce_ourselves() {
  wire::hello hello;
  hello.product = product;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) hello.host = host.data();
  // No getpwuid: it loads name service libraries into the program.
  hello.user = variable("USER");
  if (hello.user.empty()) hello.user = variable("LOGNAME");
  if (hello.user.empty()) hello.user = "uid " + std::to_string(::getuid());
  hello.program = program_invocation_short_name;
  hello.process = ::getpid();
  for (const std::string_view name : marshal::driver_variables) {
    const char* value = std::getenv(std::string(name).c_str());
    if (value) hello.environment.emplace_back(name, value);
  }
  for (std::string* text : {&hello.host, &hello.user, &hello.program})
    text->resize(std::min<std::size_t>(text->size(), 255));
  return hello;
}

}  // namespace outboard::frontend
