#include "backend/daemon/workers/workers.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/check.hh"
#include "base/log.hh"
#include "wire/features.hh"
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
    start(script);
    client = add_session();
  }
  void start(const std::string& script) {
    all.emplace(loop,
                worker_settings{.command = {"/bin/sh", {"sh", "-c", script}},
                                .device = "mock",
                                .uuids = {},
                                .limits = {.linger_seconds = 60},
                                .pool = {.per_key = 0},
                                .confine = confine_choice::off,
                                .own_environment = [](const char*) -> const char* { return nullptr; }},
                [] {});
    seen.clear();  // without what its start says of confinement
  }
  /// The client's end of it.
  unique_fd add_session(std::uint64_t features = 0) {
    std::array<int, 2> ends{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.hello.features = features;
    session.scheme = "unix";
    session.from = session.peer = session.identity = "user 1";
    session.has = std::make_shared<const share>(share{.account = "user 1"});
    CHECK(!all->begin_session(std::move(session)));
    return unique_fd(ends[1]);
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
  bool run_until_logged(std::string_view word) {
    const auto until = clock::now() + 10s;
    while (lines_with(word) == 0 && clock::now() < until) run_for(10ms);
    return lines_with(word) != 0;
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

/// Sessions 1 and 2 each hold memory of the board with their number, and their clients are away. Session 3
/// asks for room on board 2, and on board 7, of which nobody has anything.
constexpr const char* holder = R"(
import fcntl, os, socket, struct, sys, time
control = socket.socket(fileno=3)
(session,) = struct.unpack_from('<Q', control.recv(1 << 18), 1)
control.recv(1 << 18)  # the door
control.recv(1 << 18)  # the exit
page = os.memfd_create('page', os.MFD_ALLOW_SEALING)
os.ftruncate(page, 4096)
fcntl.fcntl(page, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
os.pwrite(page, struct.pack('<QQQ', 0, session, 1 << 20), 0)
serving, ended, interrupted, make_room = (bytes([int(kind)]) for kind in sys.argv[1:5])
socket.send_fds(control, [serving], [page])
if session < 3:
    control.send(interrupted)
    time.sleep(100)
answers = []
for board in (2, 7):
    control.send(make_room + struct.pack('<BQQ', 0, 1, board))
    answers.append(str(control.recv(100)[1]))
why = ('answers ' + ' '.join(answers)).encode()
control.send(ended + struct.pack('<BQ', 0, len(why)) + why)
)";

TEST_F(workers_test, a_full_device_ends_no_session_that_has_memory_of_another_one_only) {
  const std::string file = testing::TempDir() + "workers_test.holder";
  std::ofstream(file) << holder;
  std::string command = "exec python3 -B " + file;
  for (const control_kind kind :
       {control_kind::serving, control_kind::ended, control_kind::interrupted, control_kind::make_room})
    command += ' ' + std::to_string(static_cast<int>(kind));
  start(command);
  std::vector<unique_fd> clients;
  for (const char* state : {"session 1 is interrupted", "session 2 is interrupted", "answers"}) {
    clients.push_back(add_session(wire::feature_resume));
    ASSERT_TRUE(run_until_logged(state)) << state;
  }
  EXPECT_EQ(lines_with("answers 1 0"), 1u);
  EXPECT_EQ(lines_with("another session needed its memory"), 1u);
  std::vector<std::uint64_t> left;
  for (const session_info& s : all->list_sessions()) left.push_back(s.id);
  EXPECT_EQ(left, std::vector<std::uint64_t>{1}) << "which has been away for longer";
  std::remove(file.c_str());
}

}  // namespace
}  // namespace outboard::backend
