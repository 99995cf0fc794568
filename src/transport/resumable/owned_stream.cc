#include <utility>

#include "transport/resumable/stream.hh"

namespace outboard::transport {

namespace {

class owned_stream final : public connection {
 public:
  explicit owned_stream(std::shared_ptr<resumable_stream> stream) : stream_(std::move(stream)) {}
  ~owned_stream() override { stream_->shutdown(); }

  const capabilities& what() const override { return stream_->what(); }
  io_result send(std::span<const iovec> parts, deadline until) override {
    return stream_->send(parts, until);
  }
  io_result receive(std::span<std::byte> into, deadline until) override {
    return stream_->receive(into, until);
  }
  io wait_readable(deadline until) override { return stream_->wait_readable(until); }
  void interrupt() override { stream_->interrupt(); }
  bool peer_gone() override { return stream_->peer_gone(); }
  void shutdown() override { stream_->shutdown(); }
  void set_spin(std::chrono::microseconds budget) override { stream_->set_spin(budget); }
  std::string describe() const override { return stream_->describe(); }

  resumable_stream& stream() { return *stream_; }

 private:
  const std::shared_ptr<resumable_stream> stream_;
};

}  // namespace

std::unique_ptr<connection> connection_of(std::shared_ptr<resumable_stream> stream) {
  return std::make_unique<owned_stream>(std::move(stream));
}

resumable_stream* stream_of(connection& c) {
  auto* const owned = dynamic_cast<owned_stream*>(&c);
  return owned ? &owned->stream() : dynamic_cast<resumable_stream*>(&c);
}

}  // namespace outboard::transport
