#include "backend/disk/compiler_cache.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "backend/disk/folder.hh"
#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

struct compiler_cache_test : folder_test {
  compiler_cache_test() : folder_test("compiler-cache-test") {
    settings = {base + "/cache", 4 * MiB, MiB};
    one.fill(std::byte{1});
    other.fill(std::byte{2});
  }

  cache_lease lease(const image_scope& scope) {
    auto had = lease_compiler_cache(settings, scope);
    CHECK(had.ok());
    return std::move(*had);
  }
  std::string problem() {
    const auto had = lease_compiler_cache(settings, one);
    return had.ok() ? "" : had.error().message;
  }

  /// As PoCL: a folder for the program, used `age` seconds ago.
  static void compile(const std::string& folder, const std::string& program, std::uint64_t size, int age) {
    const std::string unit = folder + "/pocl/" + program;
    fs::create_directories(unit + "/kernel/64-1-1");
    std::ofstream(unit + "/kernel/64-1-1/kernel.so") << std::string(size, 'x');
    std::ofstream(unit + "/last_accessed");
    const auto used = fs::file_time_type::clock::now() - std::chrono::seconds(age);
    for (const char* name : {"/kernel/64-1-1/kernel.so", "/last_accessed", "/kernel/64-1-1", "/kernel", ""})
      fs::last_write_time(unit + name, used);
  }
  bool kept(const std::string& folder, const std::string& program) {
    return fs::exists(folder + "/pocl/" + program + "/kernel/64-1-1/kernel.so");
  }

  void tidy() {
    const status done = tidy_compiler_cache(settings);
    EXPECT_TRUE(done.ok()) << done.error().message;
    EXPECT_TRUE(fs::is_empty(base + "/cache/.gone"));
  }

  compiler_cache_settings settings;
  image_scope one{}, other{};
};

