// The protocol suite: how connections and listeners end, and what the other side sees.
#include <poll.h>
#include <pthread.h>

#include <csignal>

#include <array>

#include "transport/suite.hh"

namespace outboard::transport::suite {
namespace {

TEST_P(transport_suite, shutdown_ends_a_blocked_receive_of_either_side) {
  std::array<std::byte, 8> into;
  io near = io::done, far = io::done;
  std::thread peer([&] { far = server_->receive(into, soon()).status; });
  std::array<std::byte, 8> mine;
  near =
      stuck_until([&] { return client_->receive(mine, no_deadline).status; }, [&] { client_->shutdown(); });
  peer.join();
  EXPECT_EQ(near, io::broken);
  EXPECT_EQ(far, io::closed);
  client_->shutdown();
  EXPECT_EQ(client_->receive(mine, soon()).status, io::broken);
  EXPECT_NE(client_->wait_readable(soon()), io::timed_out);
  EXPECT_EQ(send_all(*client_, "x", soon()).status, io::broken);
}

TEST_P(transport_suite, shutdown_ends_a_blocked_send_of_our_side) {
  fill(*client_);
  io seen = stuck_until([&] { return send_all(*client_, patterned(1 << 20), no_deadline).status; },
                        [&] { client_->shutdown(); });
  EXPECT_EQ(seen, io::broken);
}

TEST_P(transport_suite, shutdown_ends_a_blocked_send_of_the_peer) {
  fill(*client_);
  io seen = stuck_until([&] { return send_all(*client_, patterned(1 << 20), no_deadline).status; },
                        [&] { server_->shutdown(); });
  EXPECT_EQ(seen, io::broken);
}

TEST_P(transport_suite, shutdown_delivers_what_was_sent_before) {
  ASSERT_EQ(send_all(*client_, "last words", soon()).status, io::done);
  client_->shutdown();
  EXPECT_EQ(receive_text(*server_, 10, soon()), "last words");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->receive(into, soon()).status, io::closed);
}

TEST_P(transport_suite, close_is_seen_as_closed) {
  ASSERT_EQ(send_all(*client_, "bye", soon()).status, io::done);
  client_.reset();
  EXPECT_EQ(receive_text(*server_, 3, soon()), "bye");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->wait_readable(soon()), io::done);
  EXPECT_EQ(server_->receive(into, soon()).status, io::closed);
  EXPECT_EQ(server_->receive(into, no_deadline).status, io::closed);
}

TEST_P(transport_suite, close_ends_a_blocked_receive_and_a_blocked_send) {
  auto [up, down] = make_pair();
  ASSERT_TRUE(up && down);
  std::array<std::byte, 8> into;
  EXPECT_EQ(stuck_until([&] { return server_->receive(into, no_deadline).status; }, [&] { client_.reset(); }),
            io::closed);
  fill(*up);
  EXPECT_EQ(stuck_until([&, c = up.get()] { return send_all(*c, patterned(1 << 20), no_deadline).status; },
                        [&, d = &down] { d->reset(); }),
            io::broken);
}

TEST_P(transport_suite, reports_that_the_peer_is_gone_while_bytes_are_unread) {
  ASSERT_EQ(send_all(*client_, "unread", soon()).status, io::done);
  ASSERT_EQ(server_->wait_readable(soon()), io::done);
  EXPECT_FALSE(server_->peer_gone());
  EXPECT_FALSE(client_->peer_gone());
  client_.reset();
  for (deadline end = soon(); !server_->peer_gone() && clock::now() < end;) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(server_->peer_gone());
  EXPECT_EQ(receive_text(*server_, 6, soon()), "unread");
  auto [up, down] = make_pair();
  ASSERT_TRUE(up && down);
  up->shutdown();
  EXPECT_TRUE(up->peer_gone());
}

TEST_P(transport_suite, a_cut_inside_a_message_ends_the_reader) {
  ASSERT_EQ(send_all(*client_, patterned(700), soon()).status, io::done);
  std::vector<std::byte> message(1000);
  std::thread cutter([&] {
    std::this_thread::sleep_for(10ms);
    client_.reset();
  });
  io_result r = receive_all(*server_, message, soon());
  cutter.join();
  EXPECT_EQ(r.bytes, 700u);
  EXPECT_TRUE(r.status == io::closed || r.status == io::broken);
}

