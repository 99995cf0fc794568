// The protocol suite: what every transport owes. New transports join by a line in media().
#include "transport/suite.hh"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>

#include "transport/loopback/loopback.hh"
#include "transport/spin.hh"
#include "transport/tcp/tcp.hh"
#include "transport/unix/unix.hh"

namespace outboard::transport::suite {
namespace {

std::string fresh_path() {
  static std::atomic<int> next{0};
  return ::testing::TempDir() + "outboard-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

std::vector<medium> media() {
  return {
      {"loopback", [] { return make_loopback(); }, fresh_path},
      {"unix", make_unix, fresh_path},
      {"tcp", [] { return make_tcp(); }, [] { return std::string("127.0.0.1:0"); }},
      {"tcp6", [] { return make_tcp(); }, [] { return std::string("[::1]:0"); }},
  };
}

INSTANTIATE_TEST_SUITE_P(all, TransportSuite, ::testing::ValuesIn(media()),
                         [](const auto& each) { return each.param.name; });

TEST_P(TransportSuite, echoes) {
  EXPECT_EQ(send_all(*client_, "hello", soon()).status, io::done);
  EXPECT_EQ(receive_text(*server_, 5, soon()), "hello");
  EXPECT_EQ(send_all(*server_, "world!", soon()).status, io::done);
  EXPECT_EQ(receive_text(*client_, 6, soon()), "world!");
}

TEST_P(TransportSuite, sends_parts_in_order) {
  // More parts than one sendmsg takes, with empty ones among them.
  std::vector<std::string> words;
  std::string whole;
  for (int i = 0; i < 3000; ++i) {
    words.push_back(i % 7 == 0 ? "" : std::to_string(i));
    whole += words.back();
  }
  std::vector<iovec> parts;
  for (std::string& w : words) parts.push_back({w.data(), w.size()});
  std::thread sender([&] {
    io_result r = client_->send(parts, soon());
    EXPECT_EQ(r.status, io::done);
    EXPECT_EQ(r.bytes, whole.size());
  });
  EXPECT_EQ(receive_text(*server_, whole.size(), soon()), whole);
  sender.join();
}

TEST_P(TransportSuite, nothing_to_send_or_receive_is_done) {
  EXPECT_EQ(client_->send({}, soon()).status, io::done);
  iovec empty{nullptr, 0};
  EXPECT_EQ(client_->send({&empty, 1}, soon()).status, io::done);
  io_result r = client_->receive({}, no_deadline);
  EXPECT_EQ(r.status, io::done);
  EXPECT_EQ(r.bytes, 0u);
}

TEST_P(TransportSuite, keeps_a_big_transfer_whole) {
  const std::vector<std::byte> sent = patterned(32 << 20);
  std::thread sender([&] { EXPECT_EQ(send_all(*client_, sent, soon()).status, io::done); });
  std::vector<std::byte> got(sent.size());
  EXPECT_EQ(receive_all(*server_, got, soon()).status, io::done);
  sender.join();
  EXPECT_TRUE(std::ranges::equal(got, sent));
}

TEST_P(TransportSuite, keeps_many_small_messages_in_order) {
  constexpr std::uint64_t count = 20000;
  std::thread sender([&] {
    std::uint64_t position = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::vector<std::byte> message = patterned(1 + i % 97, position);
      position += message.size();
      ASSERT_EQ(send_all(*client_, message, soon()).status, io::done);
    }
    client_->shutdown();
  });
  std::array<std::byte, 1000> into;
  std::uint64_t position = 0;
  io_result r;
  while ((r = server_->receive(into, soon())).status == io::done)
    for (std::size_t i = 0; i < r.bytes; ++i) ASSERT_EQ(into[i], pattern(position++));
  sender.join();
  EXPECT_EQ(r.status, io::closed);
  EXPECT_EQ(position, count / 97 * (97 * 98 / 2) + (count % 97) * (count % 97 + 1) / 2);
}

// Fills one direction; the bytes that went in.
std::uint64_t fill(connection& c) {
  std::uint64_t sent = 0;
  const std::vector<std::byte> block = patterned(1 << 20);
  for (;;) {
    io_result r = send_all(c, block, in(50ms));
    sent += r.bytes;
    if (r.status == io::timed_out) return sent;
    EXPECT_EQ(r.status, io::done);
    if (r.status != io::done || sent > (1u << 30)) return sent;
  }
}

void drain(connection& c, std::uint64_t bytes) {
  std::vector<std::byte> into(1 << 20);
  for (std::uint64_t at = 0; at < bytes;) {
    io_result r = c.receive(std::span(into).first(std::min<std::uint64_t>(into.size(), bytes - at)), soon());
    ASSERT_EQ(r.status, io::done);
    for (std::size_t i = 0; i < r.bytes; ++i, ++at) ASSERT_EQ(into[i], pattern(at % (1 << 20)));
  }
  EXPECT_EQ(c.receive(into, in(20ms)).status, io::timed_out);
}

TEST_P(TransportSuite, both_directions_full_then_drained) {
  std::uint64_t up = fill(*client_), down = fill(*server_);
  EXPECT_GT(up, 0u);
  EXPECT_LT(up, 1u << 30);
  EXPECT_GT(down, 0u);
  drain(*client_, down);
  drain(*server_, up);
}

TEST_P(TransportSuite, two_bulk_flows_at_once_finish) {
  const std::vector<std::byte> bytes = patterned(16 << 20);
  auto run = [&](connection& c) {
    std::thread sender([&] { EXPECT_EQ(send_all(c, bytes, soon()).status, io::done); });
    std::vector<std::byte> got(bytes.size());
    EXPECT_EQ(receive_all(c, got, soon()).status, io::done);
    sender.join();
    EXPECT_TRUE(std::ranges::equal(got, bytes));
  };
  std::thread other([&] { run(*server_); });
  run(*client_);
  other.join();
}

TEST_P(TransportSuite, deadlines_hold) {
  std::array<std::byte, 8> into;
  auto start = clock::now();
  EXPECT_EQ(client_->receive(into, in(30ms)).status, io::timed_out);
  EXPECT_EQ(client_->wait_readable(in(30ms)), io::timed_out);
  auto took = clock::now() - start;
  EXPECT_GE(took, 59ms);
  EXPECT_LT(took, 10s);
  EXPECT_EQ(client_->receive(into, deadline::min()).status, io::timed_out);
  EXPECT_EQ(client_->wait_readable(deadline::min()), io::timed_out);
  EXPECT_EQ(send_all(*server_, "late", soon()).status, io::done);  // nothing was lost
  EXPECT_EQ(receive_text(*client_, 4, soon()), "late");
}

TEST_P(TransportSuite, a_past_deadline_still_takes_what_is_there) {
  ASSERT_EQ(send_all(*server_, "here", soon()).status, io::done);
  ASSERT_EQ(client_->wait_readable(soon()), io::done);
  EXPECT_EQ(receive_text(*client_, 4, deadline::min()), "here");
}

TEST_P(TransportSuite, interrupt_before_a_wait_ends_the_next_one_once) {
  std::array<std::byte, 8> into;
  client_->interrupt();
  client_->interrupt();
  EXPECT_EQ(client_->receive(into, soon()).status, io::interrupted);
  EXPECT_EQ(client_->receive(into, in(20ms)).status, io::timed_out);
  client_->interrupt();
  EXPECT_EQ(client_->wait_readable(soon()), io::interrupted);
  EXPECT_EQ(client_->wait_readable(in(20ms)), io::timed_out);
}

TEST_P(TransportSuite, interrupt_does_not_hide_bytes_and_stays) {
  std::array<std::byte, 8> into;
  ASSERT_EQ(send_all(*server_, "ab", soon()).status, io::done);
  ASSERT_EQ(client_->wait_readable(soon()), io::done);
  client_->interrupt();
  EXPECT_EQ(client_->wait_readable(soon()), io::done);
  EXPECT_EQ(client_->receive(into, soon()).bytes, 2u);
  EXPECT_EQ(client_->receive(into, soon()).status, io::interrupted);
}

TEST_P(TransportSuite, interrupt_during_a_wait_ends_it) {
  for (int round = 0; round < 200; ++round) {
    std::thread waker([&] {
      if (round % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(round));
      client_->interrupt();
    });
    std::array<std::byte, 8> into;
    if (round % 2 == 0)
      EXPECT_EQ(client_->receive(into, soon()).status, io::interrupted);
    else
      EXPECT_EQ(client_->wait_readable(soon()), io::interrupted);
    waker.join();
  }
}

TEST_P(TransportSuite, interrupt_storm_loses_no_byte) {
  std::atomic<bool> stop{false};
  std::thread waker([&] {
    while (!stop) client_->interrupt(), std::this_thread::yield();
  });
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < 5000; ++i) {
      std::byte b = pattern(i);
      ASSERT_EQ(send_all(*server_, {&b, 1}, soon()).status, io::done);
    }
  });
  for (std::uint64_t at = 0; at < 5000;) {
    std::array<std::byte, 64> into;
    io_result r = client_->receive(into, soon());
    if (r.status == io::interrupted) continue;
    ASSERT_EQ(r.status, io::done);
    for (std::size_t i = 0; i < r.bytes; ++i) ASSERT_EQ(into[i], pattern(at++));
  }
  stop = true;
  sender.join();
  waker.join();
}