TEST_F(compiler_cache_test, gives_each_identity_its_own_folder_again_and_again) {
  const cache_lease first = lease(one), beside = lease(one);
  EXPECT_EQ(first.folder, beside.folder);
  EXPECT_NE(lease(other).folder, first.folder);
  for (const kept_kind& kind : kept_kinds) {
    struct stat about {};
    ASSERT_EQ(::stat((first.folder + "/" + kind.name).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0700u);
  }
  EXPECT_EQ(first.folder.find("0101"), std::string::npos) << "the name does not tell the scope";
}

TEST_F(compiler_cache_test, keeps_what_fits) {
  const std::string folder = lease(one).folder;
  compile(folder, "AA/one", 400 * KiB, 1000);
  compile(folder, "BB/two", 400 * KiB, 2000);
  std::ofstream(folder + "/compute/index") << "x";
  tidy();
  EXPECT_TRUE(kept(folder, "AA/one") && kept(folder, "BB/two") && fs::exists(folder + "/compute/index"));
  EXPECT_EQ(lease(one).folder, folder);
}

TEST_F(compiler_cache_test, removes_the_programs_that_were_not_used_for_longest) {
  const std::string folder = lease(one).folder;
  for (const auto& [program, age] :
       {std::pair{"AA/new", 10}, {"AA/old", 300}, {"BB/older", 400}, {"BB/newer", 5}})
    compile(folder, program, 300 * KiB, age);
  std::ofstream(folder + "/pocl/tempfile_of_a_dead_one");
  tidy();
  EXPECT_TRUE(kept(folder, "AA/new") && kept(folder, "BB/newer"));
  EXPECT_FALSE(fs::exists(folder + "/pocl/AA/old") || fs::exists(folder + "/pocl/BB/older"));
  EXPECT_EQ(lease(one).folder, folder);
}

TEST_F(compiler_cache_test, removes_nvidias_all_or_nothing) {
  const std::string folder = lease(one).folder;
  fs::create_directories(folder + "/compute/a/b");
  std::ofstream(folder + "/compute/a/b/code") << std::string(600 * KiB, 'x');
  std::ofstream(folder + "/compute/index") << "x";
  for (const char* file : {"/compute/a/b/code", "/compute/index", "/compute/a", "/compute/a/b"})
    fs::last_write_time(folder + file, fs::file_time_type::clock::now() - std::chrono::seconds(100));
  compile(folder, "AA/newer", 600 * KiB, 10);
  tidy();
  EXPECT_TRUE(kept(folder, "AA/newer"));
  EXPECT_TRUE(fs::is_empty(folder + "/compute"));
}

TEST_F(compiler_cache_test, touches_nothing_of_sessions_and_gives_later_ones_an_empty_folder) {
  std::optional<cache_lease> running = lease(one);
  const std::string folder = running->folder;
  compile(folder, "AA/one", 2 * MiB, 1000);
  tidy();
  EXPECT_TRUE(kept(folder, "AA/one"));
  const cache_lease later = lease(one);
  EXPECT_NE(later.folder, folder);
  EXPECT_TRUE(fs::is_empty(later.folder + "/pocl"));
  tidy();
  EXPECT_TRUE(kept(folder, "AA/one"));
  running.reset();
  tidy();
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(lease(one).folder, later.folder);
}

TEST_F(compiler_cache_test, removes_whole_identities_that_were_not_used_for_longest_but_none_with_sessions) {
  settings.size = 2 * MiB;
  image_scope third{};
  std::vector<std::string> folders;
  const cache_lease running = lease(one);
  for (const image_scope& scope : {one, other, third}) {
    folders.push_back(lease(scope).folder);
    compile(folders.back(), "AA/program", 900 * KiB, 10);
    const auto age = std::chrono::seconds(100 - 10 * folders.size());
    fs::last_write_time(fs::path(folders.back()).parent_path(), fs::file_time_type::clock::now() - age);
  }
  tidy();
  EXPECT_TRUE(kept(folders[0], "AA/program")) << "it was not used for longest, but a session runs";
  EXPECT_FALSE(fs::exists(fs::path(folders[1]).parent_path()));
  EXPECT_TRUE(kept(folders[2], "AA/program"));
}

TEST_F(compiler_cache_test, throws_away_what_no_compiler_makes) {
  const auto deep = [](const std::string& folder) {
    std::string path = folder + "/pocl";
    for (int i = 0; i < 20; ++i) fs::create_directory(path += "/d");
  };
  const auto many = [](const std::string& folder) {
    for (int i = 0; i < 1000; ++i) std::ofstream(folder + "/pocl/" + std::to_string(i));
  };
  const auto many_folders = [](const std::string& folder) {
    for (int i = 0; i < 400; ++i) fs::create_directory(folder + "/pocl/" + std::to_string(i));
  };
  const auto pipe = [](const std::string& folder) { ::mkfifo((folder + "/compute/pipe").c_str(), 0600); };
  const auto huge = [](const std::string& folder) {
    const unique_fd file(::open((folder + "/pocl/huge").c_str(), O_CREAT | O_WRONLY, 0600));
    EXPECT_EQ(::ftruncate(file.get(), 1ll << 40), 0);
  };
  int number = 0;
  for (const std::function<void(const std::string&)>& what :
       std::initializer_list<std::function<void(const std::string&)>>{deep, many, many_folders, pipe, huge}) {
    const std::string folder = lease(one).folder;
    what(folder);
    tidy();
    const cache_lease after = lease(one);
    for (const kept_kind& kind : kept_kinds)
      EXPECT_TRUE(fs::is_empty(after.folder + "/" + kind.name)) << number;
    ++number;
  }
}

TEST_F(compiler_cache_test, counts_and_removes_links_and_not_what_they_lead_to) {
  fs::create_directories(base + "/elsewhere/AA/one");
  std::ofstream(base + "/elsewhere/AA/one/large") << std::string(3 * MiB, 'x');
  const std::string folder = lease(one).folder;
  fs::create_directory_symlink(base + "/elsewhere", folder + "/pocl/AA");
  fs::create_directory_symlink(base + "/elsewhere", folder + "/compute/a");
  fs::create_directory_symlink("/", folder + "/pocl/root");
  tidy();
  EXPECT_TRUE(fs::is_symlink(folder + "/pocl/AA")) << "it is small";
  compile(folder, "BB/large", 2 * MiB, 0);
  tidy();
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder + "/pocl/AA")));
  EXPECT_EQ(fs::file_size(base + "/elsewhere/AA/one/large"), 3 * MiB);
}