TEST_P(transport_suite, a_peer_that_closes_with_unread_bytes_ends_us_without_a_signal) {
  ASSERT_EQ(send_all(*client_, patterned(1000), soon()).status, io::done);
  ASSERT_EQ(server_->wait_readable(soon()), io::done);
  server_.reset();
  std::array<std::byte, 8> into;
  io seen = client_->receive(into, soon()).status;
  EXPECT_TRUE(seen == io::closed || seen == io::broken);
  io last = io::done;  // SIGPIPE would end this process
  for (int i = 0; i < 100 && last == io::done; ++i) last = send_all(*client_, patterned(1000), soon()).status;
  EXPECT_EQ(last, io::broken);
}

// Sends signals to the thread that runs `block` while it is stuck; returns the result of block after
// `release`.
template <class Block, class Release>
io stuck_under_signals(Block block, Release release) {
  struct sigaction note {
  }, before{};
  note.sa_handler = [](int) {};  // without SA_RESTART: system calls end with EINTR
  ::sigaction(SIGUSR1, &note, &before);
  std::atomic<bool> known{false};
  pthread_t stuck{};
  io seen = stuck_until(
      [&] {
        stuck = ::pthread_self();
        known = true;
        return block();
      },
      [&] {
        for (int i = 0; i < 20 && known; ++i)
          ::pthread_kill(stuck, SIGUSR1), std::this_thread::sleep_for(1ms);
        release();
      });
  ::sigaction(SIGUSR1, &before, nullptr);
  return seen;
}

TEST_P(transport_suite, signals_end_no_wait) {
  std::array<std::byte, 8> into;
  EXPECT_EQ(stuck_under_signals([&] { return client_->receive(into, no_deadline).status; },
                                [&] { send_all(*server_, "x", soon()); }),
            io::done);
  EXPECT_EQ(stuck_under_signals([&] { return client_->wait_readable(no_deadline); },
                                [&] { send_all(*server_, "x", soon()); }),
            io::done);
  std::unique_ptr<connection> up;
  EXPECT_EQ(
      stuck_under_signals([&] { return listener_->accept(no_deadline) ? io::done : io::broken; },
                          [&] { up = std::move(*transport_->connect(address_of(*listener_), soon())); }),
      io::done);
  fill(*client_);
  EXPECT_EQ(stuck_under_signals([&] { return send_all(*client_, patterned(1 << 20), no_deadline).status; },
                                [&] { server_.reset(); }),
            io::broken);
}

TEST_P(transport_suite, accept_obeys_deadline_and_interrupt) {
  auto late = listener_->accept(in(20ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().next, action::retry);
  listener_->interrupt();
  auto before = listener_->accept(soon());
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().next, action::retry);
  EXPECT_THAT(before.error().message, ::testing::HasSubstr("interrupted"));
  stuck_until(
      [&] {
        auto r = listener_->accept(no_deadline);
        EXPECT_TRUE(!r && r.error().next == action::retry);
        return io::done;
      },
      [&] { listener_->interrupt(); });
  auto [up, down] = make_pair();
  EXPECT_TRUE(up && down);
}

TEST_P(transport_suite, a_waiting_client_shows_on_the_poll_descriptor) {
  pollfd one{listener_->poll_descriptor(), POLLIN, 0};
  ASSERT_GE(one.fd, 0);
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  auto up = transport_->connect(address_of(*listener_), soon());
  ASSERT_TRUE(up);
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
  EXPECT_TRUE(listener_->accept(soon()));
  EXPECT_EQ(::poll(&one, 1, 0), 0);
}

TEST_P(transport_suite, connecting_where_nobody_listens_is_a_clear_error) {
  std::string address = address_of(*listener_);
  listener_.reset();
  auto r = transport_->connect(address, soon());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().next, action::retry);
  EXPECT_THAT(r.error().message, ::testing::HasSubstr("no server listens"));
  EXPECT_THAT(r.error().message, ::testing::HasSubstr(address));
}

TEST_P(transport_suite, an_address_is_taken_once) {
  auto second = transport_->listen(address_of(*listener_), {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, ::testing::HasSubstr("listens"));
  auto [up, down] = make_silent_pair();  // the first is unharmed
  while (up) {                           // a probe may have left a dead client in the queue
    if (send_all(*down, "x", soon()).status == io::done && receive_text(*up, 1, in(100ms)) == "x") break;
    auto next = listener_->accept(soon());
    ASSERT_TRUE(next);
    down = std::move(*next);
  }
  std::string address = address_of(*listener_);
  listener_.reset();
  EXPECT_TRUE(transport_->listen(address, {}));
}

}  // namespace
}  // namespace outboard::transport::suite
