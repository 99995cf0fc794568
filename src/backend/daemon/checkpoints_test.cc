#include "backend/daemon/checkpoints.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <vector>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// A session of each of two users, on a device with a driver, whose helpers do what a shell is told.
struct checkpoints_test : testing::Test {
  static constexpr std::int32_t program = 4711;

  explicit checkpoints_test(const std::string& script = "exec cat <&3 > /dev/null 2>&1") {
    const auto none = [](const char*) -> const char* { return nullptr; };
    // control_kind::serving, in order
    all.emplace(loop,
                worker_settings{
                    .command = {"/bin/sh", {"sh", "-c", "printf '\\003' >&3; exec cat <&3 > /dev/null 2>&1"}},
                    .device = "vendor",
                    .uuids = {},
                    .limits = {},
                    .pool = {.per_key = 0},
                    .confine = confine_choice::off,
                    .own_environment = none},
                [] {});
    asked.emplace(loop, checkpoint_settings{{"/bin/sh", {"sh", "-c", script}}, "vendor", none}, *all);
    for (const char* user : {"user 6", "user 7"}) EXPECT_FALSE(all->begin_session(from(user)));
    const auto until = event_loop::clock::now() + 5s;
    while (!(all->find_session("user 6", "host", program) && all->find_session("user 7", "host", program)) &&
           event_loop::clock::now() < until)
      run_for(5ms);
  }

  accepted_session from(const std::string& user) {
    std::array<int, 2> ends{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    clients.emplace_back(ends[1]);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.scheme = "unix";
    session.from = session.peer = session.identity = user;
    session.has = std::make_shared<const share>(share{.account = user});
    session.hello.host = "host";
    session.hello.process = program;
    return session;
  }
  bool ask(const std::string& user) {
    accepted_session asker = from(user);
    asker.hello.wanted = wire::purpose_checkpoint;
    asker.hello.admin_question = encode(wire::checkpoint_question{.process = program, .devices = {}});
    return !asked->begin(std::move(asker));
  }
  void run_for(event_loop::clock::duration time) {
    bool over = false;
    loop.after(time, [&over] { over = true; });
    while (!over) loop.run_once();
    all->reap();
  }

  event_loop loop = std::move(*event_loop::make());
  std::vector<unique_fd> clients;
  std::optional<workers> all;
  std::optional<checkpoints> asked;
};

TEST_F(checkpoints_test, one_identity_that_asks_and_asks_leaves_helpers_to_others) {
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += ask("user 6");
  EXPECT_GE(taken, 8);
  EXPECT_LE(taken, 12);
  EXPECT_EQ(asked->helpers(), static_cast<std::size_t>(taken));
  EXPECT_TRUE(ask("user 7"));
}

struct with_quick_helpers : checkpoints_test {
  with_quick_helpers() : checkpoints_test("dd bs=100k count=1 <&3 > /dev/null 2>&1") {}
};

TEST_F(with_quick_helpers, a_helper_that_has_ended_makes_room) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(ask("user 6")) << i;
    const auto until = event_loop::clock::now() + 5s;
    while (asked->helpers() != 0 && event_loop::clock::now() < until) run_for(2ms);
    ASSERT_EQ(asked->helpers(), 0u);
  }
}

}  // namespace
}  // namespace outboard::backend
