#include "frontend/profile/profile_writer.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "base/folder_testing.hh"

namespace outboard::frontend {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class profile_writer_test : public folder_test {
 protected:
  profile_writer_test() : folder_test("profile") {}
  void SetUp() override { ASSERT_TRUE(writer_.begin(file(), false)); }
  std::string file() const { return base + "/profile.json"; }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static marshal::profile_take_reply kernels(std::vector<std::string> names,
                                             std::initializer_list<std::uint32_t> numbers) {
    marshal::profile_take_reply reply;
    reply.names = std::move(names);
    for (const std::uint32_t number : numbers) {
      api::work_record w;
      w.name = number;
      w.begin = 1000, w.end = 2000;
      reply.records.push_back(w);
    }
    return reply;
  }
  void fetch(marshal::profile_take_reply reply) {
    writer_.begin_fetch();
    writer_.add(std::move(reply), 0, 0);
    writer_.end_fetch();
  }

  profile_writer writer_;
};

TEST_F(profile_writer_test, names_count_from_the_first_reply_on) {
  fetch(kernels({"_Z3addPfi", "mul"}, {1}));
  fetch(kernels({"div"}, {0, 2, 3}));
  writer_.end({});
  const std::string all = text();
  EXPECT_THAT(all, StartsWith("["));
  EXPECT_THAT(all, EndsWith("]\n"));
  std::size_t last = 0;
  for (const char* name : {"\"mul\"", "\"add(float*, int)\"", "\"div\"", "\"unknown kernel\""}) {
    const std::size_t found = all.find(name);
    ASSERT_NE(found, all.npos) << name;
    EXPECT_LT(last, found) << name;
    last = found;
  }
}

TEST_F(profile_writer_test, a_reply_that_is_the_last_waits_for_the_end_of_its_fetch) {
  writer_.begin_fetch();
  marshal::profile_take_reply more = kernels({"first"}, {0});
  more.more = true;
  writer_.add(std::move(more), 0, 0);
  writer_.add(kernels({"second"}, {1}), 0, 0);
  writer_.flush();
  EXPECT_THAT(text(), HasSubstr("\"first\""));
  EXPECT_THAT(text(), Not(HasSubstr("\"second\"")));
  writer_.end({});  // what was fetched is written, though its fetch never ended
  EXPECT_THAT(text(), HasSubstr("\"second\""));
}

TEST_F(profile_writer_test, the_last_title_of_a_device_says_the_largest_error_of_the_clocks) {
  constexpr std::int64_t ms = 1'000'000;
  std::int64_t at = 0;
  for (const std::int64_t took : {8'000, 40'500, 3'000}) {
    at += 200 * ms;
    marshal::profile_take_reply reply = kernels({}, {0});
    reply.came = reply.left = static_cast<std::uint64_t>(at + 5'000 * ms);  // another machine's
    writer_.begin_fetch();
    writer_.add(std::move(reply), at, at + took);
    writer_.end_fetch();
  }
  writer_.end({});
  const std::string all = text();
  const std::size_t first = all.find("(clocks agree to 4 us)"), last = all.rfind("(clocks agree to ");
  ASSERT_NE(first, all.npos) << all;
  EXPECT_THAT(all.substr(last), StartsWith("(clocks agree to 21 us)"));
}

TEST_F(profile_writer_test, numbers_of_groups_have_32_bits) {
  marshal::profile_take_reply reply = kernels({}, {0, 0});
  reply.records[1].device = 255;
  fetch(std::move(reply));
  writer_.end({});
  const std::string all = text();
  std::set<std::uint64_t> groups;
  for (std::size_t at = 0; (at = all.find("\"pid\":", at)) != all.npos; ++at)
    groups.insert(std::stoull(all.substr(at + 6)));
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_LT(*groups.rbegin(), std::uint64_t{1} << 32);
}

TEST_F(profile_writer_test, what_comes_after_the_end_is_dropped) {
  writer_.begin_fetch();
  writer_.end({});
  const std::string before = text();
  writer_.add(kernels({"late"}, {0}), 0, 0);
  writer_.end_fetch();
  writer_.add_calls({{"cuInit", answered::waited, 1, 0, 5000}});
  writer_.add_traffic({1, 1});
  writer_.note("late");
  writer_.flush();
  writer_.end({});
  EXPECT_EQ(text(), before);
}

}  // namespace
}  // namespace outboard::frontend
