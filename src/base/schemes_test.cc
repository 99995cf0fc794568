#include "base/schemes.hh"

#include <gtest/gtest.h>

#include <set>

namespace outboard {
namespace {

TEST(schemes, are_each_other_and_have_a_form) {
  std::set<std::string_view> names;
  for (const scheme_traits& each : schemes()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.address_form.empty()) << each.name;
    EXPECT_EQ(&traits_of(std::string(each.name) + ":somewhere"), &each);
    EXPECT_EQ(&traits_of(each.name), &each);
    EXPECT_TRUE(each.handed_over_as.empty() || traits_of(each.handed_over_as).name == each.handed_over_as);
    EXPECT_FALSE(each.has_socket_file && each.leaves_host) << each.name;
  }
  EXPECT_TRUE(memory_scheme().has_socket_file);
}

TEST(schemes, that_are_unknown_have_no_traits) {
  for (const char* url : {"", ":", "nobody:there", "unixes:/x"}) {
    EXPECT_TRUE(traits_of(url).name.empty()) << url;
    EXPECT_FALSE(traits_of(url).has_socket_file || traits_of(url).leaves_host) << url;
    EXPECT_FALSE(stays_on_host(url)) << url;
  }
}

TEST(schemes, stay_on_their_host_unless_clients_of_others_can_reach_them) {
  EXPECT_TRUE(stays_on_host("unix:/a") && stays_on_host("shm:/a"));
  EXPECT_FALSE(stays_on_host("tcp:127.0.0.1:1"));
}

TEST(schemes, are_listed_with_their_forms) {
  EXPECT_TRUE(url_forms().starts_with("unix:/path, shm:/path, tcp:host[:port]")) << url_forms();
  const scheme_traits& last = schemes().back();
  const std::string end = std::string(last.name).append(":").append(last.address_form);
  EXPECT_TRUE(url_forms().ends_with(", " + end)) << url_forms();
  EXPECT_EQ(url_forms(" or "), url_forms().substr(0, url_forms().size() - end.size() - 2) + " or " + end);
  EXPECT_EQ(address_of("tcp:[::1]:5"), "[::1]:5");
}

}  // namespace
}  // namespace outboard
