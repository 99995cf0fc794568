// Whether a client's connections are encrypted, and which servers it believes. A server is believed if an
// authority vouches for its name, or if its fingerprint is known, or else if it proves in its welcome that it
// knows the client's token, which only works over the very connection that both ends see; then its
// fingerprint is kept. A server that has been believed stays encrypted, with the same key, as long as this
// object lives: after a broken link the client accepts the same server or none. Made once from the settings
// and shared by all dials, which can so resume each other's sessions of TLS. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/configuration/config.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

struct secured {
  std::unique_ptr<transport::connection> link;
  transport::tls::tls_connection* tls = nullptr;  ///< `link`, if it is encrypted
  bool known = false;                             ///< the server is; else it must prove itself
  bool shows_certificate = false;                 ///< of the client's
  std::string server, fingerprint;                ///< "gpubox:26882", and what to keep of it
};

class encryption {
 public:
  encryption() = default;
  encryption(tls_choice mode, certificate_settings files, munge_settings munge = {})
      : mode_(mode), files_(std::move(files)), munge_(std::move(munge)) {}

  /// How the client shows who it is where it has no token; it does not make a server known.
  const munge_settings& munge() const { return munge_; }

  /// Before connecting: what takes time and needs no server, so that a server that waits to see whether we
  /// encrypt does not wait for it.
  void prepare(std::string_view url) const;
  /// Encrypts a connection to `url` over which nothing was said yet, or leaves it as it is. A server that is
  /// not known is an error unless it can prove itself, with a token.
  result<secured> secure(std::unique_ptr<transport::connection> raw, std::string_view url, bool has_token,
                         transport::deadline until);
  /// The server has proven itself, or was known, and has given what it was asked for.
  void remember(const secured& with);

 private:
  bool is_wanted(transport::connection& raw, std::string_view url, transport::deadline until);
  std::optional<std::string> believed(const std::string& server);
  result<std::shared_ptr<transport::tls::context>> context_for(transport::tls::library& by,
                                                               const std::string& server);
  status judge(secured& with, bool has_token);
  std::string known_file() const;
  bool has_spoken_tls(const std::string& server) const;

  tls_choice mode_ = tls_choice::automatic;
  certificate_settings files_;
  munge_settings munge_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<transport::tls::context>> contexts_;  ///< by server
  std::map<std::string, std::string> believed_;  ///< by server: its fingerprint; empty: by an authority
};

}  // namespace outboard::frontend
