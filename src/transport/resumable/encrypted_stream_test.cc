#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "transport/pattern_testing.hh"
#include "transport/resumable/lossy_link_testing.hh"
#include "transport/resumable/stream.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"

// Streams whose links are encrypted: an encrypted link that has begun a record must end it with the same
// bytes, and one that is lost is of no use to anybody.
namespace outboard::transport {
namespace {

using namespace std::chrono_literals;
using testing::lossy_pipe;
using testing::lossy_wire;
using testing::pattern;
using testing::patterned;

/// Links with a new key each, as a server's worker and its client make them.
class encrypted_streams : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = tls::load();
    if (!loaded.ok()) GTEST_SKIP() << loaded.error().message;
    library_ = *loaded;
  }

  void join(lossy_wire wire) {
    wire_ = std::move(wire);
    tls::secret key{};
    key[0] = static_cast<std::byte>(++links_);
    key[1] = static_cast<std::byte>(links_ >> 8);
    up_ = std::make_unique<tls::tls_connection>(wire_.client(), library_->start_client(key),
                                                tls::tls_connection::side::client);
    down_ = std::make_unique<tls::tls_connection>(wire_.server(), library_->start_server(key),
                                                  tls::tls_connection::side::server);
  }
  void begin(lossy_wire wire, const stream_options& options) {
    join(std::move(wire));
    client_ = std::make_shared<resumable_stream>(std::move(up_), options);
    server_ = std::make_shared<resumable_stream>(std::move(down_), options);
  }
  /// In a thread for each end, as between two processes.
  void reconnect(lossy_wire wire) {
    wire_.cut();
    const std::uint64_t client_has = client_->stop_link(), server_has = server_->stop_link();
    join(std::move(wire));
    std::thread there([&] { EXPECT_TRUE(server_->resume(std::move(down_), client_has)); });
    EXPECT_TRUE(client_->resume(std::move(up_), server_has));
    there.join();
  }
  void cut() { wire_.cut(); }
  unsigned links() const { return links_; }

  std::shared_ptr<resumable_stream> client_, server_;

 private:
  tls::library* library_ = nullptr;
  lossy_wire wire_;
  std::unique_ptr<tls::tls_connection> up_, down_;
  unsigned links_ = 0;
};

/// Sends the pattern in pieces of all sizes; false: the stream ended.
bool send_pattern(connection& to, std::uint64_t size, unsigned seed) {
  std::mt19937 random(seed);
  for (std::uint64_t at = 0; at < size;) {
    const auto most = 1 + random() % (random() % 8 ? 200 : 40'000);
    std::vector<std::byte> piece = patterned(std::min<std::uint64_t>(size - at, most), at);
    const iovec part{piece.data(), piece.size()};
    if (to.send({&part, 1}, no_deadline).status != io::done) return false;
    at += piece.size();
  }
  return true;
}

/// How many bytes of the pattern came in order.
std::uint64_t receive_pattern(connection& from, std::uint64_t size) {
  std::vector<std::byte> into(5000);
  for (std::uint64_t at = 0; at < size;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - at));
    const io_result got = from.receive(std::span(into).first(most), clock::now() + 60s);
    if (got.status == io::interrupted) continue;
    if (got.status != io::done) return at;
    for (std::size_t i = 0; i < got.bytes; ++i, ++at)
      if (into[i] != pattern(at)) return at;
  }
  return size;
}

TEST_F(encrypted_streams, every_byte_arrives_once_through_cuts_in_the_middle_of_records) {
  constexpr std::uint64_t size = 3 << 20;
  // Little room and much news: headers and records are interrupted all the time.
  begin(lossy_wire(700), {.read_ahead = 256, .news_every = 512, .most_kept = 256u << 10});
  std::atomic<int> left{4};
  std::thread resumer([&] {
    std::mt19937 random(3);
    while (left.load() > 0) {
      client_->tend();
      server_->tend();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 25));
      if (random() % 3 == 0) cut();
      if (client_->down_since() || server_->down_since()) reconnect(lossy_wire(700));
    }
  });
  std::thread up([&] {
    EXPECT_TRUE(send_pattern(*client_, size, 1));
    --left;
  });
  std::thread down([&] {
    EXPECT_TRUE(send_pattern(*server_, size, 2));
    --left;
  });
  std::thread at_server([&] {
    EXPECT_EQ(receive_pattern(*server_, size), size);
    --left;
  });
  EXPECT_EQ(receive_pattern(*client_, size), size);
  --left;
  for (std::thread* each : {&up, &down, &at_server, &resumer}) each->join();
  EXPECT_GT(links(), 3u);
  EXPECT_FALSE(client_->ended());
  EXPECT_FALSE(server_->ended());
}

TEST_F(encrypted_streams, news_that_did_not_leave_does_not_spoil_what_follows) {
  // The client receives nothing while the server's news finds no room any more.
  begin(lossy_wire(100), {.news_every = 16});
  std::thread up([&] { EXPECT_TRUE(send_pattern(*client_, 20'000, 5)); });
  EXPECT_EQ(receive_pattern(*server_, 20'000), 20'000u);
  up.join();
  std::thread down([&] { EXPECT_TRUE(send_pattern(*server_, 50'000, 6)); });
  EXPECT_EQ(receive_pattern(*client_, 50'000), 50'000u);
  down.join();
  EXPECT_EQ(client_->down_since(), std::nullopt);
  EXPECT_EQ(server_->down_since(), std::nullopt);
  EXPECT_EQ(links(), 1u);
}

}  // namespace
}  // namespace outboard::transport