TEST_P(TransportSuite, spinning_changes_nothing_but_time) {
  client_->set_spin(200us);
  server_->set_spin(200us);
  std::thread echo([&] {
    std::array<std::byte, 64> b;
    while (receive_all(*server_, b, soon()).status == io::done) send_all(*server_, b, soon());
  });
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> message = patterned(64, static_cast<std::uint64_t>(i)), back(64);
    ASSERT_EQ(send_all(*client_, message, soon()).status, io::done);
    if (i % 2 == 0) {
      ASSERT_EQ(client_->wait_readable(soon()), io::done);
    }
    ASSERT_EQ(receive_all(*client_, back, soon()).status, io::done);
    ASSERT_EQ(message, back);
  }
  client_->interrupt();
  EXPECT_EQ(client_->wait_readable(soon()), io::interrupted);
  EXPECT_EQ(client_->wait_readable(in(5ms)), io::timed_out);
  client_->shutdown();
  echo.join();
}

// Runs `block` in a thread, lets it get stuck, then `release`; the result of block.
template <class Block, class Release>
io stuck_until(Block block, Release release) {
  io seen = io::done;
  std::atomic<bool> ended{false};
  std::thread t([&] {
    seen = block();
    ended = true;
  });
  std::this_thread::sleep_for(30ms);
  EXPECT_FALSE(ended);
  release();
  t.join();
  return seen;
}

