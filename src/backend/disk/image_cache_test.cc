// What lies on a disk may be anything: every damage is noticed, a writer may be killed at any byte, a full or
// locked disk is only a cache less.
#include "backend/disk/image_cache.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.hh"
#include "base/temporary_folder.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using bytes = std::vector<std::byte>;

const std::atomic<bool> go_on{false};
constexpr std::uint64_t plenty = 1 << 20;

class image_cache_test : public testing::Test {
 protected:
  image_cache_test() {
    folder_ = make_temporary_folder("image_cache_test").value();
    log::set_level(log::level::warn);
  }
  ~image_cache_test() override {
    log::set_level(log::level::error);
    fs::remove_all(folder_);
  }

  image_cache cache(std::uint64_t most = plenty) {
    auto opened = image_cache::open(folder_.string(), most);
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  static bytes image(std::uint8_t which, std::size_t size = 1000) {
    bytes out(size, std::byte{which});
    for (std::size_t i = 1; i < size; ++i) out[i] = static_cast<std::byte>(i * 31 + which);
    return out;
  }
  static marshal::image_name name(const bytes& of) { return marshal::name_of(marshal::key_of(of)); }
  fs::path file(const bytes& of) const { return folder_ / image_file(mine_, name(of)); }
  bool has(const image_cache& c, const bytes& of) const {
    const auto found = c.find(mine_, name(of));
    EXPECT_TRUE(!found || found->bytes == of);
    EXPECT_TRUE(!found || found->key == marshal::key_of(of));
    return found.has_value();
  }
  /// As if used that many seconds ago.
  void age(const bytes& of, int seconds) {
    fs::last_write_time(file(of), fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  std::uint64_t held() const {
    std::uint64_t all = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) all += entry.file_size();
    return all;
  }

  fs::path folder_;
  const image_scope mine_{}, other_{std::byte{1}};
};

TEST_F(image_cache_test, what_was_kept_is_found_by_its_name_alone) {
  image_cache c = cache();
  EXPECT_FALSE(has(c, image(1)));
  c.store(mine_, image(1), go_on);
  c.store(mine_, image(2, 0), go_on);
  EXPECT_TRUE(has(c, image(1)));
  EXPECT_TRUE(has(c, image(2, 0)));
  EXPECT_FALSE(has(c, image(3)));
  EXPECT_TRUE(has(cache(), image(1)));  // another daemon's
}

TEST_F(image_cache_test, others_do_not_find_it) {
  image_cache c = cache();
  c.store(mine_, image(1), go_on);
  EXPECT_FALSE(c.find(other_, name(image(1))));
}

TEST_F(image_cache_test, files_are_for_us_alone) {
  const fs::path below = folder_ / "a" / "b";
  auto c = image_cache::open(below.string(), plenty);
  ASSERT_TRUE(c.ok());
  const mode_t before = ::umask(0);
  c->store(mine_, image(1), go_on);
  ::umask(before);
  struct stat about {};
  for (const fs::path& made : {folder_ / "a", below}) {
    ASSERT_EQ(::stat(made.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
  }
  for (const auto& entry : fs::directory_iterator(below)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u) << entry.path();
  }
}

TEST_F(image_cache_test, a_folder_that_others_may_write_is_refused) {
  for (const auto more : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder_, fs::perms::owner_all | more);
    const auto refused = image_cache::open(folder_.string(), plenty);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("may be written by others"));
  }
}

TEST_F(image_cache_test, what_is_no_folder_of_ours_is_refused) {
  fs::create_directory_symlink(folder_, folder_ / "link");
  std::ofstream(folder_ / "file") << "x";
  EXPECT_FALSE(image_cache::open((folder_ / "link").string(), plenty).ok());
  EXPECT_FALSE(image_cache::open((folder_ / "file").string(), plenty).ok());
  EXPECT_FALSE(image_cache::open((folder_ / "file" / "below").string(), plenty).ok());
  EXPECT_FALSE(image_cache::open("relative", plenty).ok());
  EXPECT_FALSE(image_cache::open("", plenty).ok());
  EXPECT_FALSE(image_cache::open("/proc/nowhere", plenty).ok());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
  const auto refused = image_cache::open(folder_.string(), plenty);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("belongs to user 12345"));
}

