#include "backend/gate/gate_keeper.hh"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <fstream>

#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;
using clock = event_loop::clock;

/// A shell in the place of the gate: it answers with what the file `says` holds, as a packet, or says nothing
/// where there is none.
constexpr const char* script = "echo $$ >> pids; [ -e says ] && cat says >&3; exec sleep 100";

class gate_keepers : public folder_test {
 protected:
  gate_keepers() : folder_test("outboard-gate") { terms_.certificate = base + "/certificate"; }
  ~gate_keepers() override {
    for (const pid_t process : processes()) ::kill(process, SIGKILL), ::waitpid(process, nullptr, 0);
  }

  /// As of a gate that is ready.
  void gates_answer(const std::string& fingerprint) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    const unique_fd in(pair[0]), out(pair[1]);
    const gate_ready_message ready{fingerprint, "", "a shell"};
    ASSERT_TRUE(send_control(in.get(), control_kind::gate_ready, payload_of(ready)).ok());
    std::array<char, 4096> packet{};
    const ssize_t size = ::recv(out.get(), packet.data(), packet.size(), 0);
    std::ofstream(base + "/says").write(packet.data(), size);
  }
  void gates_hang() { std::filesystem::remove(base + "/says"); }
  void change_the_certificate() { std::ofstream(terms_.certificate, std::ios::app) << "x"; }

  std::vector<pid_t> processes() const {
    std::vector<pid_t> all;
    std::ifstream file(base + "/pids");
    for (pid_t one = 0; file >> one;) all.push_back(one);
    return all;
  }
  bool was_killed(pid_t process) {
    int how = 0;
    for (const auto until = clock::now() + 10s; clock::now() < until;)
      if (::waitpid(process, &how, WNOHANG) == process) return WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    return false;
  }

  /// Runs the loop until then, and returns how long a timer of 1 ms waited at most.
  clock::duration run_until(const std::function<bool()>& done) {
    clock::duration longest{};
    const auto end = clock::now() + 10s;
    while (!done() && clock::now() < end) {
      const auto began = clock::now();
      bool called = false;
      loop_.after(1ms, [&] { called = true; });
      while (!called) loop_.run_once();
      longest = std::max(longest, clock::now() - began);
    }
    EXPECT_TRUE(done());
    return longest;
  }

  /// Long beside what the loop may wait, short for a test.
  static constexpr auto patience = 1000ms;

  event_loop loop_ = std::move(*event_loop::make());
  gate_begin_message terms_;
  gate_keeper keeper_{loop_,
                      {"/bin/sh", {"sh", "-c", "cd " + base + " && " + script}},
                      [](const char*) -> const char* { return nullptr; },
                      [](gate_arrival&&) {},
                      patience};
};

TEST_F(gate_keepers, a_gate_that_hangs_while_it_starts_is_ended_and_the_loop_goes_on_meanwhile) {
  gates_answer("first");
  ASSERT_TRUE(keeper_.start(terms_).ok());
  gates_hang();
  change_the_certificate();
  const auto began = clock::now();
  keeper_.reload();
  EXPECT_LT(clock::now() - began, patience / 2);
  EXPECT_LT(run_until([&] { return processes().size() == 2 && clock::now() - began > patience * 5 / 4; }),
            patience / 2);
  EXPECT_EQ(keeper_.facts().fingerprint, "first");
  EXPECT_TRUE(was_killed(processes().back()));
  gates_answer("second");
  change_the_certificate();
  keeper_.reload();
  run_until([&] { return keeper_.facts().fingerprint == "second"; });
}

TEST_F(gate_keepers, a_gate_that_was_starting_takes_the_place_of_one_that_ends_meanwhile) {
  gates_answer("first");
  ASSERT_TRUE(keeper_.start(terms_).ok());
  gates_answer("second");
  change_the_certificate();
  keeper_.reload();
  ::kill(processes().front(), SIGKILL);
  run_until([&] { return keeper_.facts().fingerprint == "second"; });
  const auto until = clock::now() + 200ms;
  run_until([&] { return clock::now() > until; });
  EXPECT_EQ(processes().size(), 2u);
}

TEST_F(gate_keepers, a_gate_that_ends_is_started_again) {
  gates_answer("first");
  ASSERT_TRUE(keeper_.start(terms_).ok());
  gates_answer("again");
  ::kill(processes().front(), SIGKILL);
  run_until([&] { return keeper_.facts().fingerprint == "again"; });
}

TEST_F(gate_keepers, the_first_gate_is_waited_for_no_longer_than_its_time) {
  const auto began = clock::now();
  const status started = keeper_.start(terms_);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().message, "TLS: the gate did not start in time");
  EXPECT_LT(clock::now() - began, 10s);
  EXPECT_TRUE(was_killed(processes().back()));
}

}  // namespace
}  // namespace outboard::backend
