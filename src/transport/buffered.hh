// Reads exact amounts off a connection: small ones by way of a buffer (several frames come with one receive),
// large remainders straight into their place. Belongs to whoever is the connection's receiver at the moment.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/transport.hh"

namespace outboard::transport {

class buffered_receiver {
 public:
  static constexpr std::size_t capacity = 64 << 10;

  explicit buffered_receiver(connection& from) : from_(from) {}

  /// done when `into` is full. interrupted only before the first byte and if `interruptible`; closed only
  /// there too.
  io fill(std::span<std::byte> into, bool interruptible = false) {
    bool started = false;
    while (true) {
      const std::size_t have = std::min(into.size(), end_ - begin_);
      if (have) std::memcpy(into.data(), buffer_.data() + begin_, have), started = true;
      begin_ += have;
      into = into.subspan(have);
      if (into.empty()) return io::done;
      const bool direct = into.size() >= buffer_.size();
      const io_result got = from_.receive(direct ? into : std::span<std::byte>(buffer_));
      if (got.status == io::interrupted && (started || !interruptible)) continue;
      if (got.status == io::closed && started) return io::broken;
      if (got.status != io::done) return got.status;
      if (direct) {
        into = into.subspan(got.bytes), started = true;
      } else {
        begin_ = 0, end_ = got.bytes;
      }
    }
  }

  bool has_buffered() const { return begin_ != end_; }
  /// What has been received and not been read.
  std::span<const std::byte> buffered() const { return std::span(buffer_).subspan(begin_, end_ - begin_); }
  /// Bytes that come before all others; no more than fit, before anything is read. False: they do not fit.
  [[nodiscard]] bool put_first(std::span<const std::byte> bytes) {
    if (bytes.size() > buffer_.size()) return false;
    std::ranges::copy(bytes, buffer_.begin());
    return begin_ = 0, end_ = bytes.size(), true;
  }

 private:
  connection& from_;
  std::array<std::byte, capacity> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace outboard::transport
