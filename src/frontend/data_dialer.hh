// Opens data connections for a session: knows its server, and what was agreed with it. Owned by the session's
// owner; any thread, once it is made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/copying/data_connections.hh"
#include "frontend/dial.hh"
#include "frontend/settings.hh"
#include "marshal/data_bodies.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

class data_dialer {
 public:
  data_dialer() = default;  ///< for none
  /// The session that was dialed so. The transports outlive it.
  data_dialer(const transport::registry& transports, const dialed& with, const settings& s);

  /// How many each way a context may have; 0: none.
  std::uint32_t count() const { return count_; }

  /// New ones, and the tokens by which the server knows them. False: it has none for us.
  bool dial(data_connections::links& links, std::vector<marshal::share_token>& tokens) const;

  /// Sends the request that names them to the server. Nothing: it does not take them.
  using ask = std::function<std::optional<marshal::data_open_reply>(const marshal::data_open_body& body)>;
  /// New ones in place of those of `data`, which the caller uses. False: it has none for us.
  bool open(data_connections& data, bool to_device, const ask& server) const;

 private:
  result<dialed> dial_one() const;

  const transport::registry* transports_ = nullptr;
  std::string url_;
  std::vector<std::byte> token_;  ///< the configuration's
  std::shared_ptr<encryption> encrypts_;
  std::uint64_t session_ = 0;
  std::uint32_t count_ = 0;
  bool packs_ = false;
  std::shared_ptr<reconnector> reconnector_;  ///< null: the session's connections cannot be resumed
};

/// The connections that a copy of so many bytes may use, locked, if there are any. `open` makes them once
/// they are worth it.
class use_of_connections {
 public:
  use_of_connections(data_connections& data, std::uint64_t size,
                     const std::function<bool(data_connections&)>& open);
  ~use_of_connections() {
    if (data_) data_->use.unlock();
  }
  use_of_connections(const use_of_connections&) = delete;

  explicit operator bool() const { return data_ != nullptr; }
  data_connections& operator*() const { return *data_; }

 private:
  data_connections* data_ = nullptr;
};

}  // namespace outboard::frontend
