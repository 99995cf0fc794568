#include "backend/daemon/audit.hh"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct audit_test : folder_test {
  audit_test() : folder_test("audit") { log::set_level(log::level::off); }
  ~audit_test() override { log::set_level(log::level::error); }

  void open() {
    auto file = audit_file::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    audit.take(path, std::move(*file));
  }
  static std::vector<std::string> lines_of(const std::string& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  std::vector<std::string> lines() const { return lines_of(path); }

  const std::string path = base + "/audit.jsonl";
  event_loop loop = std::move(*event_loop::make());
  audit_file audit{loop};
};

TEST_F(audit_test, a_line_says_what_was_done_by_whom_and_what_nobody_vouches_for) {
  open();
  audit.write("session-began", {{"session", std::int64_t{7}}, {"by", std::string("token a")}},
              {{"user", std::string("root")}});
  ASSERT_EQ(lines().size(), 1u);
  const json line = json::parse(lines().front());
  EXPECT_EQ(line["event"], "session-began");
  EXPECT_EQ(line["session"], 7);
  EXPECT_EQ(line["by"], "token a");
  EXPECT_EQ(line["claims"], (json{{"user", "root"}}));
  const std::string time = line["time"];
  EXPECT_EQ(time.size(), std::string("2026-11-28T15:30:00.123Z").size()) << time;
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777u, 0600u);
}

TEST_F(audit_test, whatever_a_client_sends_stays_one_line_of_plain_characters) {
  open();
  const std::string hostile =
      "a\n{\"event\":\"token-made\"}\r\x1b[2J\x7f\xff\xfe \xe2\x80\xae\xc2\x9b\"\\" + std::string(1, '\0');
  audit.write("refused", {{"reason", hostile}}, {{"program", std::string(100000, '\x01')}});
  ASSERT_EQ(lines().size(), 1u);
  const std::string text = lines().front();
  EXPECT_LT(text.size(), 4096u);
  for (const unsigned char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << int{c};
  const json line = json::parse(text);
  EXPECT_EQ(line["event"], "refused");
  const std::string reason = line["reason"];
  EXPECT_EQ(reason.substr(0, 28), hostile.substr(0, 28)) << "it can be read back";
}

TEST_F(audit_test, strangers_have_some_lines_and_are_counted_after_that) {
  open();
  for (int i = 0; i < 5000; ++i)
    audit.write_some("1.2.3.4", "refused", {{"from", "1.2.3.4:" + std::to_string(i)}});
  audit.write_some("5.6.7.8", "refused", {});
  EXPECT_LT(lines().size(), 64u);
  EXPECT_EQ(json::parse(lines().back()).size(), 2u) << "another source has its own";
  bool over = false;
  loop.after(1200ms, [&over] { over = true; });
  while (!over) loop.run_once();
  const json last = json::parse(lines().back());
  EXPECT_EQ(last["event"], "left-out");
  EXPECT_EQ(last["source"], "1.2.3.4");
  EXPECT_GT(last["count"], 4900);
}

TEST_F(audit_test, a_file_that_was_moved_away_is_begun_anew) {
  open();
  audit.write("one", {});
  ASSERT_EQ(::rename(path.c_str(), (path + ".1").c_str()), 0);
  audit.write("two", {});
  audit.write("three", {});
  EXPECT_EQ(lines_of(path + ".1").size(), 1u);
  EXPECT_EQ(lines().size(), 2u);
  // Where none can be made it goes on with the old one.
  ASSERT_EQ(::rename(path.c_str(), (path + ".2").c_str()), 0);
  ASSERT_EQ(::symlink("/dev/null", path.c_str()), 0);
  audit.write("four", {});
  EXPECT_EQ(lines_of(path + ".2").size(), 3u);
}

TEST_F(audit_test, what_is_no_file_of_ours_is_refused) {
  EXPECT_FALSE(audit_file::open(base + "/missing/audit").ok());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(audit_file::open(path).ok());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::symlink((base + "/elsewhere").c_str(), path.c_str()), 0);
  EXPECT_FALSE(audit_file::open(path).ok());
  EXPECT_FALSE(audit_file::open("/dev/full").ok());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  std::ofstream(path) << "";
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  const auto shared = audit_file::open(path);
  ASSERT_FALSE(shared.ok());
  EXPECT_NE(shared.error().message.find("chmod go-w"), std::string::npos) << shared.error().message;
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_TRUE(audit_file::open(path).ok()) << "others may read it";
}

TEST_F(audit_test, lines_that_found_no_room_are_counted_in_the_next_that_does) {
  open();
  audit.write("one", {});
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{static_cast<rlim_t>(about.st_size) + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  audit.write("two", {});
  audit.write("three", {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  audit.write("four", {});
  const std::vector<std::string> now = lines();
  ASSERT_EQ(now.size(), 4u) << "the first, what there was room for, how many are lost, the last";
  EXPECT_EQ(now[1].size(), 10u);
  EXPECT_EQ(json::parse(now[2])["event"], "lost");
  EXPECT_EQ(json::parse(now[2])["count"], 2);
  EXPECT_EQ(json::parse(now[3])["event"], "four");
}

}  // namespace
}  // namespace outboard::backend
