#include "marshal/cuda/image.hh"

#include <gtest/gtest.h>

#include <memory>

#include "marshal/cuda/image_entries.hh"
#include "marshal/cuda/image_fatbin.hh"
#include "marshal/cuda/image_testing.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::marshal {
namespace {

using namespace testing;

image_target device(std::uint32_t major, std::uint32_t minor) { return {major, minor, false, false}; }
image_target interpreter(std::uint32_t major, std::uint32_t minor) { return {major, minor, true, false}; }

entry_spec ptx(std::uint32_t capability, std::uint64_t flags = 0, char packing = ' ') {
  return {1, capability, ptx_of(small_ptx), packing, flags};
}
entry_spec cubin(std::uint32_t capability, std::uint64_t flags = 0, char packing = ' ') {
  return {2, capability, make_cubin(capability, "scale"), packing, flags};
}

/// "sm_90a compute_75": what select kept, or "-" when nothing can be used.
std::string kept(const std::vector<entry_spec>& specs, const image_target& target) {
  const byte_vector fatbin = make_fatbin(specs);
  const auto view = image_extent(std::span<const std::byte>(fatbin));
  const auto image = module_image::select(*view, target);
  if (!image) return image.error().next == action::fall_back ? "-" : "broken";
  const auto entries = fatbin_entries(image->view().parts[0]);
  std::string text;
  for (const fatbin_entry& e : *entries) {
    text += (text.empty() ? "" : " ") + std::string(e.kind == entry_kind::ptx ? "compute_" : "sm_") +
            std::to_string(e.capability) +
            (e.arch_specific     ? "a"
             : e.family_specific ? "f"
                                 : "");
  }
  EXPECT_EQ(image->reduced(), entries->size() != specs.size());
  return text;
}

TEST(image_extent, sizes_a_fatbin_by_its_header) {
  byte_vector fatbin = make_fatbin({ptx(75)});
  const std::size_t size = fatbin.size();
  fatbin.resize(size + 100);
  const auto view = image_extent(static_cast<const void*>(fatbin.data()));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->kind, image_kind::fatbin);
  EXPECT_EQ(view->size(), size);
}

TEST(image_extent, sizes_a_cubin_by_its_headers) {
  const byte_vector file = make_cubin(90, "k");
  const auto view = image_extent(static_cast<const void*>(file.data()));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->kind, image_kind::elf);
  EXPECT_EQ(view->size(), file.size());
}

TEST(image_extent, counts_the_nul_of_a_text) {
  for (const char* text : {".version 9.0\n", "\n\n.version 9.0", "/* x */ .version 7.0 .target sm_75"}) {
    const auto view = image_extent(static_cast<const void*>(text));
    ASSERT_TRUE(view) << text;
    EXPECT_EQ(view->kind, image_kind::ptx);
    EXPECT_EQ(view->size(), std::strlen(text) + 1);
  }
  // Exactly allocated: a sanitizer sees a step too far.
  for (const char* text : {"", "P", "\x50", "\x50\xed",
                           "\x7f"
                           "EL",
                           "BC", "no PTX at all"}) {
    const auto copy = std::make_unique<char[]>(std::strlen(text) + 1);
    std::strcpy(copy.get(), text);
    const auto view = image_extent(static_cast<const void*>(copy.get()));
    ASSERT_FALSE(view) << text;
    EXPECT_EQ(view.error().next, action::fail);
  }
}

TEST(image_extent, names_what_it_does_not_take) {
  const auto bitcode =
      image_extent(static_cast<const void*>("BC\xc0\xde"
                                            "0123456789012345678901234567"));
  ASSERT_FALSE(bitcode);
  EXPECT_EQ(bitcode.error().next, action::fall_back);
  EXPECT_NE(bitcode.error().message.find("NVVM"), std::string::npos);
  const auto lto =
      image_extent(static_cast<const void*>("\xed\x43\x4e\x7f"
                                            "0123456789012345678901234567"));
  ASSERT_FALSE(lto);
  EXPECT_NE(lto.error().message.find("LTO"), std::string::npos);
  EXPECT_FALSE(image_extent(static_cast<const void*>(nullptr)));
  byte_vector host = make_cubin(90, "k");
  host[18] = std::byte{EM_X86_64};
  EXPECT_FALSE(image_extent(static_cast<const void*>(host.data())));
}

struct wrapper {
  std::uint32_t magic, version;
  const void* data;
  const void* more;
};

