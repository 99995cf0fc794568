// A front-end's session whose server, written by hand here, sends what no server should: bytes after it has
// reported a copy as complete, functions asked for twice, memory of a graph's copies in the wrong direction.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "frontend/host_functions.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "transport/loopback/loopback.hh"
#include "wire/cursor.hh"

namespace outboard::tests {
namespace {

using namespace std::chrono_literals;

class hostile_frames : public testing::Test {
 protected:
  void SetUp() override {
    const auto loopback = transport::make_loopback();
    auto listener = loopback->listen("s", {});
    ASSERT_TRUE(listener.ok());
    std::thread accepting([&] {
      auto accepted = (*listener)->accept(transport::clock::now() + 5s);
      ASSERT_TRUE(accepted.ok());
      server_ = std::move(*accepted);
    });
    auto connected = loopback->connect("s", transport::clock::now() + 5s);
    accepting.join();
    ASSERT_TRUE(connected.ok());
    frontend::session_events events;
    events.sticky_error = [](std::uint64_t, std::int32_t) {};
    events.output = [](int, std::string_view) {};
    events.lost = [this](const std::string& why) { why_ = why; };
    events.graph_place = [this](std::uint64_t id, std::uint64_t offset, std::uint64_t size) -> std::byte* {
      const auto box = functions_.box(id);
      return box && box->written ? box->place(offset, size) : nullptr;
    };
    session_ = std::make_unique<frontend::session>(std::move(*connected), std::move(events));
  }
  void TearDown() override {
    session_->goodbye();
    server_->shutdown();
    functions_.end();
  }

  void send(wire::frame_header header, std::span<const std::byte> payload) {
    header.size = static_cast<std::uint32_t>(payload.size());
    send_part(header, payload);
  }
  void send_part(const wire::frame_header& header, std::span<const std::byte> payload) {
    std::array<std::byte, wire::header_size> raw;
    wire::encode_header(header, raw);
    const std::array parts{iovec{raw.data(), raw.size()},
                           iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
    EXPECT_EQ(server_->send(parts, transport::clock::now() + 5s).status, transport::io::done);
  }
  void reply(std::uint64_t ticket) {
    const std::array<std::byte, 4> success{};
    send({.kind = wire::frame_kind::reply, .ticket = ticket}, success);
  }
  void data(std::uint64_t ticket, std::uint64_t offset, std::size_t size) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    w.put(ticket);
    w.put(offset);
    payload.resize(payload.size() + size, std::byte{0xee});
    send({.kind = wire::frame_kind::data}, payload);
  }
  void callback(std::uint64_t number, const marshal::callback_body& body) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    marshal::put_body(w, body);
    send({.kind = wire::frame_kind::callback, .ticket = number}, payload);
  }
  /// The next frame of the client.
  wire::frame_header receive(std::vector<std::byte>& payload) {
    std::array<std::byte, wire::header_size> raw;
    EXPECT_EQ(transport::receive_whole(*server_, raw, transport::clock::now() + 5s), transport::io::done);
    const auto header = wire::decode_header(raw, wire::max_frame_payload);
    EXPECT_TRUE(header.ok());
    payload.resize(header->size);
    EXPECT_EQ(transport::receive_whole(*server_, payload, transport::clock::now() + 5s), transport::io::done);
    return *header;
  }
  static frontend::outgoing request(std::uint32_t lane) {
    frontend::outgoing made;
    made.opcode = 1;
    made.lane = lane;
    return made;
  }
  bool call() {
    std::vector<std::byte> answer;
    return session_->call_any(request(1), answer).has_value();
  }

