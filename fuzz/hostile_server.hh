// A server that lies, for the target of the front-end: an honest session of a worker on the mock device, and
// in between something that changes what the server sends as the input says. An empty input changes nothing,
// so that the fuzzer begins where the calls succeed. One session at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "transport/transport.hh"
#include "wire/frame.hh"
#include "wire/hello.hh"

namespace outboard::fuzz {

/// What must never leave the client: the program has it next to everything that it passes to calls.
inline constexpr std::string_view secret = "no server's data";

/// A connection to a session in this process: ours and the other's end.
struct both_ends {
  std::unique_ptr<transport::connection> near, far;
};
both_ends connect_here();

bool receive_frame(transport::connection& from, wire::frame_header& header, std::vector<std::byte>& payload);
bool send_frame(transport::connection& to, const wire::frame_header& header,
                std::span<const std::byte> payload);

class hostile_server {
 public:
  /// Serves the client at the other end of `client`, whose hello was this one. `input` says what to change.
  /// `welcomes`: the client waits for the welcome.
  hostile_server(std::unique_ptr<transport::connection> client, const wire::hello& hello,
                 std::span<const std::byte> input, bool welcomes);
  /// Waits for the session's end.
  ~hostile_server();

  /// From now on the input counts.
  void begin_lying() { lying_.store(true); }

 private:
  struct change;
  void pass_to_client(bool welcomes);
  void pass_to_server();
  bool next(change& into);
  bool lie(const change& how, wire::frame_header& header, std::vector<std::byte>& payload);
  bool insert(const change& how, const wire::frame_header& header);

  std::unique_ptr<transport::connection> client_, server_;
  std::span<const std::byte> input_;
  std::atomic<bool> lying_{false};
  std::thread serving_, to_client_, to_server_;
};

}  // namespace outboard::fuzz
