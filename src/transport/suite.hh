// The ground of the protocol suite: every test runs over every transport and skips by capability, never by
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

#include "transport/pattern_testing.hh"
#include "transport/transport.hh"

namespace outboard::transport::suite {

using namespace std::chrono_literals;
using testing::pattern;
using testing::patterned;

/// A transport under test, and fresh addresses to listen at.
struct medium {
  std::string name;
  std::function<std::unique_ptr<transport>()> make;
  std::function<std::string()> address;
  bool may_be_missing = false;  ///< not every machine has it (IPv6)
  bool talked = false;          ///< a byte has gone each way before the test: it has its final form
};
inline void PrintTo(const medium& m, std::ostream* out) { *out << m.name; }

inline deadline in(std::chrono::milliseconds t) { return clock::now() + t; }
/// Long enough for a loaded machine under a sanitizer; a test that needs it has failed.
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

/// Receives exactly into.size() bytes, else the status that ended it and the count until then.
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

/// Fills one direction until it takes nothing for a while; the bytes that went in, patterned with a period of
/// 1 MiB. Goes on after timed_out, which the contract does not promise but every transport here does.
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

/// Runs `block` in a thread, lets it get stuck, then `release`; the result of block.
template <class Block, class Release>
io stuck_until(Block block, Release release) {
  io seen = io::done;
  std::atomic<bool> ended{false};
  std::thread t([&] {
    seen = block();
    ended = true;
  });
  std::this_thread::sleep_for(15ms);
  EXPECT_FALSE(ended);
  release();
  t.join();
  return seen;
}

/// One connected pair, made through listen, connect and accept.
class TransportSuite : public ::testing::TestWithParam<medium> {
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
