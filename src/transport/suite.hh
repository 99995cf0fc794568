// The base of the protocol suite: every test runs over every transport and skips by capability, never by
// name.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/asleep_testing.hh"
#include "transport/transport.hh"

namespace outboard::transport::suite {

using namespace std::chrono_literals;

/// A transport under test, and fresh addresses to listen at.
struct medium {
  std::string name;
  std::function<std::unique_ptr<transport>()> make;
  std::function<std::string()> address;
  bool may_be_missing = false;  ///< not every machine has it (IPv6)
  bool talked = false;  ///< a byte has gone each way before the test, so the connection has its final form
};
inline void PrintTo(const medium& m, std::ostream* out) { *out << m.name; }

inline deadline in(std::chrono::milliseconds t) { return clock::now() + t; }
/// Long enough for a loaded machine under a sanitizer; a test that uses it up has failed.
inline deadline soon() { return in(20s); }

/// The part of a URL behind the scheme.
inline std::string address_of(const listener& l) {
  std::string url = l.url();
  return url.substr(url.find(':') + 1);
}

inline io_result send_all(connection& c, std::span<const std::byte> bytes, deadline until) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return c.send({&part, 1}, until);
}
inline io_result send_all(connection& c, std::string_view text, deadline until) {
  return send_all(c, std::as_bytes(std::span(text)), until);
}

/// Receives exactly into.size() bytes, or returns the status that ended it and the count until then.
inline io_result receive_all(connection& c, std::span<std::byte> into, deadline until) {
  std::size_t have = 0;
  while (have < into.size()) {
    io_result r = c.receive(into.subspan(have), until);
    if (r.status != io::done) return {r.status, have};
    have += r.bytes;
  }
  return {io::done, have};
}
inline std::string receive_text(connection& c, std::size_t size, deadline until) {
  std::string text(size, '?');
  io_result r = receive_all(c, std::as_writable_bytes(std::span(text)), until);
  return r.status == io::done ? text : "status " + std::to_string(static_cast<int>(r.status));
}

/// Byte i of a stream that exposes loss, doubling and reordering.
inline std::byte pattern(std::uint64_t i) { return static_cast<std::byte>((i * 2654435761u) >> 13); }
inline std::vector<std::byte> patterned(std::size_t size, std::uint64_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(from + i);
  return bytes;
}

/// Fills one direction until it accepts nothing for a while; returns the number of bytes that went in,
/// patterned with a period of 1 MiB. Goes on after timed_out, which the contract does not promise but every
/// transport here allows.
inline std::uint64_t fill(connection& c) {
  const std::vector<std::byte> block = patterned(1 << 20);
  for (std::uint64_t sent = 0;;) {
    io_result r = send_all(c, std::span(block).subspan(sent % block.size()), in(30ms));
    sent += r.bytes;
    if (r.status == io::timed_out && r.bytes == 0) return sent;
    EXPECT_TRUE(r.status == io::done || r.status == io::timed_out);
    if (::testing::Test::HasFailure() || sent > (1u << 30)) return sent;
  }
}

/// Runs `block` in a thread, waits until it is stuck, then runs `release`; returns the result of `block`.
template <class Block, class Release>
io stuck_until(Block block, Release release) {
  io seen = io::done;
  seen_thread stuck;
  std::thread t([&] {
    stuck.here();
    seen = block();
  });
  EXPECT_TRUE(stuck.falls_asleep());
  release();
  t.join();
  return seen;
}

/// One connected pair, made through listen, connect and accept.
class transport_suite : public ::testing::TestWithParam<medium> {
 protected:
  void SetUp() override {
    transport_ = GetParam().make();
    ASSERT_NE(transport_, nullptr);
    auto l = transport_->listen(GetParam().address(), {});
    if (!l && GetParam().may_be_missing) GTEST_SKIP() << l.error().message;
    ASSERT_TRUE(l) << l.error().message;
    listener_ = std::move(*l);
    std::tie(client_, server_) = make_pair();
    ASSERT_TRUE(client_ && server_);
  }

  using pair = std::pair<std::unique_ptr<connection>, std::unique_ptr<connection>>;
  pair make_pair() {
    pair made = make_silent_pair();
    if (made.first && GetParam().talked) talk(*made.first, *made.second);
    return made;
  }

  pair make_silent_pair() {
    auto up = transport_->connect(address_of(*listener_), soon());
    EXPECT_TRUE(up) << up.error().message;
    if (!up) return {};
    auto down = listener_->accept(soon());
    EXPECT_TRUE(down) << down.error().message;
    if (!down) return {};
    return {std::move(*up), std::move(*down)};
  }

  static void talk(connection& up, connection& down) {
    EXPECT_EQ(send_all(down, "d", soon()).status, io::done);
    EXPECT_EQ(receive_text(up, 1, soon()), "d");
    EXPECT_EQ(send_all(up, "u", soon()).status, io::done);
    EXPECT_EQ(receive_text(down, 1, soon()), "u");
  }

  std::unique_ptr<transport> transport_;
  std::unique_ptr<listener> listener_;
  std::unique_ptr<connection> client_, server_;
};

}  // namespace outboard::transport::suite
