#include "transport/resumable/stream.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "transport/pattern_testing.hh"
#include "transport/resumable/lossy_link_testing.hh"

namespace outboard::transport {
namespace {

using namespace std::chrono_literals;
using testing::lossy_pipe;
using testing::lossy_wire;
using testing::patterned;

deadline soon() { return clock::now() + 20s; }

io_result send_all(connection& c, std::span<const std::byte> bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return c.send({&part, 1}, no_deadline);
}

/// Receives so many bytes and compares them with the pattern. Empty: all is well.
std::string receive_pattern(connection& c, std::uint64_t from, std::size_t size) {
  std::vector<std::byte> got(size);
  for (std::size_t have = 0; have < size;) {
    const io_result r = c.receive(std::span(got).subspan(have), soon());
    if (r.status == io::interrupted) continue;
    if (r.status != io::done) return "status " + std::to_string(static_cast<int>(r.status));
    have += r.bytes;
  }
  if (got == patterned(size, from)) return {};
  std::string other("other bytes from ");
  return other.append(std::to_string(from));
}

/// Two ends, and the resumers of both in one: it brings them new links.
struct ends {
  lossy_wire wire;
  std::shared_ptr<resumable_stream> client, server;

  explicit ends(lossy_wire first, const stream_options& options = {})
      : wire(std::move(first)),
        client(std::make_shared<resumable_stream>(wire.client(), options)),
        server(std::make_shared<resumable_stream>(wire.server(), options)) {}

  /// In a thread for each end, as between two processes.
  bool reconnect(lossy_wire with) {
    wire.cut();
    wire = std::move(with);
    const std::uint64_t client_has = client->stop_link(), server_has = server->stop_link();
    bool up = false;
    std::thread there([&] { up = server->resume(wire.server(), client_has); });
    const bool down = client->resume(wire.client(), server_has);
    there.join();
    return up && down;
  }
};

// The two sides say a few things to each other, and the wire ends at every byte of that in turn.
void converse(std::uint64_t up_after, std::uint64_t down_after, bool& was_cut) {
  ends both(lossy_wire(256, up_after, down_after), {.read_ahead = 64, .news_every = 32});
  std::atomic<bool> over{false};
  std::thread resumer([&] {
    while (!over.load()) {
      if (both.client->down_since() || both.server->down_since()) {
        was_cut = true;
        EXPECT_TRUE(both.reconnect(lossy_wire(256)));
      }
      std::this_thread::yield();
    }
  });
  std::thread server([&] {
    std::uint64_t from = 0, to = 0;
    for (const std::size_t size : {1, 40, 7, 90}) {
      EXPECT_EQ(receive_pattern(*both.server, from, size), "") << up_after << " " << down_after;
      from += size;
      EXPECT_EQ(send_all(*both.server, patterned(size + 3, to)).status, io::done);
      to += size + 3;
    }
  });
  std::uint64_t from = 0, to = 0;
  for (const std::size_t size : {1, 40, 7, 90}) {
    EXPECT_EQ(send_all(*both.client, patterned(size, to)).status, io::done);
    to += size;
    EXPECT_EQ(receive_pattern(*both.client, from, size + 3), "") << up_after << " " << down_after;
    from += size + 3;
  }
  server.join();
  over.store(true);
  resumer.join();
}

TEST(resumable_stream, survives_a_cut_at_every_byte) {
  constexpr std::uint64_t all = 4 * 16 + 138, back = all + 12;
  unsigned cuts = 0;
  for (std::uint64_t n = 0; n < back && !HasFailure(); ++n) {
    bool was_cut = false;
    converse(n, lossy_pipe::never, was_cut);
    cuts += was_cut;
    was_cut = false;
    converse(lossy_pipe::never, n, was_cut);
    cuts += was_cut;
    converse(n, back - n, was_cut);
  }
  EXPECT_GE(cuts, 2 * all - 8);
}

/// One direction of a random conversation: sends in random pieces, some of them lent.
struct talker {
  resumable_stream& stream;
  std::uint64_t total;
  unsigned seed;

