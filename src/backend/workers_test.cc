#include "backend/workers.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/log.hh"
#include "wire/frame.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;
using clock = event_loop::clock;

std::vector<std::string> seen;

/// Workers that a stranger has taken over: shells, which can write to their control socket too.
struct workers_test : testing::Test {
  workers_test() {
    seen.clear();
    log::set_level(log::level::info);
    log::set_sink([](log::level, std::string_view text) { seen.emplace_back(text); });
  }
  ~workers_test() override {
    log::set_sink(nullptr);
    log::set_level(log::level::error);
  }

  void begin(const std::string& script) {
    all.emplace(loop,
                worker_settings{.command = {"/bin/sh", {"sh", "-c", script}},
                                .device = "mock",
                                .uuids = {},
                                .limits = {},
                                .pool = {.per_key = 0},
                                .confine = confine_choice::off,
                                .own_environment = [](const char*) -> const char* { return nullptr; }},
                [] {});
    seen.clear();  // without what its start says of confinement
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client.reset(ends[1]);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.scheme = "unix";
    session.from = session.peer = session.identity = "user 1";
    session.has = std::make_shared<const share>(share{.account = "user 1"});
    ASSERT_FALSE(all->begin_session(std::move(session)));
  }
  /// Runs the loop as the daemon does; returns the longest time between two timers that should be 5 ms apart.
  clock::duration run_for(clock::duration time) {
    const auto until = clock::now() + time;
    auto last = clock::now();
    clock::duration longest{};
    while (clock::now() < until && all->sessions() != 0) {
      loop.after(5ms, [&] {
        const auto now = clock::now();
        longest = std::max(longest, now - last);
        last = now;
      });
      const auto before = last;
      while (last == before) loop.run_once();
      all->reap();
    }
    return longest;
  }
  std::string refusal() {
    std::array<std::byte, 4096> room{};
    const ssize_t got = ::recv(client.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(wire::header_size)) return "none";
    const auto why = wire::decode_refusal(
        std::span<const std::byte>(room).first(static_cast<std::size_t>(got)).subspan(wire::header_size));
    return why.ok() ? why->message : why.error().message;
  }
  static std::size_t lines_with(std::string_view word) {
    return static_cast<std::size_t>(
        std::ranges::count_if(seen, [&](const std::string& line) { return line.find(word) != line.npos; }));
  }

  event_loop loop = std::move(*event_loop::make());
  std::optional<workers> all;
  unique_fd client;
};

std::chrono::duration<double> thread_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

TEST_F(workers_test, one_that_floods_its_control_socket_takes_little_of_the_daemons_time) {
  // control_kind::ended in order, with an empty text: well-formed, and the daemon keeps the last one.
  const std::string ended("\4\1\0\0\0\0\0\0\0\0", 10), file = testing::TempDir() + "workers_test.messages";
  {
    std::ofstream out(file);
    for (int i = 0; i < 100'000; ++i) out << ended;
  }
  begin("while :; do dd bs=10 if=" + file + " >&3 2> /dev/null; done");
  const auto longest = run_for(700ms);
  EXPECT_EQ(all->sessions(), 1u) << "a fast worker is slowed down, not ended";
  EXPECT_LT(longest, 300ms);
  const auto before = thread_time();
  run_for(500ms);
  EXPECT_LT((thread_time() - before).count(), 0.08) << "seconds of half of one";
  std::remove(file.c_str());
}

TEST_F(workers_test, one_that_sends_an_unknown_message_is_ended_with_one_line) {
  begin("while :; do printf '\\143x' >&3; done");
  run_for(10s);
  EXPECT_EQ(all->sessions(), 0u);
  EXPECT_EQ(lines_with("is ended: it sent a message of kind 99 that is unknown or malformed"), 1u);
  EXPECT_EQ(lines_with(""), 3u) << "and those of the session's begin and end";
  EXPECT_EQ(refusal(),
            "the server ended its worker: it sent a message of kind 99 that is unknown or malformed");
}

TEST_F(workers_test, one_that_sends_a_malformed_message_is_ended) {
  // ready, ended and failed cut short; an offer of nothing; a second "serving"; one that only a helper sends.
  for (const char* message :
       {"\\002x", "\\004\\001", "\\006\\377", "\\012", "\\003' >&3; printf '\\003", "\\010"}) {
    SCOPED_TRACE(message);
    begin(std::string("printf '") + message + "' >&3; sleep 100");
    run_for(10s);
    EXPECT_EQ(all->sessions(), 0u);
    EXPECT_EQ(lines_with("that is unknown or malformed"), 1u + 1u) << "its own, and in the session's end";
    seen.clear();
  }
}

TEST_F(workers_test, one_that_does_not_read_its_answers_is_ended) {
  // control_kind::withdraw of a token that nobody has: each is answered.
  begin("while :; do printf '\\016\\001%032d' 0 >&3; done");
  run_for(10s);
  EXPECT_EQ(all->sessions(), 0u);
  EXPECT_EQ(lines_with("is ended: control socket: Resource temporarily unavailable"), 1u);
}

TEST_F(workers_test, one_that_closes_its_control_socket_costs_nothing) {
  begin("sleep 0.2; exec 3>&-; sleep 100");
  run_for(500ms);
  const auto before = thread_time();
  run_for(500ms);
  EXPECT_LT((thread_time() - before).count(), 0.1);
  client.reset();
  run_for(10s);
  EXPECT_EQ(all->sessions(), 0u);
}

}  // namespace
}  // namespace outboard::backend