  std::unique_ptr<transport::connection> server_;
  std::unique_ptr<frontend::session> session_;
  frontend::host_functions functions_;
  std::string why_;
};

TEST_F(hostile_frames, bytes_that_come_when_the_program_has_its_memory_back_go_nowhere) {
  std::vector<std::byte> memory(4096), other(4096);
  const frontend::landing there{memory.data(), memory.size()}, elsewhere{other.data(), other.size()};
  ASSERT_TRUE(session_->post_any(request(1), &there));
  ASSERT_TRUE(session_->post_any(request(1), &elsewhere));
  reply(3);  // to a wait: the copies are complete, it says
  ASSERT_TRUE(call());
  EXPECT_TRUE(session_->copies_pending_to(memory));
  EXPECT_TRUE(session_->forget_copies_to(memory));
  EXPECT_FALSE(session_->forget_copies_to(memory)) << "there is nothing left to forget";
  data(1, 0, 1024);
  data(1, 1024, 3072);
  data(2, 0, 4096);
  reply(4);
  ASSERT_TRUE(call()) << why_;
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(std::ranges::all_of(other, [](std::byte b) { return b == std::byte{0xee}; }));
  data(1, 0, 1);
  reply(5);
  EXPECT_FALSE(call()) << "it is still no copy for as many bytes as the server likes";
}

TEST_F(hostile_frames, a_call_returns_from_a_lost_session_when_nobody_writes_to_its_memory_any_more) {
  std::vector<std::byte> memory(1u << 20);
  const frontend::landing there{memory.data(), memory.size()};
  std::atomic<bool> returned{false};
  std::thread reading([&] {  // leads: it reads for the other one, too
    (void)call();
  });
  std::vector<std::byte> payload;
  (void)receive(payload);
  std::thread waiting([&] {
    std::vector<std::byte> answer;
    EXPECT_FALSE(session_->call_any(request(2), answer, &there).has_value());
    returned.store(true);
  });
  (void)receive(payload);
  std::vector<std::byte> half;
  wire::writer w(half);
  w.put(std::uint64_t{2});
  w.put(std::uint64_t{0});
  half.resize(16 + memory.size() / 2, std::byte{0xee});
  send_part({.size = static_cast<std::uint32_t>(16 + memory.size()), .kind = wire::frame_kind::data}, half);
  const std::uint64_t with_header = wire::header_size + 16 + memory.size();
  while (session_->moved().received < with_header)
    std::this_thread::sleep_for(1ms);  // it reads the bytes now
  EXPECT_FALSE(returned.load());
  session_->malformed_reply("this test");
  waiting.join();
  reading.join();
  EXPECT_TRUE(returned.load());
}

TEST_F(hostile_frames, a_function_that_runs_once_runs_once) {
  std::atomic<int> once{0}, often{0};
  const std::uint64_t first = functions_.add(
      *session_, [&](std::int32_t) { ++once; }, {}, true);
  const std::uint64_t second = functions_.add(*session_, [&](std::int32_t) { ++often; });
  session_->expect_callbacks(8);
  std::vector<std::byte> payload;
  for (std::uint64_t n = 1; n <= 4; ++n) {
    callback(n, {.what = marshal::errand::run, .id = n % 2 ? first : second});
    EXPECT_EQ(receive(payload).ticket, n);
  }
  EXPECT_EQ(once.load(), 1);
  EXPECT_EQ(often.load(), 2);
}

TEST_F(hostile_frames, memory_of_a_copy_is_seen_in_the_copys_direction_only) {
  std::vector<std::byte> read(64, std::byte{1}), written(64, std::byte{2});
  frontend::host_box from, to;
  from.base = read.data(), from.width = from.pitch = from.slice = read.size();
  to.base = written.data(), to.width = to.pitch = to.slice = written.size();
  to.written = true;
  const std::uint64_t source = functions_.add(*session_, from), target = functions_.add(*session_, to);
  session_->expect_callbacks(2);
  std::vector<std::byte> payload;
  callback(1, {.what = marshal::errand::keep, .id = 99, .wanted = {source, target}});
  EXPECT_EQ(receive(payload).ticket, 1u);
  EXPECT_EQ(payload.size(), read.size()) << "the target's bytes stay here";
  data(wire::graph_copy | target, 0, 64);
  reply(1);
  EXPECT_TRUE(call()) << why_;
  EXPECT_EQ(written[63], std::byte{0xee});
  data(wire::graph_copy | source, 0, 64);
  reply(2);
  EXPECT_FALSE(call());
  EXPECT_EQ(why_, "the server sent bytes for an unknown copy");
  EXPECT_EQ(read[0], std::byte{1});
}

}  // namespace
}  // namespace outboard::tests
