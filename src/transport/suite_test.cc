// The protocol suite: what every transport owes. New transports join by a line in media().
#include "transport/suite.hh"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>

#include "base/testing/places.hh"
#include "transport/faulty.hh"
#include "transport/loopback/loopback.hh"
#include "transport/plugin/plugin.hh"
#include "transport/shm/shm.hh"
#include "transport/spin.hh"
#include "transport/tcp/tcp.hh"
#include "transport/tls/keyed_testing.hh"
#include "transport/unix/unix.hh"

namespace outboard::transport::suite {
namespace {

std::string fresh_path() {
  static std::atomic<int> next{0};
  return ::testing::TempDir() + "outboard-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

std::unique_ptr<transport> load_loopback() {
  auto loaded = plugin::load(in_build("lib/outboard/transports/outboard-transport-loopback.so"));
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? std::move(*loaded) : nullptr;
}

// Short reads and writes everywhere: what holds for whole messages must hold for their pieces.
std::unique_ptr<transport> choppy(std::unique_ptr<transport> inner) {
  return make_faulty(std::move(inner), {.short_reads = true, .short_writes = true, .seed = 3});
}

std::vector<medium> media() {
  std::vector<medium> all{
      {"loopback", [] { return make_loopback(); }, fresh_path},
      {"loaded_loopback", load_loopback, fresh_path},
      {"unix", [] { return make_unix(); }, fresh_path},
      {"shm", [] { return make_shm(); }, fresh_path},
      {"shm_rings", [] { return make_shm(); }, fresh_path, false, true},
      {"tcp", [] { return make_tcp(); }, [] { return std::string("127.0.0.1:0"); }},
      {"choppy_unix", [] { return choppy(make_unix()); }, fresh_path},
      {"choppy_rings", [] { return choppy(make_shm()); }, fresh_path, false, true},
      {"choppy_tcp", [] { return choppy(make_tcp()); }, [] { return std::string("127.0.0.1:0"); }},
      {"tcp6", [] { return make_tcp(); }, [] { return std::string("[::1]:0"); }, true},
  };
  // Not every build has TLS.
  if (tls::load().ok()) {
    const auto local = [] { return std::string("127.0.0.1:0"); };
    all.push_back({"tls", [] { return tls::make_keyed(make_tcp()); }, local});
    all.push_back({"tls_talked", [] { return tls::make_keyed(make_tcp()); }, local, false, true});
    all.push_back({"tls_over_choppy", [] { return tls::make_keyed(choppy(make_tcp())); }, local});
  }
  return all;
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

/// Made once: under sanitizers that takes longer than sending it.
const std::vector<std::byte>& much_patterned() {
  static const std::vector<std::byte> bytes = patterned(32 << 20);
  return bytes;
}
bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

TEST_P(TransportSuite, keeps_a_big_transfer_whole) {
  const std::vector<std::byte>& sent = much_patterned();
  std::thread sender([&] { EXPECT_EQ(send_all(*client_, sent, soon()).status, io::done); });
  std::vector<std::byte> got(sent.size());
  EXPECT_EQ(receive_all(*server_, got, soon()).status, io::done);
  sender.join();
  EXPECT_TRUE(same(got, sent));
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
  const std::span<const std::byte> bytes = std::span(much_patterned()).first(16 << 20);
  auto run = [&](connection& c) {
    std::thread sender([&] { EXPECT_EQ(send_all(c, bytes, soon()).status, io::done); });
    std::vector<std::byte> got(bytes.size());
    EXPECT_EQ(receive_all(c, got, soon()).status, io::done);
    sender.join();
    EXPECT_TRUE(same(got, bytes));
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
  EXPECT_EQ(receive_text(*client_, 2, soon()), "ab");
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

}  // namespace
}  // namespace outboard::transport::suite
