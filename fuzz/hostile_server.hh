// A server that a client should not have met: an honest session on the mock device whose frames an input
// changes, drops, doubles, holds back and invents, at any connection of the client. For targets of the
// client's side; the whole of it lives in the process that is fuzzed. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "device/device.hh"
#include "transport/transport.hh"

namespace outboard::fuzz {

/// What is done to frames, one after the other, on whichever connection they come.
class script {
 public:
  explicit script(std::span<const std::byte> input) : rest_(input) {}
  /// Up to so many bytes; fewer, then none, when the input is over.
  std::span<const std::byte> take(std::size_t most);
  std::uint8_t byte();  ///< 0 at the end
  std::uint16_t word() { return static_cast<std::uint16_t>(byte() | byte() << 8); }
  /// For who makes several of these belong together.
  std::mutex& mutex() { return mutex_; }

 private:
  std::recursive_mutex each_;
  std::mutex mutex_;
  std::span<const std::byte> rest_;
};

/// A transport of the scheme "hostile". `shares`: connections pass descriptors, so that memory is shared. All
/// that it is given must live as long as the process.
std::unique_ptr<transport::transport> make_hostile(script& by, device::device& used, bool shares);

}  // namespace outboard::fuzz
