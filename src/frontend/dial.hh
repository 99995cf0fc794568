// The client's side of the handshake: connect, read the greeting, prove the token, send the hello, read the
// welcome. Used by the front-end library and by the command. Pure functions over a registry; any thread;
// nothing throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hh"
#include "transport/transport.hh"
#include "wire/hello.hh"
#include "wire/resume.hh"

namespace outboard::frontend {

class encryption;
class reconnector;

struct dialed {
  std::unique_ptr<transport::connection>
      connection;  ///< behind the welcome: the next bytes are frames of the session
  wire::welcome welcome;
  std::string url;
  std::string server_product;
  wire::nonce challenge{};                       ///< of the greeting
  std::optional<wire::resume_terms> terms = {};  ///< of a session that can be resumed
  std::chrono::nanoseconds greeted_after{0};     ///< from the first packet to the greeting
  /// Brings the session's connections back; null: they cannot be resumed. Set by dial_any().
  std::shared_ptr<reconnector> reconnects = {};
};

/// A server that does not greet within this time is none: a server of another kind waits for us to speak
/// first.
inline constexpr std::chrono::seconds greeting_patience{5};

/// A server that has greeted opens a device for a session, which takes as long as it takes: on a busy machine
/// with many sessions beginning at once, tens of seconds (natively, too); and it may let us wait for a place.
inline constexpr std::chrono::seconds welcome_patience{120};

/// What a hello says that depends on the greeting: called with the server's challenge once hello.challenge is
/// known. False: the handshake is no longer wanted.
using complete_hello = std::function<bool(wire::hello& hello, const wire::nonce& server)>;

/// Opens one session or asks one admin question. `hello.answer`, `.token`, `.challenge` and `.protocol` are
/// filled in here; `.features` are those wanted, if the server has them; rings where a connection cannot have
/// them are not asked for. With a token, a server that does not prove it is refused; so is one that asks for
/// none, unless the kernel says who listens there. The error is one sentence that names the URL; its action
/// says how far it came: reconnect: no Outboard server answered there; retry: it is busy or drains; fail: it
/// refused (version, token, device, question). Once the server has greeted, a session is waited for as long
/// as `wait`, and so is the answer to a hello that resumes one. A session whose connection breaks before the
/// welcome is begun again a few times. `encrypts`: what the settings say of TLS; null: what they say where
/// nothing is set.
result<dialed> dial(const transport::registry& transports, std::string_view url, wire::hello hello,
                    std::span<const std::byte> token, transport::deadline until,
                    std::chrono::seconds wait = welcome_patience,
                    const std::shared_ptr<encryption>& encrypts = nullptr,
                    const complete_hello& complete = {});

/// A hello that says who we are: product, host, user, program, process, and the driver's variables of this
/// process.
wire::hello introduce_ourselves();

}  // namespace outboard::frontend