  void send() const {
    std::mt19937 random(seed);
    for (std::uint64_t at = 0; at < total;) {
      const std::size_t most = random() % 8 == 0 ? 40000 : 200;
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(1 + random() % most, total - at));
      auto bytes = std::make_shared<std::vector<std::byte>>(patterned(size, at));
      const std::size_t first = random() % (size + 1);
      const iovec part{bytes->data(), first};
      const auto rest = std::span<const std::byte>(*bytes).subspan(first);
      switch (random() % 3) {
        case 0:
          EXPECT_EQ(send_all(stream, *bytes).status, io::done);
          break;
        case 1:
          EXPECT_EQ(stream.send_lent({&part, 1}, rest, bytes).status, io::done);
          break;
        default:
          EXPECT_EQ(stream.send_lent({&part, 1}, rest, nullptr).status, io::done);
          stream.settle();
          std::fill(bytes->begin(), bytes->end(), std::byte{0});  // the program goes on using its memory
      }
      at += size;
    }
  }
  void receive() const {
    std::mt19937 random(seed + 1000);
    for (std::uint64_t at = 0; at < total && !::testing::Test::HasFailure();) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(1 + random() % 30000, total - at));
      EXPECT_EQ(receive_pattern(stream, at, size), "");
      at += size;
    }
  }
};

TEST(resumable_stream, survives_random_cuts_with_both_ends_talking) {
  for (unsigned seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    ends both(lossy_wire(5000),
              {.read_ahead = seed % 2 ? 64u : 8192u, .news_every = 20000, .most_kept = 100000});
    std::atomic<bool> over{false};
    std::thread resumer([&] {
      std::mt19937 random(seed);
      while (!over.load()) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
        const lossy_wire before = both.wire;
        before.cut(random() % 5000, random() % 5000);
        // Some attempts fail at once, and after some of these only one end noticed anything.
        if (random() % 3 == 0)
          both.server->resume(lossy_wire(100, 20, 20).server(),
                              (both.server->stop_link(), both.client->stop_link()));
        if (over.load()) break;
        EXPECT_TRUE(both.reconnect(lossy_wire(5000)));
      }
    });
    const talker up{*both.client, 2000000, seed}, down{*both.server, 3000000, seed + 50};
    const talker heard_up{*both.server, 2000000, seed}, heard_down{*both.client, 3000000, seed + 50};
    std::thread a([&] { up.send(); }), b([&] { heard_up.receive(); }), c([&] { down.send(); });
    heard_down.receive();
    a.join();
    b.join();
    c.join();
    over.store(true);
    resumer.join();
  }
}

TEST(resumable_stream, goes_on_sending_for_hours_without_a_receiver) {
  ends both(lossy_wire(4000), {.news_every = 4000, .most_kept = 20000});
  std::thread server([&] { EXPECT_EQ(receive_pattern(*both.server, 0, 1000000), ""); });
  for (std::uint64_t at = 0; at < 1000000; at += 100)
    EXPECT_EQ(send_all(*both.client, patterned(100, at)).status, io::done);
  server.join();
}

TEST(resumable_stream, keeps_a_bounded_amount_while_there_is_no_link) {
  ends both(lossy_wire(4000), {.most_kept = 10000});
  both.wire.cut();
  (void)both.client->stop_link();
  const auto bytes = patterned(1000, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send_all(*both.client, bytes).status, io::done);
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  EXPECT_EQ(both.client->send({&part, 1}, clock::now() + 50ms).status, io::timed_out);
  std::thread waits([&] { EXPECT_EQ(both.client->send({&part, 1}).status, io::broken); });
  std::this_thread::sleep_for(20ms);
  both.client->give_up(false, "the test is over");
  waits.join();
  EXPECT_EQ(both.client->why_ended(), "the test is over");
}

TEST(resumable_stream, says_farewell_so_an_end_is_not_a_cut) {
  ends both(lossy_wire{});
  EXPECT_EQ(send_all(*both.client, patterned(5, 0)).status, io::done);
  EXPECT_FALSE(both.server->peer_gone());
  both.client->shutdown();
  EXPECT_TRUE(both.server->peer_gone());
  EXPECT_EQ(receive_pattern(*both.server, 0, 5), "");
  std::byte one;
  EXPECT_EQ(both.server->receive({&one, 1}, soon()).status, io::closed);
  EXPECT_EQ(send_all(*both.server, patterned(1, 0)).status, io::broken);
  EXPECT_FALSE(both.server->down_since());
}

TEST(resumable_stream, takes_a_lost_link_for_no_end) {
  ends both(lossy_wire{});
  both.wire.cut();
  EXPECT_FALSE(both.server->peer_gone());
  std::byte one;
  EXPECT_EQ(both.server->receive({&one, 1}, clock::now() + 20ms).status, io::timed_out);
  EXPECT_TRUE(both.server->down_since());
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    both.server->interrupt();
  });
  EXPECT_EQ(both.server->receive({&one, 1}, soon()).status, io::interrupted);
  later.join();
  EXPECT_TRUE(both.reconnect(lossy_wire{}));
  EXPECT_EQ(send_all(*both.client, patterned(5, 0)).status, io::done);
  EXPECT_EQ(receive_pattern(*both.server, 0, 5), "");
}