TEST_F(image_cache_test, every_flipped_bit_is_noticed_and_the_file_goes) {
  image_cache c = cache();
  const bytes good = image(1, 64);
  testing::internal::CaptureStderr();
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    c.store(mine_, good, go_on);
    std::fstream f(file(good), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(bit / 8));
    f.put(static_cast<char>(std::to_integer<unsigned>(good[bit / 8]) ^ (1u << (bit % 8))));
    f.close();
    EXPECT_FALSE(c.find(mine_, name(good))) << bit;
    EXPECT_FALSE(fs::exists(file(good))) << bit;
  }
  testing::internal::GetCapturedStderr();
  c.store(mine_, good, go_on);
  EXPECT_TRUE(has(c, good));
}

TEST_F(image_cache_test, other_lengths_are_noticed_and_huge_ones_take_no_memory) {
  image_cache c = cache();
  const bytes good = image(1, 64);
  testing::internal::CaptureStderr();
  for (const std::uintmax_t size :
       {std::uintmax_t{0}, std::uintmax_t{63}, std::uintmax_t{65}, std::uintmax_t{1} << 40}) {
    c.store(mine_, good, go_on);
    fs::resize_file(file(good), size);
    EXPECT_FALSE(c.find(mine_, name(good))) << size;
    EXPECT_FALSE(fs::exists(file(good))) << size;
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is damaged; it is thrown away"));
}

TEST_F(image_cache_test, another_images_bytes_links_and_folders_are_not_taken) {
  image_cache c = cache();
  testing::internal::CaptureStderr();
  std::ofstream(folder_ / "elsewhere") << "secret";
  c.store(mine_, image(2), go_on);
  fs::rename(file(image(2)), file(image(1)));
  EXPECT_FALSE(c.find(mine_, name(image(1))));
  fs::create_symlink(folder_ / "elsewhere", file(image(1)));
  EXPECT_FALSE(c.find(mine_, name(image(1))));
  fs::remove(file(image(1)));
  fs::create_directory(file(image(1)));
  EXPECT_FALSE(c.find(mine_, name(image(1))));
  fs::remove(file(image(1)));
  ASSERT_EQ(::mkfifo(file(image(1)).c_str(), 0600), 0);
  EXPECT_FALSE(c.find(mine_, name(image(1))));
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere"));
  testing::internal::GetCapturedStderr();
}

TEST_F(image_cache_test, who_keeps_ever_more_has_only_its_own_removed) {
  image_cache c = cache(5000);
  c.store(mine_, image(1), go_on);
  age(image(1), 1000);
  // A version that did not say whose they are has left two.
  for (const char digit : {'a', 'b'}) {
    std::ofstream(folder_ / std::string(64, digit)) << std::string(1000, 'x');
    fs::last_write_time(folder_ / std::string(64, digit), fs::file_time_type::clock::now());
  }
  for (std::uint8_t i = 2; i < 50; ++i) {
    c.store(other_, image(i), go_on);
    EXPECT_TRUE(has(c, image(1))) << int{i};
    EXPECT_TRUE(c.find(other_, name(image(i)))) << int{i};
    EXPECT_LE(held(), 5000u);
  }
  // Nor has it anything of the other one removed once both have as much.
  for (std::uint8_t i = 50; i < 60; ++i) c.store(mine_, image(i), go_on);
  EXPECT_TRUE(c.find(other_, name(image(49))));
  EXPECT_TRUE(has(c, image(59)));
}

TEST_F(image_cache_test, it_is_bounded_and_the_least_recently_used_goes_first) {
  image_cache c = cache(3000);
  for (std::uint8_t i = 1; i <= 3; ++i) c.store(mine_, image(i), go_on), age(image(i), 100 - i);
  EXPECT_TRUE(has(c, image(1)));  // now 2 is the oldest
  c.store(mine_, image(4), go_on);
  EXPECT_FALSE(has(c, image(2)));
  for (const std::uint8_t i : {1, 3, 4}) EXPECT_TRUE(has(c, image(i))) << int{i};
  EXPECT_LE(held(), 3000u);
  c.store(mine_, image(5, 3001), go_on);  // would never fit
  EXPECT_FALSE(has(c, image(5, 3001)));
  EXPECT_TRUE(has(c, image(4)));
  c.store(mine_, image(6, 3000), go_on);
  EXPECT_TRUE(has(c, image(6, 3000)));
  EXPECT_EQ(held(), 3000u);
}

TEST_F(image_cache_test, what_is_not_ours_in_the_folder_stays) {
  std::ofstream(folder_ / "README") << std::string(5000, 'x');
  image_cache c = cache(1500);
  c.store(mine_, image(1), go_on);
  c.store(mine_, image(2), go_on);
  EXPECT_TRUE(has(c, image(2)));
  EXPECT_TRUE(fs::exists(folder_ / "README"));
}

TEST_F(image_cache_test, many_writers_at_once_keep_it_right_and_bounded) {
  constexpr int writers = 6;
  for (int w = 0; w < writers; ++w) {
    if (::fork() == 0) {
      image_cache own = cache(20'000);
      for (int i = 0; i < 60; ++i) own.store(mine_, image(static_cast<std::uint8_t>((w + i) % 40)), go_on);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
  }
  image_cache c = cache(20'000);
  for (int i = 0; i < 400; ++i) (void)has(c, image(static_cast<std::uint8_t>(i % 40)));
  for (int w = 0; w < writers; ++w) {
    int status = 0;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(held(), 20'000u);
  int kept = 0;
  for (int i = 0; i < 40; ++i) kept += has(c, image(static_cast<std::uint8_t>(i)));
  EXPECT_GE(kept, 15);
}

TEST_F(image_cache_test, a_writer_may_be_killed_at_any_moment) {
  const bytes large = image(9, 4u << 20);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      image_cache own = cache(32u << 20);
      for (;;) {
        own.store(mine_, large, go_on);
        fs::remove(file(large));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * (round % 5)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    (void)has(cache(32u << 20), large);  // whole or not at all
  }
  image_cache c = cache(32u << 20);
  fs::remove(file(large));
  c.store(mine_, image(1), go_on);
  EXPECT_TRUE(has(c, image(1)));
  EXPECT_EQ(held(), 1000u);  // nothing half-written is left
}

TEST_F(image_cache_test, a_full_disk_is_told_once_and_leaves_nothing_behind) {
  image_cache c = cache(64u << 20);
  c.store(mine_, image(1), go_on);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{500'000, before.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  c.store(mine_, image(2, 3u << 20), go_on);
  c.store(mine_, image(3, 3u << 20), go_on);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("images are not kept"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_TRUE(has(c, image(1)));
  EXPECT_EQ(held(), 1000u);
}

TEST_F(image_cache_test, a_folder_that_vanishes_or_is_locked_is_no_cache) {
  image_cache c = cache();
  const unique_fd lock(::open((folder_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const std::atomic<bool> stop{true};
  c.store(mine_, image(1), stop);  // does not wait
  EXPECT_FALSE(has(c, image(1)));
  ASSERT_EQ(::flock(lock.get(), LOCK_UN), 0);
  c.store(mine_, image(1), stop);  // told to stop before it has written
  EXPECT_FALSE(has(c, image(1)));
  EXPECT_EQ(held(), 0u);
  fs::remove_all(folder_);
  testing::internal::CaptureStderr();
  c.store(mine_, image(1), go_on);
  EXPECT_FALSE(has(c, image(1)));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("images are not kept"));
}

}  // namespace
}  // namespace outboard::backend
