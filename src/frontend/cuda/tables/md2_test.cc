#include "frontend/cuda/tables/md2.hh"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/hex.hh"

namespace outboard::frontend::cuda {
namespace {

std::span<const std::uint8_t> bytes(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

std::string hex(const md2_digest& digest) { return outboard::hex(std::as_bytes(std::span(digest))); }

std::string md2_of(std::string_view s) {
  md2 hash;
  hash.update(bytes(s));
  return hex(hash.finish());
}

TEST(md2, gives_the_test_vectors_of_rfc_1319) {
  EXPECT_EQ(md2_of(""), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(md2_of("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(md2_of("abc"), "da853b0d3f88d99b30283a69e6ded6bb");
  EXPECT_EQ(md2_of("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(md2_of("abcdefghijklmnopqrstuvwxyz"), "4e8ddff3650292ab5a4108c3aa47940b");
  EXPECT_EQ(md2_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "da33def2a42df13975352846c30338cd");
  EXPECT_EQ(md2_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST(md2, does_not_depend_on_how_the_message_is_cut) {
  const std::string text(100, 'x');
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    md2 hash;
    hash.update(bytes(std::string_view(text).substr(0, cut)));
    hash.update(bytes(std::string_view(text).substr(cut)));
    EXPECT_EQ(hex(hash.finish()), md2_of(text));
  }
}

// The construction written out once more from RFC 2104: H(K^opad, H(K^ipad, text)).
TEST(hmac_md2, is_two_nested_hashes) {
  for (const std::string& key :
       {std::string("0123456789abcdef"), std::string("short"), std::string(40, 'k')}) {
    std::string k = key;
    if (k.size() > 16) {
      md2 hash;
      hash.update(bytes(k));
      const md2_digest d = hash.finish();
      k.assign(reinterpret_cast<const char*>(d.data()), d.size());
    }
    k.resize(16, '\0');
    std::string inner, outer;
    for (const char c : k) {
      inner += static_cast<char>(c ^ 0x36);
      outer += static_cast<char>(c ^ 0x5c);
    }
    md2 first;
    first.update(bytes(inner + "what do ya want for nothing?"));
    const md2_digest digest = first.finish();
    md2 second;
    second.update(bytes(outer));
    second.update(digest);
    EXPECT_EQ(hmac_md2(bytes(key), bytes("what do ya want for nothing?")), second.finish());
  }
}

TEST(hmac_md2, keeps_its_value) {
  EXPECT_EQ(hex(hmac_md2(bytes("0123456789abcdef"), bytes("outboard"))), "4895eafef6825cb3b34391adf368ea5d");
}

}  // namespace
}  // namespace outboard::frontend::cuda
