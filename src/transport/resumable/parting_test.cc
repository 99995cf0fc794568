// How a stream ends when its link breaks at that moment, over real sockets.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <span>
#include <thread>
#include <utility>

#include "base/fd.hh"
#include "transport/pattern_testing.hh"
#include "transport/resumable/stream.hh"
#include "transport/tcp/tcp.hh"

namespace outboard::transport {
namespace {

using namespace std::chrono_literals;
using testing::patterned;

deadline soon() { return clock::now() + 20s; }

/// What its relay passes before it resets both connections.
struct passing {
  std::size_t up = ~std::size_t{0}, down = ~std::size_t{0};
};

/// Two sockets that pass each other's bytes on as far as they may, and are reset then, or when one is closed.
class relay {
 public:
  relay(unique_fd client, unique_fd server, passing may)
      : ends_{std::move(client), std::move(server)}, left_{may.up, may.down}, thread_([this] { run(); }) {}
  ~relay() {
    over_.store(true);
    thread_.join();
  }
  relay(const relay&) = delete;

 private:
  void run() {
    while (!over_.load() && pass(0) && pass(1)) {
      std::array watched{pollfd{ends_[0].get(), POLLIN, 0}, pollfd{ends_[1].get(), POLLIN, 0}};
      (void)::poll(watched.data(), watched.size(), 5);
    }
    for (unique_fd& end : ends_) {
      const linger reset{1, 0};
      ::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      end.reset();
    }
  }
  bool pass(std::size_t from) {
    std::array<std::byte, 4096> some;
    const ssize_t got =
        ::recv(ends_[from].get(), some.data(), std::min(some.size(), left_[from]), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    left_[from] -= static_cast<std::size_t>(got);
    return hand_on(1 - from, std::span(some).first(static_cast<std::size_t>(got))) && left_[from] != 0;
  }
  /// Never waits in send(): nobody may be there who receives, and then this ends when the relay does.
  bool hand_on(std::size_t to, std::span<const std::byte> bytes) {
    while (!bytes.empty() && !over_.load()) {
      pollfd room{ends_[to].get(), POLLOUT, 0};
      if (::poll(&room, 1, 5) == 0) continue;
      const ssize_t went = ::send(ends_[to].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (went < 0 && errno != EAGAIN) return false;
      bytes = bytes.subspan(went < 0 ? 0 : static_cast<std::size_t>(went));
    }
    return bytes.empty();
  }

  std::array<unique_fd, 2> ends_;
  std::array<std::size_t, 2> left_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Both ends of a stream over TCP, and a thread that looks after them: the first link has a limit.
class resumed {
 public:
  explicit resumed(passing first, stream_options options = {}) {
    auto [up, down] = link(first);
    client = std::make_shared<resumable_stream>(std::move(up), options);
    server = std::make_shared<resumable_stream>(std::move(down), options);
    looks_after_ = std::thread([this] { look_after(); });
  }
  ~resumed() {
    over_.store(true);
    // Its thread may be sending again what nobody takes: this thread is the one that looks after both ends.
    client->give_up(true, "");
    server->give_up(true, "");
    looks_after_.join();
  }
  resumed(const resumed&) = delete;

  /// For the next links.
  std::atomic<bool> comes_back{true};
  std::shared_ptr<resumable_stream> client, server;

 private:
  using pair = std::pair<std::unique_ptr<connection>, std::unique_ptr<connection>>;

  pair tcp_pair() {
    auto listener = tcp_->listen("127.0.0.1:0", {});
    auto up = tcp_->connect((*listener)->url().substr(4), soon());
    auto down = (*listener)->accept(soon());
    return {std::move(*up), std::move(*down)};
  }
  pair link(passing may) {
    auto [up, near] = tcp_pair();
    auto [far, down] = tcp_pair();
    relay_ = std::make_unique<relay>(std::move(*near->detach()), std::move(*far->detach()), may);
    return {std::move(up), std::move(down)};
  }
  void look_after() {
    while (!over_.load()) {
      client->tend();
      server->tend();
      // An end that has everything has no use for another link, and the other one is told so.
      if (client->ended() && server->leaving() && server->down_since()) server->give_up(true, "");
      if (server->ended() && client->leaving() && client->down_since()) client->give_up(true, "");
      if (comes_back.load() && (client->down_since() || server->down_since())) {
        auto [up, down] = link({});
        const std::uint64_t client_has = client->stop_link(), server_has = server->stop_link();
        std::thread there(
            [&, link = std::move(down)]() mutable { server->resume(std::move(link), client_has); });
        client->resume(std::move(up), server_has);
        there.join();
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  const std::unique_ptr<class transport> tcp_ = make_tcp();
  std::unique_ptr<relay> relay_;
  std::atomic<bool> over_{false};
  std::thread looks_after_;
};

/// What arrived, and how it ended.
std::pair<std::vector<std::byte>, io> receive_all(connection& from) {
  std::vector<std::byte> all;
  std::array<std::byte, 5000> some;
  while (true) {
    const io_result got = from.receive(some, soon());
    if (got.status != io::done) return {all, got.status};
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got.bytes));
  }
}

io send_all(connection& to, std::span<const std::byte> bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return to.send({&part, 1}).status;
}

constexpr std::size_t size = 1000, whole = size + 2 * record_header;  // with the farewell behind it

// Whichever end has something to say last, and wherever its link breaks meanwhile.
TEST(resumable_stream_end, what_was_sent_before_it_arrives) {
  const auto sent = patterned(size);
  for (const bool up : {true, false}) {
    for (const std::size_t passes : {std::size_t{1}, size / 2, whole - record_header, whole - 1, whole}) {
      resumed both(up ? passing{.up = passes} : passing{.down = passes});
      resumable_stream& from = up ? *both.client : *both.server;
      resumable_stream& to = up ? *both.server : *both.client;
      EXPECT_EQ(send_all(from, sent), io::done);
      from.shutdown();
      const auto [all, end] = receive_all(to);
      EXPECT_TRUE(all == sent) << up << " " << passes << ": " << all.size();
      EXPECT_EQ(end, io::closed);
      to.shutdown();
      const auto until = soon();
      while (!from.ended() && clock::now() < until) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(from.ended());
      EXPECT_FALSE(from.leaving());
    }
  }
}

TEST(resumable_stream_end, is_waited_for_until_the_peer_has_everything) {
  const auto sent = patterned(size);
  resumed both({.up = 100});
  both.comes_back.store(false);
  EXPECT_EQ(send_all(*both.client, sent), io::done);
  both.client->shutdown();
  EXPECT_TRUE(both.client->leaving());
  EXPECT_EQ(send_all(*both.client, sent), io::broken);
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    both.comes_back.store(true);
  });
  const auto began = clock::now();
  both.client->await_end(soon());  // though nobody receives there
  EXPECT_GE(clock::now() - began, 40ms);
  EXPECT_LT(clock::now() - began, 10s);
  EXPECT_TRUE(both.client->ended());
  later.join();
  EXPECT_TRUE(receive_all(*both.server).first == sent);
}

TEST(resumable_stream_end, is_not_waited_for_longer_than_asked) {
  resumed both({.up = 100});
  both.comes_back.store(false);
  EXPECT_EQ(send_all(*both.client, patterned(size)), io::done);
  both.client->shutdown();
  const auto began = clock::now();
  both.client->await_end(began + 100ms);
  EXPECT_GE(clock::now() - began, 100ms);
  EXPECT_LT(clock::now() - began, 5s);
  EXPECT_TRUE(both.client->ended());
}

TEST(resumable_stream_end, ends_calls_in_progress_at_once) {
  resumed both({});
  std::thread receiver([&] {
    std::byte one;
    EXPECT_EQ(both.client->receive({&one, 1}, soon()).status, io::broken);
  });
  std::thread sender([&] {
    const auto much = patterned(1 << 20);
    while (send_all(*both.client, much) == io::done) {
    }
  });
  std::this_thread::sleep_for(50ms);
  const auto began = clock::now();
  both.client->shutdown();
  receiver.join();
  sender.join();
  EXPECT_LT(clock::now() - began, 5s);
}

TEST(resumable_stream_end, lets_go_of_what_was_lent) {
  resumed both({.up = 100});
  both.comes_back.store(false);
  auto lent = std::make_shared<std::vector<std::byte>>(patterned(size));
  const std::weak_ptr watching = lent;
  std::span<std::byte> bytes(*lent);
  EXPECT_EQ(both.client->send_lent({}, bytes, std::move(lent)).status, io::done);
  both.client->shutdown();
  EXPECT_TRUE(watching.expired());
  both.comes_back.store(true);
  EXPECT_TRUE(receive_all(*both.server).first == patterned(size));
}

}  // namespace
}  // namespace outboard::transport
