#include "ptx/text/fatbin.hh"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstring>

namespace outboard::ptx {
namespace {

struct spec {
  std::uint16_t kind = 1;
  std::uint32_t capability = 75;
  std::uint64_t flags = 0x11;
  std::string text = ".version 9.0\n";
  std::uint32_t extra_header = 0;  ///< options between struct and payload
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string entry(const spec& s) {
  std::string payload = s.text;
  std::uint64_t unpacked = 0;
  std::uint32_t packed = 0;
  if (s.flags & 0x8000) {
    payload.resize(ZSTD_compressBound(s.text.size()));
    payload.resize(ZSTD_compress(payload.data(), payload.size(), s.text.data(), s.text.size(), 3));
  } else if (s.flags & 0x2000) {
    payload.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(s.text.size()))));
    payload.resize(static_cast<std::size_t>(LZ4_compress_default(
        s.text.data(), payload.data(), static_cast<int>(s.text.size()), static_cast<int>(payload.size()))));
  }
  if (s.flags & 0xa000) packed = static_cast<std::uint32_t>(payload.size()), unpacked = s.text.size();
  payload.resize((payload.size() + 8) & ~std::size_t{7});
  std::string out;
  put<std::uint16_t>(out, s.kind), put<std::uint16_t>(out, 0x0101),
      put<std::uint32_t>(out, 64 + s.extra_header);
  put<std::uint64_t>(out, payload.size()), put<std::uint32_t>(out, packed), put<std::uint32_t>(out, 0);
  put<std::uint16_t>(out, 0), put<std::uint16_t>(out, 9), put<std::uint32_t>(out, s.capability);
  put<std::uint32_t>(out, 0), put<std::uint32_t>(out, 0), put<std::uint64_t>(out, s.flags);
  put<std::uint64_t>(out, 0), put<std::uint64_t>(out, unpacked);
  out.append(s.extra_header, '\0');
  return out + payload;
}

std::string fatbin(std::initializer_list<spec> specs) {
  std::string body;
  for (const auto& s : specs) body += entry(s);
  std::string out;
  put<std::uint32_t>(out, fatbin_magic), put<std::uint16_t>(out, 1), put<std::uint16_t>(out, 16);
  put<std::uint64_t>(out, body.size());
  return out + body;
}

std::span<const std::byte> bytes(const std::string& s) { return std::as_bytes(std::span(s)); }

TEST(fatbin_test, plain_zstd_and_lz4_texts_come_out_alike) {
  std::string text = "\n\n.version 9.0\n";
  for (int n = 0; n < 5000; ++n) text += "add.s32 %r" + std::to_string(n) + ", %r1, %r2;\n";
  for (const std::uint64_t flags : {0x11, 0x8011, 0x2011}) {
    const auto image = fatbin({{1, 75, flags, text, 40}});
    const auto got = image_ptx(bytes(image), 75);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, text) << flags;
  }
}

TEST(fatbin_test, entries_are_described) {
  const auto image = fatbin({{2, 90, 0x11, "machine code"}, {1, 75}, {1, 90, 0x100011}, {8, 90, 0x10011}});
  const auto got = fatbin_entries(bytes(image));
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), 4u);
  EXPECT_EQ((*got)[0].kind, entry_kind::elf);
  EXPECT_EQ((*got)[1].capability, 75u);
  EXPECT_EQ((*got)[1].version_major, 9);
  EXPECT_TRUE((*got)[2].arch_specific);
  EXPECT_EQ((*got)[3].kind, entry_kind::lto);
}

TEST(fatbin_test, the_highest_at_or_below_is_chosen_else_the_lowest_above) {
  const auto image = fatbin({{1, 80}, {1, 75}, {2, 86}, {1, 90}});
  const auto entries = fatbin_entries(bytes(image));
  ASSERT_TRUE(entries);
  EXPECT_EQ(choose_ptx(*entries, 75), 1);
  EXPECT_EQ(choose_ptx(*entries, 86), 0);
  EXPECT_EQ(choose_ptx(*entries, 120), 3);
  EXPECT_EQ(choose_ptx(*entries, 50), 1);
}

