#include "transport/plugin/plugin.hh"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/testing/places.hh"

// What a loaded transport does is shown by the protocol suite (transport/suite_test.cc); here: what cannot be
// loaded.
namespace outboard::transport::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string loopback_plugin = in_build("lib/outboard/transports/outboard-transport-loopback.so");
const std::string refusing_plugin = in_build("src/transport/plugin/outboard_transport_refusing_plugin.so");
const std::string damaged_plugin = in_build("src/transport/plugin/outboard_transport_damaged_plugin.so");

std::string why_not(const std::string& path) {
  auto r = load(path);
  return r ? "loaded" : r.error().message;
}

TEST(plugin, loads_loopback) {
  auto t = load(loopback_plugin);
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ((*t)->scheme(), "loopback");
  auto again = load(loopback_plugin);
  ASSERT_TRUE(again);
  ASSERT_TRUE((*t)->listen("a", {}));
  EXPECT_FALSE((*again)->connect("a", no_deadline));  // each has its own names
}

TEST(plugin, connections_outlive_the_transport) {
  auto t = load(loopback_plugin);
  ASSERT_TRUE(t) << t.error().message;
  auto l = (*t)->listen("a", {});
  auto up = (*t)->connect("a", no_deadline);
  auto down = (*l)->accept(no_deadline);
  ASSERT_TRUE(up && down);
  t->reset();
  l->reset();
  std::byte b{7};
  iovec part{&b, 1};
  EXPECT_EQ((*up)->send({&part, 1}).status, io::done);
  EXPECT_EQ((*down)->receive({&b, 1}).status, io::done);
}

TEST(plugin, names_what_is_wrong) {
  EXPECT_THAT(why_not("/nonexistent/x.so"), AllOf(HasSubstr("/nonexistent/x.so"), HasSubstr("No such file")));
  EXPECT_THAT(why_not("x.so"), HasSubstr("with a / in it"));
  EXPECT_THAT(why_not(""), HasSubstr("with a / in it"));
  EXPECT_THAT(why_not("/tmp/"), HasSubstr("cannot be loaded"));

  std::string text = ::testing::TempDir() + "outboard-no-object-" + std::to_string(::getpid()) + ".so";
  std::ofstream(text) << "not an object";
  EXPECT_THAT(why_not(text), HasSubstr("cannot be loaded"));
  std::remove(text.c_str());

  Dl_info cxx;
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "_ZSt9terminatev"), &cxx), 0);
  EXPECT_THAT(why_not(cxx.dli_fname), HasSubstr("no function outboard_transport_entry"));
  EXPECT_THAT(why_not(refusing_plugin), HasSubstr("does not speak version 1"));
}

TEST(plugin, refuses_damaged_tables) {
  ::setenv("OUTBOARD_DAMAGE", "version", 1);
  EXPECT_THAT(why_not(damaged_plugin), HasSubstr("a table of version 7"));
  ::setenv("OUTBOARD_DAMAGE", "size", 1);
  EXPECT_THAT(why_not(damaged_plugin), HasSubstr("and 16 bytes"));
  ::setenv("OUTBOARD_DAMAGE", "functions", 1);
  EXPECT_THAT(why_not(damaged_plugin), HasSubstr("leaves out functions"));
  ::setenv("OUTBOARD_DAMAGE", "scheme", 1);
  EXPECT_THAT(why_not(damaged_plugin), HasSubstr("'Not A Scheme'"));
  ::unsetenv("OUTBOARD_DAMAGE");
}

}  // namespace
}  // namespace outboard::transport::plugin
