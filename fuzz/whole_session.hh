// One session from its client's bytes to its end, for targets of whole sessions.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "backend/session/session.hh"
#include "base/check.hh"
#include "transport/loopback/loopback.hh"
#include "wire/frame.hh"

namespace outboard::fuzz {

inline void append_frame(std::vector<std::byte>& to, wire::frame_header header,
                         std::span<const std::byte> payload) {
  header.size = static_cast<std::uint32_t>(payload.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  to.insert(to.end(), raw.begin(), raw.end());
  to.insert(to.end(), payload.begin(), payload.end());
}

/// Serves a client that sends these bytes and nothing more. `request`: all but its connection and number.
inline backend::session_end serve_whole(std::span<const std::byte> bytes, backend::session_request request) {
  auto loopback = transport::make_loopback();
  auto listener = loopback->listen("s", {});
  std::thread accepting([&] {
    auto accepted = (*listener)->accept(transport::no_deadline);
    if (accepted) request.connection = std::move(*accepted);
  });
  auto client = loopback->connect("s", transport::no_deadline);
  accepting.join();
  request.id = 1;
  backend::session_end end;
  std::thread serving([&] { end = backend::serve_session(std::move(request)); });
  std::thread reading([&] {
    std::array<std::byte, 4096> sink;
    while ((*client)->receive(sink).status == transport::io::done) {
    }
  });
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  if (!bytes.empty())
    (void)(*client)->send(std::span(&part, 1), transport::clock::now() + std::chrono::seconds(5));
  (*client)->shutdown();  // what was sent is read before the end is seen
  serving.join();
  reading.join();
  CHECK(!end.stuck);
  return end;
}

}  // namespace outboard::fuzz
