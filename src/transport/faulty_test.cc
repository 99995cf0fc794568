#include "transport/faulty.hh"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <set>

#include "transport/loopback/loopback.hh"
#include "transport/suite.hh"
#include "transport/unix/unix.hh"

// The protocol suite runs over faulty transports with short reads and writes; these tests cover the faults
// themselves.
namespace outboard::transport::suite {
namespace {

struct ends {
  std::unique_ptr<connection> client, server;
};

ends make_ends(transport& t, const std::string& address) {
  auto l = t.listen(address, {});
  EXPECT_TRUE(l) << l.error().message;
  auto up = t.connect(address_of(**l), soon());
  EXPECT_TRUE(up) << up.error().message;
  auto down = (*l)->accept(soon());
  EXPECT_TRUE(down) << down.error().message;
  return {std::move(*up), std::move(*down)};
}

ends make_ends() { return make_ends(*make_loopback(), "faulty"); }

TEST(faulty, cuts_what_is_sent_at_the_byte) {
  auto [client, server] = make_ends();
  auto cut = make_faulty(std::move(client), {.cut_send_after = 10});
  EXPECT_EQ(send_all(*cut, "12345678", soon()).status, io::done);
  io_result r = send_all(*cut, "90ABCDEF", soon());
  EXPECT_EQ(r.status, io::broken);
  EXPECT_EQ(r.bytes, 2u);
  EXPECT_EQ(receive_text(*server, 10, soon()), "1234567890");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server->receive(into, soon()).status, io::closed);
  EXPECT_EQ(cut->receive(into, soon()).status, io::broken);
  EXPECT_EQ(send_all(*cut, "x", soon()).status, io::broken);
}

TEST(faulty, cuts_what_is_received_at_the_byte) {
  auto [client, server] = make_ends();
  auto cut = make_faulty(std::move(client), {.cut_receive_after = 10});
  ASSERT_EQ(send_all(*server, "1234567890ABCDEF", soon()).status, io::done);
  EXPECT_EQ(receive_text(*cut, 10, soon()), "1234567890");
  std::array<std::byte, 8> into;
  EXPECT_EQ(cut->wait_readable(soon()), io::broken);
  EXPECT_EQ(cut->receive(into, soon()).status, io::broken);
  EXPECT_EQ(send_all(*server, "x", soon()).status, io::broken);
}

TEST(faulty, a_cut_reaches_a_blocked_peer) {
  auto [client, server] = make_ends();
  auto cut = make_faulty(std::move(client), {.cut_send_after = 0});
  std::array<std::byte, 8> into;
  EXPECT_EQ(stuck_until([&, s = server.get()] { return s->receive(into, no_deadline).status; },
                        [&, c = cut.get()] { send_all(*c, "x", soon()); }),
            io::closed);
}

TEST(faulty, delays_without_holding_up_the_sender) {
  auto [client, server] = make_ends();
  auto slow = make_faulty(std::move(client), {.delay = 300ms});
  auto start = clock::now();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(send_all(*slow, "0123456789", soon()).status, io::done);
  auto sent = clock::now() - start;
  ASSERT_EQ(receive_text(*server, 10, soon()), "0123456789");
  auto first = clock::now() - start;
  std::vector<std::byte> rest(490);
  EXPECT_EQ(receive_all(*server, rest, soon()).status, io::done);
  auto last = clock::now() - start;
  EXPECT_LT(sent, 290ms);   // 50 messages do not wait for one another,
  EXPECT_GE(first, 300ms);  // none arrives early,
  EXPECT_LT(last, 9s);      // and the delays do not add up
}

TEST(faulty, a_delayed_close_delivers_first) {
  auto [client, server] = make_ends();
  auto slow = make_faulty(std::move(client), {.delay = 30ms});
  ASSERT_EQ(send_all(*slow, "still here", soon()).status, io::done);
  slow.reset();
  EXPECT_EQ(receive_text(*server, 10, soon()), "still here");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server->receive(into, soon()).status, io::closed);
}

TEST(faulty, a_delayed_shutdown_ends_a_blocked_sender) {
  auto [client, server] = make_ends();
  auto slow = make_faulty(std::move(client), {.delay = 1ms});
  auto flood = [&, c = slow.get()] {
    for (;;)
      if (io s = send_all(*c, patterned(8 << 20), no_deadline).status; s != io::done) return s;
  };
  EXPECT_EQ(stuck_until(flood, [&, c = slow.get()] { std::this_thread::sleep_for(300ms), c->shutdown(); }),
            io::broken);
}

TEST(faulty, a_delay_and_a_cut_still_deliver_what_came_before) {
  auto [client, server] = make_ends();
  auto slow = make_faulty(std::move(client), {.cut_send_after = 5, .delay = 20ms});
  EXPECT_EQ(send_all(*slow, "0123456789", soon()).status, io::broken);
  EXPECT_EQ(receive_text(*server, 5, soon()), "01234");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server->receive(into, soon()).status, io::closed);
}

TEST(faulty, a_delayed_descriptor_keeps_its_place) {
  auto t = make_unix();
  auto [client, server] =
      make_ends(*t, ::testing::TempDir() + "outboard-faulty-" + std::to_string(::getpid()));
  auto slow = make_faulty(std::move(client), {.delay = 5ms});
  ASSERT_EQ(send_all(*slow, "ab", soon()).status, io::done);
  ASSERT_TRUE(slow->send_descriptor(0));
  ASSERT_EQ(send_all(*slow, "cd", soon()).status, io::done);
  EXPECT_EQ(receive_text(*server, 2, soon()), "ab");
  EXPECT_TRUE(server->receive_descriptor(soon()));
  EXPECT_EQ(receive_text(*server, 2, soon()), "cd");
}

// The sizes of the reads that one seed gives.
std::vector<std::size_t> read_sizes(std::uint64_t seed) {
  auto [client, server] = make_ends();
  auto choppy = make_faulty(std::move(server), {.short_reads = true, .seed = seed});
  EXPECT_EQ(send_all(*client, patterned(100000), soon()).status, io::done);
  std::vector<std::size_t> sizes;
  std::vector<std::byte> into(100000);
  for (std::size_t have = 0; have < into.size();) {
    io_result r = choppy->receive(std::span(into).subspan(have), soon());
    EXPECT_EQ(r.status, io::done);
    if (r.status != io::done) return {};
    sizes.push_back(r.bytes);
    have += r.bytes;
  }
  EXPECT_EQ(into, patterned(100000));
  return sizes;
}

TEST(faulty, short_reads_are_short_and_repeat_with_their_seed) {
  std::vector<std::size_t> once = read_sizes(1);
  EXPECT_GT(once.size(), 10u);
  EXPECT_GT(std::set<std::size_t>(once.begin(), once.end()).size(), 5u);
  EXPECT_EQ(once, read_sizes(1));
  EXPECT_NE(once, read_sizes(2));
}

}  // namespace
}  // namespace outboard::transport::suite