TEST(resumable_stream, does_not_resume_from_impossible_places) {
  ends both(lossy_wire{});
  EXPECT_EQ(send_all(*both.client, patterned(100, 0)).status, io::done);
  EXPECT_EQ(receive_pattern(*both.server, 0, 100), "");
  EXPECT_EQ(send_all(*both.server, patterned(10, 0)).status, io::done);
  EXPECT_EQ(receive_pattern(*both.client, 0, 10), "");  // its header has acknowledged the 100
  (void)both.client->stop_link();
  EXPECT_FALSE(both.client->resume(lossy_wire{}.client(), 99));
  EXPECT_FALSE(both.client->resume(lossy_wire{}.client(), 101));
  EXPECT_TRUE(both.client->resume(lossy_wire{}.client(), 100));
}

TEST(resumable_stream, ends_at_records_that_no_peer_sends) {
  const std::vector<record> bad{{1, 0, record_kind::news},   // acknowledges what was never sent
                                {0, 5, record_kind::news},   // brings bytes
                                {0, 0, record_kind::bytes},  // brings none
                                {0, 0, static_cast<record_kind>(0)},
                                {0, 0, static_cast<record_kind>(4)},
                                {0, most_in_record + 1, record_kind::bytes}};
  for (const record& r : bad) {
    lossy_wire wire;
    resumable_stream stream(wire.client(), {});
    const auto raw = encode(r);
    EXPECT_EQ(wire.down->write(raw, soon()).status, io::done);
    std::byte one;
    EXPECT_EQ(stream.receive({&one, 1}, soon()).status, io::broken);
    EXPECT_TRUE(stream.ended());
    EXPECT_NE(stream.why_ended(), "");
  }
}

TEST(resumable_stream, passes_plain_bytes_until_it_begins) {
  lossy_wire wire;
  resumable_stream server(wire.server(), {}, true);
  EXPECT_EQ(send_all(server, patterned(36, 0)).status, io::done);
  const auto client = wire.client();
  EXPECT_EQ(receive_pattern(*client, 0, 36), "");
  server.begin();
  EXPECT_EQ(send_all(server, patterned(5, 0)).status, io::done);
  resumable_stream behind(wire.client(), {});
  EXPECT_EQ(receive_pattern(behind, 0, 5), "");
}

TEST(resumable_stream, has_no_second_link_before_it_begins) {
  lossy_wire wire;
  resumable_stream server(wire.server(), {}, true);
  wire.cut();
  EXPECT_TRUE(server.peer_gone());
  EXPECT_EQ(send_all(server, patterned(5, 0)).status, io::broken);
}

// A sender that has nothing else to send gets back what it lent as soon as the peer has it.
TEST(resumable_stream, lets_go_of_what_has_arrived) {
  ends both(lossy_wire(1 << 20), options_for_pieces());
  constexpr std::size_t size = 64 << 10;
  auto bytes = std::make_shared<const std::vector<std::byte>>(patterned(size, 0));
  const std::weak_ptr watching = bytes;
  const std::span<const std::byte> lent(*bytes);
  EXPECT_EQ(both.server->send_lent({}, lent, std::move(bytes)).status, io::done);
  both.server->let_go([] { return true; });
  EXPECT_FALSE(watching.expired());
  std::thread receiver([&] { EXPECT_EQ(receive_pattern(*both.client, 0, size), ""); });
  for (const deadline until = soon(); !watching.expired() && clock::now() < until;)
    both.server->let_go([] { return false; });
  EXPECT_TRUE(watching.expired());
  receiver.join();
}

TEST(resumable_stream, notices_a_silent_link_and_no_busy_one) {
  ends both(lossy_wire{}, {.silence = 60ms});
  const auto until = clock::now() + 150ms;
  while (clock::now() < until) {
    both.client->tend();
    EXPECT_EQ(send_all(*both.server, patterned(1, 0)).status, io::done);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_FALSE(both.client->down_since());
  const auto gives_up = clock::now() + 10s;
  while (!both.client->down_since() && clock::now() < gives_up) {
    both.client->tend();
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(both.client->down_since());
}

TEST(resumable_stream, reports_a_lost_link_once) {
  std::atomic<int> changes{0};
  lossy_wire wire;
  resumable_stream stream(wire.client(), {.changed = [&] { ++changes; }});
  wire.cut();
  std::byte one;
  EXPECT_EQ(stream.receive({&one, 1}, clock::now() + 5ms).status, io::timed_out);
  EXPECT_EQ(send_all(stream, patterned(1, 0)).status, io::done);
  EXPECT_EQ(changes.load(), 1);
  stream.shutdown();
}

}  // namespace
}  // namespace outboard::transport