TEST(fatbin_test, machine_code_only_asks_for_another_way) {
  const auto image = fatbin({{2, 75, 0x11, "machine code"}});
  const auto got = image_ptx(bytes(image), 75);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().next, action::fall_back);
  const std::string elf =
      "\x7f"
      "ELF and more";
  EXPECT_EQ(image_ptx(bytes(elf), 75).error().next, action::fall_back);
}

TEST(fatbin_test, plain_text_passes) {
  const std::string text = std::string("// c\n.version 7.0\n") + '\0' + "padding";
  const auto got = image_ptx(bytes(text), 75);
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, "// c\n.version 7.0\n");
  EXPECT_EQ(image_ptx(bytes("nonsense"), 75).error().next, action::fail);
  EXPECT_FALSE(image_ptx({}, 75));
}

TEST(fatbin_test, impossible_sizes_are_refused_before_memory_is_taken) {
  auto image = fatbin({{1, 75, 0x8011, std::string(1000, 'x')}});
  const std::uint64_t huge = std::uint64_t{1} << 40;
  std::memcpy(image.data() + 16 + 56, &huge, 8);
  EXPECT_FALSE(image_ptx(bytes(image), 75));
  const std::uint64_t wrong = 200u << 20;
  std::memcpy(image.data() + 16 + 56, &wrong, 8);
  EXPECT_FALSE(image_ptx(bytes(image), 75));
  image = fatbin({{1, 75, 0x2011, std::string(1000, 'x')}});
  std::memcpy(image.data() + 16 + 56, &wrong, 8);
  EXPECT_FALSE(image_ptx(bytes(image), 75));
}

TEST(fatbin_test, every_bit_flip_and_truncation_is_survived) {
  const auto image = fatbin(
      {{1, 75, 0x8011, ".version 9.0\n.target sm_75\n"}, {1, 90, 0x2011, std::string(300, 'y')}, {1, 80}});
  for (std::size_t bit = 0; bit < image.size() * 8; ++bit) {
    auto damaged = image;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    if (const auto entries = fatbin_entries(bytes(damaged))) {
      for (const auto& e : *entries) (void)entry_text(e).ok();
    }
  }
  for (std::size_t size = 0; size < image.size(); ++size) (void)image_ptx(bytes(image).first(size), 75).ok();
}

TEST(fatbin_test, wrappers_lead_to_one_or_to_the_objects_fatbins) {
  const auto first = fatbin({{1, 75}}), second = fatbin({{1, 90}}), linked = fatbin({{2, 75}});
  struct {
    std::uint32_t magic = wrapper_magic, version = 1;
    const void *data, *more;
  } wrapper;
  wrapper.data = first.data(), wrapper.more = nullptr;
  auto got = wrapper_fatbins(&wrapper);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ((*got)[0].size(), first.size());
  const void* list[] = {first.data(), second.data(), nullptr};
  wrapper.version = 2, wrapper.data = linked.data(), wrapper.more = list;
  got = wrapper_fatbins(&wrapper);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 2u);
  EXPECT_EQ(static_cast<const void*>((*got)[1].data()), second.data());
  wrapper.magic = 7;
  EXPECT_FALSE(wrapper_fatbins(&wrapper));
}

TEST(fatbin_test, images_named_by_address_only_have_a_size) {
  const auto image = fatbin({{1, 75}, {1, 90}});
  EXPECT_EQ(*image_size(image.data()), image.size());
  EXPECT_EQ(*image_size("\n.version 9.0"), 14u);
  EXPECT_FALSE(
      image_size("\x7f"
                 "ELF"));
}

}  // namespace
}  // namespace outboard::ptx
