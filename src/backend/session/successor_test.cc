#include "backend/session/successor.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <semaphore>

#include "backend/daemon/control.hh"
#include "backend/session/successor_messages.hh"
#include "base/sealed_file.hh"
#include "transport/unix/unix.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

std::array<unique_fd, 2> make_pair_of(int kind) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

result<std::unique_ptr<transport::connection>> attach(const std::string& scheme, unique_fd fd) {
  EXPECT_EQ(scheme, successor_scheme());
  return transport::make_unix()->attach(std::move(fd));
}

struct some_preparation final : session_api::preparation {
  std::vector<std::byte> encode() override { return std::vector<std::byte>(2u << 20, std::byte{3}); }
};

/// The worker that has a session, with the daemon's end of its exit and the other worker's of the channel.
struct workers {
  workers() {
    auto exit = make_pair_of(SOCK_SEQPACKET);
    daemon = std::move(exit[0]);
    first = std::make_unique<successor>(std::move(exit[1]), attach);
    first->watch([this] { woken.release(); });
    auto channel = make_pair_of(SOCK_STREAM);
    EXPECT_TRUE(
        send_control(daemon.get(), control_kind::leave, payload_of(leave_message{250}), channel[0].get())
            .ok());
    second = std::make_unique<predecessor>(*attach(successor_scheme(), std::move(channel[1])));
    prepared = std::async(std::launch::async, [this] { return second->receive_preparation(); });
    woken.acquire();  // it has said that it is there
  }

  /// The other worker prepares itself, and waits for the session.
  void prepare() {
    EXPECT_FALSE(first->is_prepared());
    first->prepare(std::unique_ptr<session_api::preparation>(std::make_unique<some_preparation>()));
    received = std::async(std::launch::async, [this]() -> status {
      const auto ahead = prepared.get();
      EXPECT_TRUE(ahead.ok() && *ahead == some_preparation().encode());
      OUTBOARD_TRY(second->tell_prepared({}));
      return second->receive();
    });
    woken.acquire();
    EXPECT_TRUE(first->is_prepared());
  }

  /// What the daemon is told.
  std::string stays() {
    auto message = receive_control(daemon.get(), true);
    EXPECT_TRUE(message.ok() && *message && (*message)->kind == control_kind::stays);
    return *decode_text((*message)->payload);
  }

  std::counting_semaphore<8> woken{0};
  unique_fd daemon;
  std::unique_ptr<successor> first;
  std::unique_ptr<predecessor> second;
  std::future<result<std::vector<std::byte>>> prepared;
  std::future<status> received;
};

/// The default is more than sockets hold.
session_image some_image(std::size_t bytes = 3u << 20, int parts = 300) {
  session_image image;
  image.bytes.assign(bytes, std::byte{7});
  for (int i = 0; i < parts; ++i) image.add(make_sealed_file(4096 + static_cast<std::uint64_t>(i), "part"));
  return image;
}

TEST(successor, gives_the_session_once_the_other_has_made_everything) {
  workers w;
  w.prepare();
  EXPECT_TRUE(w.first->is_named());
  EXPECT_EQ(w.first->patience(), 250ms);
  auto accepted = std::async(std::launch::async, [&]() -> status {
    OUTBOARD_TRY(w.received.get());
    return w.second->accept();
  });
  EXPECT_TRUE(w.first->give(some_image()).ok());
  ASSERT_TRUE(accepted.get().ok());
  EXPECT_EQ(w.second->image().bytes.size(), 3u << 20);
  ASSERT_EQ(w.second->image().descriptors.size(), 300u);
  EXPECT_EQ(size_of_sealed_file(w.second->image().take(299).get()), 4096 + 299);
  EXPECT_FALSE(w.second->image().take(299)) << "each once";
  EXPECT_FALSE(w.second->image().take(300));
}

TEST(successor, keeps_the_session_that_the_other_cannot_make) {
  workers w;
  w.prepare();
  auto declined = std::async(std::launch::async, [&] {
    EXPECT_TRUE(w.received.get().ok());
    w.second->decline("no room");
  });
  const status given = w.first->give(some_image());
  declined.get();
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.error().message, "no room");
  EXPECT_EQ(w.stays(), "no room");
  EXPECT_FALSE(w.first->is_named());
}