TEST(image_extent, follows_wrappers) {
  const byte_vector linked = make_fatbin({cubin(90)}), first = make_fatbin({ptx(80)}),
                    second = make_fatbin({ptx(75)});
  const wrapper one{0x466243b1, 1, linked.data(), "file name"};
  const auto simple = image_extent(static_cast<const void*>(&one));
  ASSERT_TRUE(simple);
  EXPECT_FALSE(simple->linked);
  EXPECT_EQ(simple->parts.size(), 1u);
  EXPECT_EQ(simple->parts[0].data(), linked.data());

  const void* const objects[] = {first.data(), second.data(), nullptr};
  const wrapper two{0x466243b1, 2, linked.data(), objects};
  const auto several = image_extent(static_cast<const void*>(&two));
  ASSERT_TRUE(several);
  EXPECT_TRUE(several->linked);
  ASSERT_EQ(several->parts.size(), 3u);
  EXPECT_EQ(several->parts[2].size(), second.size());

  const void* const none[] = {nullptr};
  const wrapper empty{0x466243b1, 2, linked.data(), none};
  EXPECT_FALSE(image_extent(static_cast<const void*>(&empty))->linked);
  const wrapper strange{0x466243b1, 3, linked.data(), nullptr};
  EXPECT_FALSE(image_extent(static_cast<const void*>(&strange)));
  const wrapper nowhere{0x466243b1, 1, nullptr, nullptr};
  EXPECT_FALSE(image_extent(static_cast<const void*>(&nowhere)));
}

TEST(select, takes_the_newest_machine_code_of_the_same_major_and_the_best_ptx) {
  const std::vector<entry_spec> many = {cubin(75), cubin(80), cubin(86), cubin(90), ptx(75), ptx(90)};
  EXPECT_EQ(kept(many, device(7, 5)), "sm_75 compute_75");
  EXPECT_EQ(kept(many, device(8, 0)), "sm_80 compute_75");
  EXPECT_EQ(kept(many, device(8, 6)), "sm_86 compute_75");
  EXPECT_EQ(kept(many, device(8, 9)), "sm_86 compute_75");
  EXPECT_EQ(kept(many, device(9, 0)), "sm_90 compute_90");
  EXPECT_EQ(kept(many, device(10, 0)), "compute_90");
  EXPECT_EQ(kept(many, device(7, 0)), "-");
  EXPECT_EQ(kept({cubin(80)}, device(9, 0)), "-");
  EXPECT_EQ(kept({ptx(90)}, device(8, 9)), "-");
}

TEST(select, honours_arch_and_family_specific_code) {
  const std::vector<entry_spec> many = {
      cubin(90), cubin(90, arch_flag), ptx(90, arch_flag), cubin(100, family_flag),
      ptx(80),   ptx(100, family_flag)};
  EXPECT_EQ(kept(many, device(9, 0)), "sm_90a compute_90a");
  EXPECT_EQ(kept(many, device(10, 0)), "sm_100f compute_100f");
  EXPECT_EQ(kept(many, device(10, 3)), "sm_100f compute_100f");
  EXPECT_EQ(kept(many, device(12, 0)), "compute_80");
  EXPECT_EQ(kept({cubin(100, arch_flag)}, device(10, 3)), "-");
}

TEST(select, gives_the_interpreter_ptx_even_if_it_is_newer) {
  const std::vector<entry_spec> many = {cubin(75), ptx(75), ptx(80), ptx(90)};
  EXPECT_EQ(kept(many, interpreter(7, 5)), "compute_75");
  EXPECT_EQ(kept(many, interpreter(8, 6)), "compute_80");
  EXPECT_EQ(kept({cubin(75), ptx(90), ptx(100)}, interpreter(7, 5)), "compute_90");
  EXPECT_EQ(kept({ptx(90, arch_flag), ptx(90)}, interpreter(9, 0)), "compute_90");
  EXPECT_EQ(kept({cubin(75)}, interpreter(7, 5)), "-");
}

TEST(select, says_what_the_image_holds_when_nothing_fits) {
  const byte_vector fatbin = make_fatbin({cubin(80), {8, 90, bytes_of("lto"), ' ', 0x10000}});
  const auto image = module_image::select(*image_extent(std::span<const std::byte>(fatbin)), device(9, 0));
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("sm_80 lto_90"), std::string::npos) << image.error().message;
}

TEST(select, whole_leaves_everything) {
  const byte_vector fatbin = make_fatbin({cubin(75), cubin(80), ptx(75)});
  const auto view = image_extent(std::span<const std::byte>(fatbin));
  const auto image = module_image::select(*view, {9, 0, false, true});
  ASSERT_TRUE(image);
  EXPECT_FALSE(image->reduced());
  EXPECT_TRUE(
      std::equal(fatbin.begin(), fatbin.end(), image->view().parts[0].begin(), image->view().parts[0].end()));
}

TEST(select, prefers_linked_machine_code_and_else_takes_the_objects) {
  const byte_vector linked = make_fatbin({cubin(90)}), first = make_fatbin({ptx(80), ptx(75)}),
                    second = make_fatbin({ptx(75)});
  const image_view view{image_kind::fatbin, true, {linked, first, second}};
  const auto fits = module_image::select(view, device(9, 0));
  ASSERT_TRUE(fits);
  EXPECT_FALSE(fits->view().linked);
  EXPECT_TRUE(fits->reduced());
  for (const image_target& target : {device(12, 0), interpreter(8, 0)}) {
    auto objects = module_image::select(view, target);
    ASSERT_TRUE(objects);
    EXPECT_TRUE(objects->view().linked);
    ASSERT_EQ(objects->view().parts.size(), 3u);
    EXPECT_TRUE(fatbin_entries(objects->view().parts[0])->empty());
    EXPECT_EQ((*fatbin_entries(objects->view().parts[1]))[0].capability, 80u);
    const auto again = image_extent(objects->load_pointer());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->parts.size(), 3u);
    EXPECT_EQ(again->parts[2].data(), objects->view().parts[2].data());
  }
}

