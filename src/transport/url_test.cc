#include "transport/url.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/schemes.hh"

namespace outboard::transport {
namespace {

using ::testing::HasSubstr;

TEST(url, splits_scheme_and_address) {
  EXPECT_EQ(parse_url("unix:/run/outboard.sock")->scheme, "unix");
  EXPECT_EQ(parse_url("unix:/run/outboard.sock")->address, "/run/outboard.sock");
  EXPECT_EQ(parse_url("tcp:[::1]:80")->address, "[::1]:80");
  EXPECT_EQ(parse_url("x-y+2:a")->scheme, "x-y+2");
}

TEST(url, refuses_nonsense_with_a_reason) {
  for (std::string_view text : {"", ":", "unix", "unix:", "/run/x", "Tcp:a:1", "1cp:a:1", "tcp host:1", "-:x",
                                "abcdefghijklmnopq:x", "tcp:\n:1", "tcp:a\x7f:1", "tcp://a:1"}) {
    result<url> r = parse_url(text);
    ASSERT_FALSE(r) << text;
    EXPECT_THAT(r.error().message, HasSubstr("expected " + url_forms(" or "))) << text;
  }
  EXPECT_FALSE(parse_url(std::string_view("tcp:a\0b:1", 9)));
  EXPECT_THAT(parse_url("tcp://a:1").error().message, HasSubstr("without //"));
  std::string endless = "unix:/" + std::string(5000, 'a');
  EXPECT_THAT(parse_url(endless).error().message, HasSubstr("5006 characters, at most 4096"));
  EXPECT_LT(parse_url(endless).error().message.size(), 400u);
}

TEST(host_port, takes_names_and_addresses) {
  EXPECT_EQ(parse_host_port("localhost:80")->host, "localhost");
  EXPECT_EQ(parse_host_port("10.0.0.1:65535")->port, 65535);
  EXPECT_EQ(parse_host_port("a:0")->port, 0);
  EXPECT_EQ(parse_host_port("[::1]:22")->host, "::1");
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]:22")->host, "fe80::1%eth0");
}

TEST(host_port, refuses_nonsense_with_a_reason) {
  auto why = [](std::string_view text) {
    result<host_port> r = parse_host_port(text);
    return r ? std::string("accepted") : r.error().message;
  };
  EXPECT_THAT(why(""), HasSubstr("port is missing"));
  EXPECT_THAT(why("host"), HasSubstr("port is missing"));
  EXPECT_THAT(why("host:"), HasSubstr("port is missing"));
  EXPECT_THAT(why(":80"), HasSubstr("host is missing"));
  EXPECT_THAT(why("host:65536"), HasSubstr("not a number from 0 to 65535"));
  EXPECT_THAT(why("host:99999999999999999999"), HasSubstr("not a number"));
  EXPECT_THAT(why("host:-1"), HasSubstr("not a number"));
  EXPECT_THAT(why("host:+1"), HasSubstr("not a number"));
  EXPECT_THAT(why("host: 1"), HasSubstr("not a number"));
  EXPECT_THAT(why("host:1x"), HasSubstr("not a number"));
  EXPECT_THAT(why("host:0x10"), HasSubstr("not a number"));
  EXPECT_THAT(why("::1:80"), HasSubstr("brackets"));
  EXPECT_THAT(why("[::1:80"), HasSubstr("] is missing"));
  EXPECT_THAT(why("[::1]80"), HasSubstr("port is missing"));
  EXPECT_THAT(why("[host]:80"), HasSubstr("brackets are for IPv6"));
  EXPECT_THAT(why("user@host:80"), HasSubstr("cannot be part of a host name"));
  EXPECT_THAT(why("a/b:80"), HasSubstr("cannot be part"));
  EXPECT_THAT(why(std::string(300, 'h') + ":1"), HasSubstr("at most 255"));
}

TEST(host_port, formats_what_it_parsed) {
  for (std::string_view text : {"localhost:80", "[::1]:22", "127.0.0.1:0"})
    EXPECT_EQ(format_host_port(*parse_host_port(text)), text);
}

// Whatever comes in: an answer, and what is accepted obeys the grammar.
TEST(url, random_bytes_never_surprise) {
  std::mt19937 random(7);
  const std::string alphabet = "tcpunix:[]/.0123456789a@% \n\x80-";
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (int n = static_cast<int>(random() % 20); n > 0; --n) text += alphabet[random() % alphabet.size()];
    if (result<url> u = parse_url(text)) {
      EXPECT_EQ(std::string(u->scheme) + ":" + std::string(u->address), text);
    }
    if (result<host_port> h = parse_host_port(text)) {
      result<host_port> again = parse_host_port(format_host_port(*h));
      ASSERT_TRUE(again) << text;
      EXPECT_EQ(again->host, h->host);
      EXPECT_EQ(again->port, h->port);
    }
  }
}

TEST(url, printable_hides_control_bytes) {
  EXPECT_EQ(printable("a\n\x80z"), "a\\x0a\\x80z");
  EXPECT_LT(printable(std::string(10000, '\n')).size(), 220u);
}

}  // namespace
}  // namespace outboard::transport
