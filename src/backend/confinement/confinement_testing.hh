// Tests that try what a confined process can still do: each attempt is made in a child that has confined
// itself, and its answers come back by a pipe.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "backend/confinement/confinement.hh"
#include "base/folder_testing.hh"

namespace outboard::backend {

/// What each attempt gave: 0 or an errno.
using codes = std::map<std::string, int>;

class attempts {
 public:
  /// `answer` is a system call's: negative with errno set where it failed.
  void add(const std::string& name, long answer) {
    lines_ += name + " " + std::to_string(answer < 0 ? errno : 0) + "\n";
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

inline codes read_lines(int from) {
  std::string text;
  char some[512];
  for (ssize_t got = 0; (got = ::read(from, some, sizeof some)) > 0;)
    text.append(some, static_cast<std::size_t>(got));
  codes found;
  std::istringstream in(text);
  std::string name;
  for (int code = 0; in >> name >> code;) found[name] = code;
  return found;
}

struct confinement_test : folder_test {
  confinement_test() : folder_test("confinement-test") {
    own = base + "/own";
    secret = base + "/secret";
    std::filesystem::create_directory(own);
    std::ofstream(secret) << "a secret";
  }

  void SetUp() override {
    if (const std::string lacks = confinement_lacks(); !lacks.empty())
      GTEST_SKIP() << "this kernel has no " << lacks;
  }

  /// In a process that `confine` has been called in.
  codes tried(const std::function<void(attempts&)>& attempt,
              const std::function<status(const std::string&)>& confine) {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      attempts made;
      if (const status done = confine(own); !done.ok()) {
        std::fprintf(stderr, "%s\n", done.error().message.c_str());
      } else {
        attempt(made);
      }
      (void)!::write(ends[1], made.lines().data(), made.lines().size());
      ::_exit(0);
    }
    ::close(ends[1]);
    auto found = read_lines(ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return found;
  }

  std::string own, secret;
};

}  // namespace outboard::backend