TEST(module_image, travels) {
  const byte_vector file = make_cubin(90, "k"), text = ptx_of(small_ptx), fatbin = make_fatbin({ptx(75)});
  const image_view views[] = {{image_kind::elf, false, {file}},
                              {image_kind::ptx, false, {text}},
                              {image_kind::fatbin, true, {fatbin, fatbin, fatbin}}};
  for (const image_view& view : views) {
    const auto sent = module_image::select(view, {9, 0, false, true});
    auto got = module_image::decode(sent->encoded());
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->encoded(), sent->encoded());
    EXPECT_EQ(got->view().kind, view.kind);
    EXPECT_EQ(got->view().linked, view.linked);
    ASSERT_EQ(got->view().parts.size(), view.parts.size());
    for (std::size_t n = 0; n < view.parts.size(); ++n) {
      const auto part = got->view().parts[n];
      EXPECT_TRUE(std::equal(part.begin(), part.end(), view.parts[n].begin(), view.parts[n].end()));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.data()) % 16, 0u);
    }
    const auto loaded = image_extent(got->load_pointer());
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->size(), view.size());
    EXPECT_EQ(got->encoded(), sent->encoded());
  }
}

TEST(module_image, refuses_what_would_lead_a_loader_outside) {
  const auto packed = [](image_view view) {
    return module_image::select(view, {9, 0, false, true})->encoded();
  };
  byte_vector text = bytes_of(".version 9.0 without an end");
  EXPECT_FALSE(module_image::decode(packed({image_kind::ptx, false, {text}})));
  byte_vector fatbin = make_fatbin({cubin(90)});
  EXPECT_TRUE(module_image::decode(packed({image_kind::fatbin, false, {fatbin}})));
  fatbin[8] = std::byte{0xff};  // claims more than there is
  EXPECT_FALSE(module_image::decode(packed({image_kind::fatbin, false, {fatbin}})));
  byte_vector file = make_cubin(90, "k");
  file.resize(file.size() - 1);
  EXPECT_FALSE(module_image::decode(packed({image_kind::elf, false, {file}})));
  // A fatbin pads by up to seven bytes, so cut more than that.
  file.resize(file.size() - 64);
  EXPECT_FALSE(
      module_image::decode(packed({image_kind::fatbin, false, {make_fatbin({{2, 90, file, ' ', 0}})}})));
  EXPECT_FALSE(module_image::decode({}));
}

// Whatever is flipped or cut: an answer, no crash (the sanitizers watch), and what is accepted can be walked.
TEST(entry_unpack, a_few_bytes_of_zstd_claim_no_memory_that_code_never_takes) {
  for (const auto& [megabytes, taken] : {std::pair(8u, true), std::pair(80u, false)}) {
    const byte_vector zeros(std::size_t{megabytes} << 20);
    const auto fatbin = make_fatbin({{.kind = 2, .payload = zeros, .packing = 'z'}});
    EXPECT_LT(fatbin.size(), 16u << 10);
    const auto entries = fatbin_entries(fatbin);
    ASSERT_TRUE(entries.ok());
    const auto out = entry_unpack(entries->front(), 1u << 30);
    EXPECT_EQ(out.ok(), taken) << megabytes;
    if (taken) {
      EXPECT_EQ(out->size(), zeros.size());
    }
  }
}

TEST(module_image, every_bit_flip_and_cut_is_survived) {
  const byte_vector fatbin =
      make_fatbin({cubin(90), cubin(80, 0, 'l'), ptx(75, 0, 'z'), ptx(80, 0, 'l'), cubin(75, 0, 'z')});
  const auto original =
      module_image::select(*image_extent(std::span<const std::byte>(fatbin)), {9, 0, false, true})->encoded();
  std::size_t accepted = 0, parsed = 0;
  const auto walk = [&](const byte_vector& bytes) {
    auto image = module_image::decode(bytes);
    if (!image) return;
    ++accepted;
    image->load_pointer();
    for (const image_target& target : {device(9, 0), device(8, 0), interpreter(7, 5)})
      if (const auto table = parse_kernels(image->view(), target)) parsed += table->kernels.size();
  };
  for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
    byte_vector bytes = original;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    walk(bytes);
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(parsed, 0u);
  accepted = 0;
  for (std::size_t n = 0; n < original.size(); ++n)
    walk({original.begin(), original.begin() + static_cast<long>(n)});
  EXPECT_EQ(accepted, 0u);
}

}  // namespace
}  // namespace outboard::marshal
