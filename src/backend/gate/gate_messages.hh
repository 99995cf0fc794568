// The messages between the daemon and its gate, over a control socket (backend/daemon/control.hh). Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/daemon/control_body.hh"

namespace outboard::backend {

/// To the gate, first: what it must know. Files are read before it confines itself.
struct gate_begin_message {
  std::string certificate;  ///< path; empty: the server's own, kept at `own_key`, made if it is not there
  std::string key;          ///< path
  std::string authority;    ///< path: who signs clients' certificates; empty: none are asked for
  std::string own_key;      ///< path
  bool certificate_required = false;
  std::uint32_t unfinished = 256, seconds = 5;  ///< limits of connections whose handshake is not done
  OUTBOARD_FIELDS(certificate, key, authority, own_key, certificate_required, unfinished, seconds)
};

/// Which clients of a listener may speak without TLS.
enum class plain_clients : std::uint8_t { none, of_this_host, all };

/// To the gate, with a listening socket.
struct gate_listen_message {
  std::string url;
  plain_clients plain = plain_clients::none;
  OUTBOARD_FIELDS(url, plain)
};

/// From the gate, once it is confined and has its certificate.
struct gate_ready_message {
  std::string fingerprint, warning, version;
  OUTBOARD_FIELDS(fingerprint, warning, version)
};

/// From the gate, with a client's socket. If `encrypted`, the next message brings the local socket by which
/// the daemon talks with the client as long as the hello lasts.
struct gate_arrival_message {
  std::string from;
  bool encrypted = false;
  OUTBOARD_FIELDS(from, encrypted)
};

/// The first bytes on that local socket, before any of the client's: what the gate knows of the connection
/// once the handshake is done. A length of four bytes goes before it.
struct channel_facts {
  std::vector<std::uint8_t> binding, inner_key;
  std::string certificate;        ///< "certificate CN=alice"; empty: the client showed none
  std::vector<std::string> also;  ///< its alternative names: "certificate DNS:alice.lab"
  OUTBOARD_FIELDS(binding, inner_key, certificate, also)
};

inline constexpr std::uint32_t most_channel_facts = 8192;
/// What fits there, of a client's certificate.
inline constexpr std::size_t longest_certificate_name = 1024, longest_alternative = 256,
                             most_certificate_names = 16;

/// The message between the daemon and its gate; `problem`: what is said of a malformed one.
template <class Message>
result<Message> decoded(const control_message& m, const char* problem) {
  auto message = body_of<Message>(m.payload);
  if (!message) return failure(problem);
  return std::move(*message);
}

}  // namespace outboard::backend
