// Reads exact amounts from a connection. Small amounts go through a buffer, because one receive may bring
// several frames; large remainders go straight to their destination. Belongs to the thread that is currently
// the connection's receiver.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/transport.hh"

namespace outboard::transport {

class buffered_receiver {
 public:
  explicit buffered_receiver(connection& from) : from_(from) {}

  /// Returns done when `into` is full. Returns interrupted only before the first byte and only if
  /// `interruptible`; returns closed only before the first byte.
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

 private:
  connection& from_;
  std::array<std::byte, 64 << 10> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace outboard::transport
