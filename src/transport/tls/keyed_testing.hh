// For tests: a transport whose connections are the two ends of encrypted ones with a key that both know, over
// another transport.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"

namespace outboard::transport::tls {

class keyed_listener final : public listener {
 public:
  keyed_listener(std::unique_ptr<listener> raw, library& by,
                 std::shared_ptr<std::atomic<tls_connection*>> silent)
      : raw_(std::move(raw)), by_(by), silent_(std::move(silent)) {}

  /// Tests use both ends from one thread, so the handshake is done here.
  result<std::unique_ptr<connection>> accept(deadline until) override {
    auto got = raw_->accept(until);
    if (!got.ok()) return got;
    auto made = std::make_unique<tls_connection>(std::move(*got), by_.start_server(secret{}),
                                                 tls_connection::side::server);
    if (tls_connection* const client = silent_->exchange(nullptr)) {
      std::thread other([&] { (void)client->shake(until); });
      (void)made->shake(until);
      other.join();
    }
    return std::unique_ptr<connection>(std::move(made));
  }
  void interrupt() override { raw_->interrupt(); }
  int poll_descriptor() const override { return raw_->poll_descriptor(); }
  std::string url() const override { return raw_->url(); }

 private:
  std::unique_ptr<listener> raw_;
  library& by_;
  std::shared_ptr<std::atomic<tls_connection*>> silent_;
};

class keyed_transport final : public transport {
 public:
  keyed_transport(std::unique_ptr<transport> raw, library& by) : raw_(std::move(raw)), by_(by) {}

  std::string_view scheme() const override { return raw_->scheme(); }
  result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) override {
    auto got = raw_->connect(address, until);
    if (!got.ok()) return got;
    auto made = std::make_unique<tls_connection>(std::move(*got), by_.start_client(secret{}),
                                                 tls_connection::side::client);
    *silent_ = made.get();
    return std::unique_ptr<connection>(std::move(made));
  }
  result<std::unique_ptr<listener>> listen(std::string_view address, const listen_options& options) override {
    auto got = raw_->listen(address, options);
    if (!got.ok()) return got;
    return std::unique_ptr<listener>(std::make_unique<keyed_listener>(std::move(*got), by_, silent_));
  }

 private:
  std::unique_ptr<transport> raw_;
  library& by_;
  std::shared_ptr<std::atomic<tls_connection*>> silent_ =
      std::make_shared<std::atomic<tls_connection*>>(nullptr);  ///< whose handshake is to be done
};

inline std::unique_ptr<transport> make_keyed(std::unique_ptr<transport> raw) {
  const auto by = load();
  return by.ok() ? std::make_unique<keyed_transport>(std::move(raw), **by) : nullptr;
}

}  // namespace outboard::transport::tls
