// Bytes of a later copy on their way into the program's memory, sent by hand: the session of the front-end is
// one end, the test the server. Meant for TSan as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "frontend/copying/drains_testing.hh"
#include "frontend/session.hh"
#include "transport/loopback/loopback.hh"
#include "wire/frame.hh"

namespace outboard::tests {
namespace {

using namespace std::chrono_literals;

class landing_test : public testing::Test {
 protected:
  void SetUp() override {
    loopback_ = transport::make_loopback();
    auto listener = loopback_->listen("landing", {});
    ASSERT_TRUE(listener.ok());
    std::thread accepting([&] {
      auto accepted = (*listener)->accept(transport::clock::now() + 5s);
      ASSERT_TRUE(accepted.ok());
      server_ = std::move(*accepted);
    });
    auto connected = loopback_->connect("landing", transport::clock::now() + 5s);
    accepting.join();
    ASSERT_TRUE(connected.ok());
    frontend::session_events events;
    events.lost = [](const std::string&) {};
    session_ = std::make_unique<frontend::session>(std::move(*connected), std::move(events));
  }
  void TearDown() override {
    session_->goodbye();
    server_->shutdown();
  }

  /// The ticket of the next request.
  std::uint64_t take_request() {
    std::array<std::byte, wire::header_size> raw;
    for (std::span<std::byte> left = raw; !left.empty();) {
      const auto got = server_->receive(left, transport::clock::now() + 5s);
      EXPECT_EQ(got.status, transport::io::done);
      if (got.status != transport::io::done) return 0;
      left = left.subspan(got.bytes);
    }
    const auto header = wire::decode_header(raw, wire::max_frame_payload);
    EXPECT_TRUE(header.ok() && header->size == 0);
    return header.ok() ? header->ticket : 0;
  }
  void send(std::span<const std::byte> bytes) {
    const std::array parts{iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
    ASSERT_EQ(server_->send(parts, transport::clock::now() + 5s).status, transport::io::done);
  }
  void send_header(wire::frame_kind kind, std::uint64_t ticket, std::size_t size) {
    wire::frame_header header;
    header.kind = kind;
    header.ticket = ticket;
    header.size = static_cast<std::uint32_t>(size);
    std::array<std::byte, wire::header_size> raw;
    wire::encode_header(header, raw);
    send(raw);
  }
  template <class Until>
  static bool soon(Until&& until) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!until() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return until();
  }

  std::unique_ptr<transport::transport> loopback_;
  std::unique_ptr<transport::connection> server_;
  std::unique_ptr<frontend::session> session_;
};

TEST_F(landing_test, a_copy_is_under_way_until_its_last_byte_is_in_its_place) {
  constexpr std::size_t size = 1024;
  std::vector<std::byte> sent(size, std::byte{7}), place(size);
  const frontend::landing land{place.data(), size};
  ASSERT_EQ(session_->post({1, 1, 0, {}, {}}, &land), CUDA_SUCCESS);
  const std::uint64_t copy = take_request();
  std::vector<std::byte> reply;
  std::thread reading([&] { EXPECT_EQ(session_->call({2, 1, 0, {}, {}}, reply), CUDA_SUCCESS); });
  const std::uint64_t question = take_request();

  const std::array<std::uint64_t, 2> prefix{copy, 0};
  send_header(wire::frame_kind::data, copy, sizeof prefix + size);
  send(std::as_bytes(std::span(prefix)));
  send(std::span(sent).first(size / 2));
  EXPECT_TRUE(soon([&] { return session_->moved().received >= size; }));  // it has read the header
  bool pending = true;
  for (int i = 0; i < 50 && pending; ++i, std::this_thread::sleep_for(1ms))
    pending = session_->copies_pending_to(place);
  EXPECT_TRUE(pending);
  send(std::span(sent).subspan(size / 2));
  EXPECT_TRUE(soon([&] { return !session_->copies_pending(); }));
  EXPECT_EQ(place, sent);

  const std::array<std::byte, 4> success{};
  send_header(wire::frame_kind::reply, question, success.size());
  send(success);
  reading.join();
}

// Bytes that come by frames come when they like: a piece that the device writes earlier must be there first.
TEST_F(landing_test, a_copy_by_frames_is_asked_for_behind_the_pieces_that_come_to_its_place) {
  constexpr std::size_t size = 1024;
  std::vector<std::byte> place(size);
  frontend::drained_blocks blocks;
  blocks.ask(session_->drains(), {1, 10, 0}, 0, place);

  std::thread device([&] {
    std::this_thread::sleep_for(50ms);
    blocks.finish(0, 'x');
  });
  const frontend::landing land{place.data(), size};
  EXPECT_EQ(session_->post({1, 1, 0, {}, {}}, &land), CUDA_SUCCESS);
  EXPECT_TRUE(blocks.is_finished(0));
  EXPECT_TRUE(std::ranges::all_of(place, [](std::byte b) { return b == std::byte{'x'}; }));
  device.join();
  (void)take_request();
}

}  // namespace
}  // namespace outboard::tests
