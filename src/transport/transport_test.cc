#include "transport/transport.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/schemes.hh"
#include "transport/loopback/loopback.hh"
#include "transport/tcp/tcp.hh"
#include "transport/unix/unix.hh"

namespace outboard::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

registry make_registry() {
  registry all;
  all.add(make_unix());
  all.add(make_tcp());
  all.add(make_loopback());
  return all;
}

TEST(registry, finds_by_scheme_in_the_order_added) {
  registry all = make_registry();
  EXPECT_THAT(all.schemes(), ElementsAre("unix", "tcp", "loopback"));
  ASSERT_NE(all.find("tcp"), nullptr);
  EXPECT_EQ(all.find("tcp")->scheme(), "tcp");
  EXPECT_EQ(all.find("TCP"), nullptr);
}

TEST(registry, connects_by_url) {
  registry all = make_registry();
  auto l = all.listen("loopback:here", {});
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_EQ((*l)->url(), "loopback:here");
  auto c = all.connect((*l)->url(), no_deadline);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ((*c)->describe(), "loopback:here");
}

TEST(registry, an_unknown_transport_names_the_known_ones) {
  registry all = make_registry();
  EXPECT_THAT(
      all.connect("rdma:host:1", no_deadline).error().message,
      HasSubstr("no transport is called 'rdma:' (in 'rdma:host:1'); known are unix:, tcp:, loopback:"));
  EXPECT_THAT(all.listen("rdma:host:1", {}).error().message, HasSubstr("known are unix:, tcp:"));
  EXPECT_THAT(registry().connect("unix:/x", no_deadline).error().message, HasSubstr("known are none"));
  EXPECT_THAT(all.connect("host:1", no_deadline).error().message,
              HasSubstr("no transport is called 'host:'"));
  EXPECT_THAT(all.connect("/run/x", no_deadline).error().message, HasSubstr("expected " + url_forms(" or ")));
}

}  // namespace
}  // namespace outboard::transport
