#include "base/sha256.hh"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex.hh"
#include "base/sha256_blocks.hh"

namespace outboard {
namespace {

std::span<const std::byte> bytes_of(std::string_view s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

TEST(sha256, gives_the_vectors_of_fips_180_4) {
  EXPECT_EQ(hex(sha256(bytes_of(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes_of(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, does_not_depend_on_how_the_data_is_cut) {
  const std::string text(200, 'x');
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string_view whole(text.data(), length);
    const sha256_digest once = sha256(bytes_of(whole));
    for (const std::size_t cut : {1u, 55u, 63u, 64u, 65u, 128u}) {
      sha256_hasher hasher;
      for (std::size_t at = 0; at < length; at += cut) hasher.update(bytes_of(whole.substr(at, cut)));
      EXPECT_EQ(hasher.finish(), once) << length << " in pieces of " << cut;
    }
  }
}

TEST(sha256, is_the_same_by_the_processors_instructions) {
  if (!sha256_has_instructions()) GTEST_SKIP() << "this processor has none";
  std::mt19937 random(1);
  for (const std::size_t count : {1u, 2u, 3u, 17u}) {
    std::vector<std::byte> data(64 * count + 1);
    for (std::byte& b : data) b = static_cast<std::byte>(random());
    sha256_state written_out, by_instructions;
    for (auto& word : written_out) word = random();
    by_instructions = written_out;
    sha256_blocks_portable(written_out, data.data() + 1, count);  // at an odd address
    sha256_blocks_by_instructions(by_instructions, data.data() + 1, count);
    EXPECT_EQ(written_out, by_instructions) << count;
  }
}

TEST(hmac_sha256, gives_the_vectors_of_rfc_4231) {
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(20, '\x0b')), bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(131, '\xaa')),
                            bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(equal_in_constant_time, compares_all_bytes) {
  EXPECT_TRUE(equal_in_constant_time(bytes_of("abc"), bytes_of("abc")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abd")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abcd")));
  EXPECT_TRUE(equal_in_constant_time({}, {}));
}

}  // namespace
}  // namespace outboard