TEST_F(compiler_cache_test, goes_on_where_another_was_killed_and_leaves_alone_what_is_not_its_own) {
  const std::string folder = lease(one).folder;
  fs::create_directories(base + "/cache/.gone/1-1/left");
  std::ofstream(base + "/cache/.gone/1-2") << "left";
  fs::create_directories(base + "/cache/somebody's/1");
  tidy();
  EXPECT_TRUE(fs::exists(base + "/cache/somebody's/1"));
  EXPECT_EQ(lease(one).folder, folder);
}

TEST_F(compiler_cache_test, gives_none_while_it_is_removed) {
  const cache_lease running = lease(one);
  const auto folder = open_own_folder(running.folder);
  ASSERT_TRUE(folder.ok());
  ::flock(running.lock.get(), LOCK_UN);
  ASSERT_EQ(::flock(folder->get(), LOCK_EX), 0);
  const auto had = lease_compiler_cache(settings, one);
  ASSERT_FALSE(had.ok());
  EXPECT_EQ(had.error().next, action::retry);
}

TEST_F(compiler_cache_test, says_why_a_folder_does_not_do) {
  std::ofstream(base + "/file") << "x";
  settings.directory = base + "/file/cache";
  EXPECT_THAT(problem(), testing::HasSubstr("cannot make " + base + "/file/cache"));
  settings.directory = base + "/open";
  fs::create_directory(settings.directory);
  fs::permissions(settings.directory, fs::perms::all);
  EXPECT_THAT(problem(), testing::HasSubstr("may be written by others"));
  fs::permissions(settings.directory, fs::perms::owner_all);
  EXPECT_EQ(problem(), "");
  settings.directory = "/proc/self/fdinfo/cache";
  EXPECT_THAT(problem(), testing::HasSubstr("cannot make"));
}

/// In a name space of its own, where a disk of memory lies in place of the cache.
struct compiler_cache_disk_test : compiler_cache_test {
  static constexpr int not_here = 77;

  static bool become_master_of_a_name_space() {
    const auto same = [](auto number) {
      return std::to_string(number) + " " + std::to_string(number) + " 1";
    };
    const std::string user = same(::geteuid()), group = same(::getegid());
    if (::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user;
    std::ofstream("/proc/self/gid_map") << group;
    return true;
  }

  /// What the cache says to it, or nothing where nobody can make name spaces.
  std::optional<std::string> problem_with(const char* options, unsigned long flags) {
    fs::create_directory(settings.directory);
    fs::permissions(settings.directory, fs::perms::owner_all);
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const bool mounted = (::unshare(CLONE_NEWNS) == 0 || become_master_of_a_name_space()) &&
                           ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                           ::mount("none", settings.directory.c_str(), "tmpfs", flags, options) == 0;
      if (!mounted) ::_exit(not_here);
      const std::string said = problem();
      (void)!::write(ends[1], said.data(), said.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    char text[512];
    const ssize_t got = ::read(ends[0], text, sizeof text);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(status == 0 || WEXITSTATUS(status) == not_here);
    return status == 0 ? std::optional(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))))
                       : std::nullopt;
  }
};

TEST_F(compiler_cache_disk_test, says_which_disks_do_not_do) {
  const auto good = problem_with("mode=0700", 0);
  if (!good) GTEST_SKIP() << "nobody can mount anything here";
  EXPECT_EQ(*good, "");
  EXPECT_THAT(*problem_with("mode=0700,size=1m", 0), testing::HasSubstr("is full: it has 1 MiB left"));
  EXPECT_THAT(*problem_with("mode=0700", MS_RDONLY), testing::HasSubstr("read-only"));
  EXPECT_THAT(*problem_with("mode=0700", MS_NOEXEC), testing::HasSubstr("noexec"));
}

TEST_F(compiler_cache_test, makes_identities_folders_only_where_nobody_put_something_else) {
  const std::string folder = lease(one).folder;
  fs::remove_all(folder);
  fs::create_directory_symlink(base, folder);
  EXPECT_THAT(problem(), testing::HasSubstr("cannot open " + folder));
  fs::remove(folder);
  fs::create_directory(folder);
  fs::create_directory_symlink(base, folder + "/pocl");
  EXPECT_THAT(problem(), testing::HasSubstr("cannot open " + folder + "/pocl"));
}

}  // namespace
}  // namespace outboard::backend