TEST_P(TransportSuite, shutdown_ends_a_blocked_receive_of_either_side) {
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

TEST_P(TransportSuite, shutdown_ends_a_blocked_send_of_our_side) {
  fill(*client_);
  io seen = stuck_until([&] { return send_all(*client_, patterned(1 << 20), no_deadline).status; },
                        [&] { client_->shutdown(); });
  EXPECT_EQ(seen, io::broken);
}

TEST_P(TransportSuite, shutdown_ends_a_blocked_send_of_the_peer) {
  fill(*client_);
  io seen = stuck_until([&] { return send_all(*client_, patterned(1 << 20), no_deadline).status; },
                        [&] { server_->shutdown(); });
  EXPECT_EQ(seen, io::broken);
}

TEST_P(TransportSuite, shutdown_delivers_what_was_sent_before) {
  ASSERT_EQ(send_all(*client_, "last words", soon()).status, io::done);
  client_->shutdown();
  EXPECT_EQ(receive_text(*server_, 10, soon()), "last words");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->receive(into, soon()).status, io::closed);
}

TEST_P(TransportSuite, close_is_seen_as_closed) {
  ASSERT_EQ(send_all(*client_, "bye", soon()).status, io::done);
  client_.reset();
  EXPECT_EQ(receive_text(*server_, 3, soon()), "bye");
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->wait_readable(soon()), io::done);
  EXPECT_EQ(server_->receive(into, soon()).status, io::closed);
  EXPECT_EQ(server_->receive(into, no_deadline).status, io::closed);
}

