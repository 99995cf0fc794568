// What TLS is made of, without a socket and without a type of OpenSSL's: bytes go in, bytes come out. The
// implementation is a shared object with an OpenSSL of its own inside (openssl/), which library.hh loads when
// it is needed, so that a program that carries another OpenSSL never meets this one. An engine has one owner
// and one user at a time; contexts may be used by several threads. Nothing here throws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::transport::tls {

/// What both ends of one encrypted connection can make and nobody else (RFC 5705). One binds the token's
/// proof to the connection (RFC 9266), the other is the key of the inner connection (connection.hh).
using secret = std::array<std::byte, 32>;

enum class step : std::uint8_t { done, wants_bytes, failed };

/// What is known of the other end's certificate.
struct certificate_facts {
  bool present = false;
  bool trusted = false;     ///< it leads to an authority that was given, and to the host that was asked for
  std::string problem;      ///< why not
  std::string fingerprint;  ///< of its public key: "SHA256:" and base64, as ssh writes it
  std::string name;         ///< "certificate CN=alice,O=lab": its subject, else its first alternative name
  std::vector<std::string> also;  ///< its alternative names: "certificate DNS:alice.lab", email:, URI:
};

/// Bytes to send: the first `used` of `room`, which keeps its size.
struct output {
  std::vector<std::byte> room = std::vector<std::byte>(1024);
  std::size_t used = 0;
  std::span<const std::byte> bytes() const { return std::span(room).first(used); }
};

/// One end of one TLS 1.3 connection.
class engine {
 public:
  virtual ~engine() = default;

  /// Makes `bytes` what comes next. They stay the caller's, who keeps them until read() or shake() has asked
  /// for more.
  virtual void offer(std::span<const std::byte> bytes) = 0;
  /// Goes on with the handshake.
  virtual step shake() = 0;
  /// Server: the same up to the moment at which its answer to the client's first message is ready to be sent.
  virtual step shake_until_answer() = 0;
  /// Server, after shake_until_answer(): adds to the first answer, which only the client that asked can read.
  virtual bool write_with_answer(std::span<const std::byte> plain) = 0;

  /// Decrypts up to into.size() bytes. 0: all that was offered is used up. -1: the other end closed in order.
  /// -2: what came was not from the other end, or not TLS (problem()).
  virtual std::ptrdiff_t read(std::span<std::byte> into) = 0;
  /// Encrypts one record of at most `most_in_record` bytes.
  virtual bool write(std::span<const std::byte> plain) = 0;
  /// Says that nothing more will be written.
  virtual void close() = 0;

  /// Moves what is to be sent into `into`, which is empty, and takes its room for what comes next.
  virtual void take_output(output& into) = 0;

  /// After the handshake (server: after its answer).
  virtual secret binding() const = 0;
  virtual secret inner_key() const = 0;
  virtual certificate_facts certificate() const = 0;
  virtual bool resumed() const = 0;
  /// "TLS_AES_128_GCM_SHA256".
  virtual std::string cipher() const = 0;
  /// One line for people; empty: nothing went wrong.
  virtual std::string problem() const = 0;
};

inline constexpr std::size_t most_in_record = 16384;

/// What the ends of connections have in common: certificates, keys, authorities, tickets.
class context {
 public:
  virtual ~context() = default;
  /// Client: `host` is whom the certificate must name, if authorities were given. Server: it is ignored.
  virtual std::unique_ptr<engine> start(const std::string& host) = 0;
  /// Server: of its own certificate.
  virtual std::string fingerprint() const = 0;
  /// Server: a sentence if its certificate is no longer valid or soon will not be.
  virtual std::string warning() const = 0;
};

struct client_terms {
  std::string authorities;  ///< PEM; empty: any certificate is taken, and its fingerprint must be looked at
  std::string certificate;  ///< PEM, with its chain; empty: none
  std::string key;          ///< PEM
};

struct server_terms {
  std::string certificate;  ///< PEM, with its chain
  std::string key;          ///< PEM
  std::string authorities;  ///< PEM: who signs clients' certificates; empty: none are asked for
  bool certificate_required = false;
};

/// The shared object.
class library {
 public:
  virtual ~library() = default;
  /// Errors are about what the terms hold, and say what to do.
  virtual result<std::shared_ptr<context>> make_client(const client_terms& terms) = 0;
  virtual result<std::shared_ptr<context>> make_server(const server_terms& terms) = 0;
  /// Ends of a connection whose two ends have a key that is used once.
  virtual std::unique_ptr<engine> start_client(const secret& key) = 0;
  virtual std::unique_ptr<engine> start_server(const secret& key) = 0;
  /// A new private key with a certificate that it signs itself, for this host: PEM.
  virtual result<std::string> make_certificate(const std::string& host) = 0;
  /// For `doctor`: "OpenSSL 3.0.19".
  virtual std::string version() const = 0;
};

/// Changes with every change of this file: loader and object belong together.
inline constexpr const char* library_interface = "outboard tls 2";
inline constexpr const char* library_symbol = "outboard_tls_library";
using library_function = library* (*)(const char* interface);

}  // namespace outboard::transport::tls