TEST(successor, keeps_the_session_when_the_other_dies) {
  workers w;
  w.prepare();
  auto died = std::async(std::launch::async, [&] {
    EXPECT_TRUE(w.received.get().ok());
    w.second.reset();
  });
  EXPECT_FALSE(w.first->give(some_image()).ok());
  died.get();
  EXPECT_NE(w.stays(), "");
}

TEST(successor, refuses_before_anything_is_given_and_can_be_asked_again) {
  workers w;
  w.prepare();
  w.first->refuse("a capture is open");
  EXPECT_EQ(w.stays(), "a capture is open");
  EXPECT_FALSE(w.received.get().ok());
  EXPECT_FALSE(w.first->is_named());
}

TEST(successor, says_why_the_session_cannot_leave_before_the_other_prepares) {
  workers w;
  EXPECT_TRUE(w.first->is_named());
  w.first->prepare(failure("it has textures"));
  EXPECT_EQ(w.stays(), "it has textures");
  EXPECT_FALSE(w.prepared.get().ok());
  EXPECT_FALSE(w.first->is_named());
}

TEST(successor, keeps_the_session_where_the_other_cannot_prepare) {
  workers w;
  w.first->prepare(std::unique_ptr<session_api::preparation>(std::make_unique<some_preparation>()));
  ASSERT_TRUE(w.prepared.get().ok());
  EXPECT_FALSE(w.second->tell_prepared(failure("no room for its code")).ok());
  EXPECT_EQ(w.stays(), "no room for its code");
  EXPECT_FALSE(w.first->is_named());
}

TEST(successor, ends_whatever_it_waits_for) {
  workers before_the_session_has_seen_it;
  before_the_session_has_seen_it.first.reset();
  workers while_the_other_prepares;
  while_the_other_prepares.first->prepare(
      std::unique_ptr<session_api::preparation>(std::make_unique<some_preparation>()));
  ASSERT_TRUE(while_the_other_prepares.prepared.get().ok());
  while_the_other_prepares.first.reset();  // without waiting for that
}

TEST(predecessor, does_not_go_on_with_a_session_that_the_first_has_kept) {
  auto channel = make_pair_of(SOCK_STREAM);
  const auto first = *attach(successor_scheme(), std::move(channel[0]));
  predecessor second(*attach(successor_scheme(), std::move(channel[1])));
  const auto until = transport::clock::now() + 10s;
  ASSERT_TRUE(send_image(*first, some_image(1000, 3), until).ok());
  ASSERT_TRUE(second.receive().ok());
  ASSERT_TRUE(send_word(*first, "keep", until).ok());
  EXPECT_FALSE(second.accept().ok());
}

TEST(predecessor, goes_on_where_the_first_has_died_with_everything_given) {
  auto channel = make_pair_of(SOCK_STREAM);
  auto first = *attach(successor_scheme(), std::move(channel[0]));
  predecessor second(*attach(successor_scheme(), std::move(channel[1])));
  ASSERT_TRUE(send_image(*first, some_image(1000, 3), transport::clock::now() + 10s).ok());
  ASSERT_TRUE(second.receive().ok());
  first.reset();
  EXPECT_TRUE(second.accept().ok());
}

TEST(predecessor, takes_no_image_of_impossible_size) {
  auto channel = make_pair_of(SOCK_STREAM);
  const auto first = *attach(successor_scheme(), std::move(channel[0]));
  predecessor second(*attach(successor_scheme(), std::move(channel[1])));
  const std::array<std::uint64_t, 2> sizes{~0ull, 0};
  const iovec part{const_cast<std::uint64_t*>(sizes.data()), sizeof sizes};
  ASSERT_EQ(first->send({&part, 1}).status, transport::io::done);
  EXPECT_FALSE(second.receive().ok());
}

}  // namespace
}  // namespace outboard::backend