TEST_P(TransportSuite, close_ends_a_blocked_receive_and_a_blocked_send) {
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

TEST_P(TransportSuite, a_cut_inside_a_message_ends_the_reader) {
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

TEST_P(TransportSuite, a_peer_that_closes_with_unread_bytes_ends_us_without_a_signal) {
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

TEST_P(TransportSuite, accept_obeys_deadline_and_interrupt) {
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

TEST_P(TransportSuite, a_waiting_client_shows_on_the_poll_descriptor) {
  pollfd one{listener_->poll_descriptor(), POLLIN, 0};
  ASSERT_GE(one.fd, 0);
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  auto up = transport_->connect(address_of(*listener_), soon());
  ASSERT_TRUE(up);
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
  EXPECT_TRUE(listener_->accept(soon()));
  EXPECT_EQ(::poll(&one, 1, 0), 0);
}

TEST_P(TransportSuite, connecting_where_nobody_listens_says_so) {
  std::string address = address_of(*listener_);
  listener_.reset();
  auto r = transport_->connect(address, soon());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().next, action::retry);
  EXPECT_THAT(r.error().message, ::testing::HasSubstr("no back-end listens"));
  EXPECT_THAT(r.error().message, ::testing::HasSubstr(address));
}

TEST_P(TransportSuite, an_address_is_taken_once) {
  auto second = transport_->listen(address_of(*listener_), {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, ::testing::HasSubstr("listens"));
  auto [up, down] = make_pair();  // the first is unharmed
  while (up) {                    // a probe may have left a dead client in the queue
    if (send_all(*down, "x", soon()).status == io::done && receive_text(*up, 1, in(100ms)) == "x") break;
    auto next = listener_->accept(soon());
    ASSERT_TRUE(next);
    down = std::move(*next);
  }
  std::string address = address_of(*listener_);
  listener_.reset();
  EXPECT_TRUE(transport_->listen(address, {}));
}

std::array<unique_fd, 2> make_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 20000; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST_P(TransportSuite, passes_a_descriptor_between_bytes) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto [out, in_end] = make_pipe();
  ASSERT_EQ(send_all(*client_, "before", soon()).status, io::done);
  ASSERT_TRUE(client_->send_descriptor(in_end.get()));
  ASSERT_EQ(send_all(*client_, "after", soon()).status, io::done);
  in_end.reset();
  std::array<std::byte, 100> into;  // a reader that takes all it can get stops short of the descriptor
  EXPECT_EQ(server_->receive(into, soon()).bytes, 6u);
  EXPECT_EQ(server_->wait_readable(soon()), io::done);
  auto got = server_->receive_descriptor(soon());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(receive_text(*server_, 5, soon()), "after");
  EXPECT_TRUE(::fcntl(got->get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(::write(got->get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(out.get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST_P(TransportSuite, waits_for_a_descriptor) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto late = server_->receive_descriptor(in(10ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().next, action::retry);
  server_->interrupt();
  auto interrupted = server_->receive_descriptor(soon());
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().next, action::retry);
  std::thread sender([&] {
    std::this_thread::sleep_for(10ms);
    auto ends = make_pipe();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(client_->send_descriptor(ends[0].get()));
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(server_->receive_descriptor(soon()));
  sender.join();
  ASSERT_EQ(send_all(*client_, "b", soon()).status, io::done);
  auto none = server_->receive_descriptor(soon());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().next, action::fail);
  client_.reset();
  auto closed = server_->receive_descriptor(soon());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().next, action::reconnect);
}

TEST_P(TransportSuite, descriptors_nobody_asked_for_are_closed) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto ends = make_pipe();
  int before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(send_all(*client_, "a", soon()).status, io::done);
    ASSERT_TRUE(client_->send_descriptor(ends[0].get()));
  }
  std::vector<std::byte> all(20);
  EXPECT_EQ(receive_all(*server_, all, soon()).status, io::done);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(TransportSuite, tells_who_the_peer_is) {
  if (!client_->what().peer_identity) {
    EXPECT_FALSE(server_->peer());
    GTEST_SKIP() << "does not know its peer";
  }
  for (connection* c : {client_.get(), server_.get()}) {
    auto who = c->peer();
    ASSERT_TRUE(who) << who.error().message;
    EXPECT_EQ(who->user, ::getuid());
    EXPECT_EQ(who->group, ::getgid());
    EXPECT_EQ(who->process, ::getpid());
  }
}

TEST_P(TransportSuite, what_it_cannot_do_it_says) {
  const capabilities& can = client_->what();
  EXPECT_GT(can.preferred_chunk, 0u);
  if (!can.passes_descriptors) {
    EXPECT_EQ(client_->send_descriptor(0).error().next, action::fall_back);
    EXPECT_EQ(client_->receive_descriptor(soon()).error().next, action::fall_back);
  }
  if (!can.detachable) {
    EXPECT_EQ(client_->detach().error().next, action::fall_back);
  }
  EXPECT_EQ(client_->describe().rfind(std::string(transport_->scheme()) + ":", 0), 0u) << client_->describe();
}

TEST_P(TransportSuite, a_detached_connection_goes_on) {
  if (!server_->what().detachable) GTEST_SKIP() << "cannot be detached";
  ASSERT_EQ(send_all(*client_, "one", soon()).status, io::done);
  EXPECT_EQ(receive_text(*server_, 2, soon()), "on");
  auto fd = server_->detach();
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_TRUE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC);
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->receive(into, soon()).status, io::broken);
  EXPECT_FALSE(server_->detach());
  server_->shutdown();  // no longer concerns the stream
  server_.reset();
  auto other = GetParam().make();
  auto again = other->attach(std::move(*fd));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(receive_text(**again, 1, soon()), "e");
  EXPECT_EQ(send_all(**again, "two", soon()).status, io::done);
  EXPECT_EQ(receive_text(*client_, 3, soon()), "two");
}

TEST_P(TransportSuite, attaching_nonsense_is_an_error) {
  EXPECT_FALSE(transport_->attach(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
  EXPECT_FALSE(transport_->adopt_listener(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
  EXPECT_FALSE(transport_->attach(unique_fd()));
}

TEST_P(TransportSuite, a_thousand_connections) {
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 4200) GTEST_SKIP() << "only " << limit.rlim_cur << " descriptors allowed";
  int before = open_descriptors();
  {
    std::vector<pair> all;
    for (int i = 0; i < 1000; ++i) {
      all.push_back(make_pair());
      ASSERT_TRUE(all.back().first && all.back().second) << i;
    }
    std::mt19937 random(1);
    std::ranges::shuffle(all, random);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string text = std::to_string(i);
      ASSERT_EQ(send_all(*all[i].first, text, soon()).status, io::done);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string text = std::to_string(i);
      ASSERT_EQ(receive_text(*all[i].second, text.size(), soon()), text);
      all[i].second->interrupt();  // waits work on descriptors above 1024
      ASSERT_EQ(all[i].second->wait_readable(soon()), io::interrupted);
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(TransportSuite, every_descriptor_is_closed_on_exec) {
  for (int fd = 3; fd < 200; ++fd) {
    int flags = ::fcntl(fd, F_GETFD);
    // Descriptors that this process was born with are not ours.
    std::array<char, 256> target{};
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (flags < 0 || ::readlink(link.c_str(), target.data(), target.size() - 1) < 0) continue;
    std::string_view kind(target.data());
    if (kind.rfind("socket:", 0) == 0 || kind == "anon_inode:[eventfd]") {
      EXPECT_TRUE(flags & FD_CLOEXEC) << fd << " " << kind;
    }
  }
}

}  // namespace
}  // namespace outboard::transport::suite
