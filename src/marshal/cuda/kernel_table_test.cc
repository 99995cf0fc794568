#include "marshal/cuda/kernel_table.hh"

#include <gtest/gtest.h>

#include "marshal/cuda/image_testing.hh"

namespace outboard::marshal {
namespace {

using namespace testing;

std::vector<kernel_parameter> layout(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> list) {
  std::vector<kernel_parameter> parameters;
  for (const auto& [offset, size] : list) parameters.push_back({offset, size});
  return parameters;
}

TEST(parse_cubin, reads_layout_attributes_and_variables) {
  const byte_vector file = make_cubin(80, "scale");
  const auto table = parse_cubin(file);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->source, kernel_source::cubin);
  ASSERT_EQ(table->kernels.size(), 1u);
  const kernel_info* const k = table->find_kernel("scale");
  ASSERT_NE(k, nullptr);
  EXPECT_TRUE(k->layout_known);
  EXPECT_EQ(k->parameters, layout({{0, 1}, {8, 8}, {16, 3}}));
  EXPECT_EQ(k->parameter_bytes, 19u);
  EXPECT_EQ(k->max_threads, 128);
  EXPECT_EQ(k->registers, 24);
  EXPECT_EQ(k->local_bytes, 160);
  EXPECT_EQ(k->static_shared, 12);
  EXPECT_EQ(k->binary_version, 80);
  ASSERT_NE(table->find_variable("counter"), nullptr);
  EXPECT_EQ(table->find_variable("counter")->size, 40u);
  EXPECT_EQ(table->find_kernel("scal"), nullptr);
  EXPECT_FALSE(table->prints);
}

TEST(parse_ptx, lays_out_twelve_odd_parameters) {
  const auto table = parse_ptx(R"(
    .version 9.0
    .target sm_90a
    .address_size 64
    .visible .entry odd(
      .param .u8 odd_param_0, .param .f64 odd_param_1, .param .align 1 .b8 odd_param_2[3],
      .param .align 16 .b8 odd_param_3[16], .param .u16 odd_param_4, .param .u64 odd_param_5,
      .param .align 4 .b8 odd_param_6[12], .param .align 16 .b8 odd_param_7[16], .param .u8 odd_param_8,
      .param .align 1 .b8 odd_param_9[1], .param .u32 odd_param_10, .param .align 4 .b8 odd_param_11[12]
    ) { ret; })");
  ASSERT_TRUE(table) << table.error().message;
  const kernel_info* const odd = table->find_kernel("odd");
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->parameters, layout({{0, 1},
                                     {8, 8},
                                     {16, 3},
                                     {32, 16},
                                     {48, 2},
                                     {56, 8},
                                     {64, 12},
                                     {80, 16},
                                     {96, 1},
                                     {97, 1},
                                     {100, 4},
                                     {104, 12}}));
  EXPECT_EQ(odd->parameter_bytes, 116u);
  EXPECT_EQ(odd->ptx_version, 90);
  EXPECT_EQ(odd->registers, -1);
}

TEST(parse_ptx, reads_directives_and_skips_what_only_looks_like_them) {
  const auto table = parse_ptx(R"(
    .version 8.4 .target sm_75, debug .address_size 64
    // .entry comment() {}
    /* .entry block() {} */
    .file 1 "a .entry in a string() {"
    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
    .func (.param .b32 r) helper(.param .b32 x) { .reg .b32 %r<2>; { mov.u32 %r1, 1; } ret; }
    .weak .entry none() .reqntid 64, 2 .reqnctapercluster 2 .explicitcluster { L: bra L; }
    .entry bounded(.param .u64 .ptr .global .align 64 p, .param .b32 x)
      .maxntid 0x20, 4, 2 .minnctapersm 2 .maxclusterrank 8 .pragma "nounroll"; { .shared .b8 s[4]; ret; }
    .section .debug_info { .b8 1, 2, 3 .b64 .debug_abbrev })");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_TRUE(table->variables.empty());
  EXPECT_EQ(table->find_kernel("comment"), nullptr);
  const kernel_info* const none = table->find_kernel("none");
  ASSERT_NE(none, nullptr);
  EXPECT_TRUE(none->layout_known);
  EXPECT_TRUE(none->parameters.empty());
  EXPECT_EQ(none->required_block[0], 64);
  EXPECT_EQ(none->required_block[1], 2);
  EXPECT_EQ(none->required_block[2], 1);
  EXPECT_EQ(none->required_cluster[0], 2);
  EXPECT_TRUE(none->explicit_cluster);
}

TEST(parse_ptx, an_alignment_of_pointed_to_memory_is_not_the_parameters) {
  const auto table = parse_ptx(
      ".version 8.0\n.entry k(.param .b32 a, .param .u64 .ptr .global .align 64 p, .param .f16x2 h) { }");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find_kernel("k")->parameters, layout({{0, 4}, {8, 8}, {16, 4}}));
}

TEST(parse_ptx, measures_variables) {
  const auto table = parse_ptx(R"(
    .version 9.0
    .const .align 4 .b8 table[256];
    .visible .global .align 4 .u32 counter[10] = {1, 2, 3};
    .global .attribute(.managed) .align 4 .b8 shared_with_host[20];
    .global .align 8 .f64 d = 0d4008000000000000, e;
    .global .v4 .f32 matrix[2][3];
    .global .u16 open[] = {1, 2, 3, 4, 5};
    .global .u64 addresses[2] = {generic(counter), counter + 4};
    .extern .global .u32 elsewhere;
    .global .texref old;
    .extern .shared .align 16 .b8 dyn[];)");
  ASSERT_TRUE(table) << table.error().message;
  const auto size = [&](const char* name) {
    const variable_info* const v = table->find_variable(name);
    return v ? static_cast<long>(v->size) : -1;
  };
  EXPECT_EQ(size("table"), 256);
  EXPECT_EQ(table->find_variable("table")->space, variable_space::constant);
  EXPECT_EQ(size("counter"), 40);
  EXPECT_EQ(size("shared_with_host"), 20);
  EXPECT_EQ(table->find_variable("shared_with_host")->space, variable_space::managed);
  EXPECT_EQ(size("d"), 8);
  EXPECT_EQ(size("e"), 8);
  EXPECT_EQ(size("matrix"), 96);
  EXPECT_EQ(size("open"), 10);
  EXPECT_EQ(size("addresses"), 16);
  EXPECT_EQ(size("elsewhere"), -1);
  EXPECT_EQ(size("old"), -1);
  EXPECT_EQ(size("dyn"), -1);
}

TEST(parse_ptx, refuses_nonsense_and_ends_on_every_cut) {
  EXPECT_FALSE(parse_ptx(""));
  EXPECT_FALSE(parse_ptx("hello"));
  EXPECT_FALSE(parse_ptx(".version 9.0 .entry k(.param .b8 a[99999]) {}"));
  EXPECT_FALSE(parse_ptx(".version 9.0 .entry k(.param .b64 a[0xffffffffffffffff]) {} .entry"));
  const std::string text = std::string(small_ptx) + ".global .u32 a[4] = {1,2};/* end */ .file 1 \"x\"";
  for (std::size_t n = 0; n < text.size(); ++n) static_cast<void>(parse_ptx(std::string(text, 0, n)));
}

TEST(parse_kernels, reads_the_entry_the_device_takes) {
  const byte_vector fatbin = make_fatbin({{2, 90, make_cubin(90, "binary"), 'z', 0},
                                          {2, 80, make_cubin(80, "packed"), 'l', 0},
                                          {1, 75, ptx_of(small_ptx), 'z', 0}});
  const image_view view{image_kind::fatbin, false, {fatbin}};
  const auto name_for = [&](std::uint32_t major, bool wants_ptx) -> std::string {
    const auto table = parse_kernels(view, {major, 0, wants_ptx, false});
    return table && !table->kernels.empty() ? table->kernels[0].name : "none";
  };
  EXPECT_EQ(name_for(9, false), "binary");
  EXPECT_EQ(name_for(8, false), "packed");
  EXPECT_EQ(name_for(10, false), "scale");
  EXPECT_EQ(name_for(9, true), "scale");
  EXPECT_EQ(name_for(7, false), "none");
}

TEST(parse_kernels, gathers_the_objects_of_a_linked_program) {
  const byte_vector linked = make_fatbin({{2, 90, make_cubin(90, "binary"), ' ', 0}});
  const byte_vector first = make_fatbin({{1, 75, ptx_of(small_ptx), ' ', 0}});
  const byte_vector second =
      make_fatbin({{1, 75, ptx_of(".version 9.0 .target sm_75 .entry b() {}"), ' ', 0}});
  const image_view view{image_kind::fatbin, true, {linked, first, second, first}};
  EXPECT_NE(parse_kernels(view, {9, 0, false, false})->find_kernel("binary"), nullptr);
  const auto objects = parse_kernels(view, {9, 0, true, false});
  ASSERT_TRUE(objects);
  EXPECT_EQ(objects->kernels.size(), 2u);
  EXPECT_EQ(objects->find_kernel("scale")->parameters, layout({{0, 8}, {8, 4}}));
  EXPECT_EQ(objects->find_kernel("scale")->ptx_version, -1) << "linking decides";
}

TEST(parse_kernels, a_hostile_size_costs_no_memory) {
  byte_vector zeros(64 << 20);
  byte_vector fatbin = make_fatbin({{2, 90, zeros, 'z', 0}});
  // Claims a terabyte, then a gigabyte, over a few kilobytes of zstd.
  for (const std::uint64_t claim : {std::uint64_t{1} << 40, std::uint64_t{1} << 30}) {
    std::memcpy(fatbin.data() + 16 + 56, &claim, sizeof claim);
    EXPECT_FALSE(parse_kernels({image_kind::fatbin, false, {fatbin}}, {9, 0, false, false}));
  }
}

kernel_table sample_table() {
  const byte_vector file = make_cubin(80, "scale");
  kernel_table table = *parse_cubin(file);
  table.kernels.push_back(table.kernels[0]);
  table.kernels.back().name = "zoom";
  table.kernels.back().required_cluster[1] = 4;
  table.variables.push_back({"managed", variable_space::managed, 1ull << 33});
  sort_table(table);
  return table;
}

TEST(parse_ptx, finds_out_what_prints) {
  const std::string entry = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
  EXPECT_FALSE(parse_ptx(entry)->prints);
  const auto printing =
      parse_ptx(entry + ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n");
  ASSERT_TRUE(printing) << printing.error().message;
  EXPECT_TRUE(printing->prints);
  EXPECT_TRUE(kernel_table{}.prints);  // nothing is known
}

TEST(kernel_table, travels) {
  const kernel_table table = sample_table();
  const auto bytes = encode(table);
  const auto got = decode_kernel_table(bytes);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(encode(*got), bytes);
  EXPECT_EQ(got->find_kernel("zoom")->required_cluster[1], 4);
  EXPECT_EQ(got->find_kernel("scale")->parameters, table.find_kernel("scale")->parameters);
  EXPECT_EQ(got->find_variable("managed")->size, 1ull << 33);
}

TEST(kernel_table, every_bit_flip_and_cut_is_survived) {
  const auto original = encode(sample_table());
  for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
    auto bytes = original;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto got = decode_kernel_table(bytes);
    if (!got) continue;
    for (const kernel_info& k : got->kernels)
      for (const kernel_parameter& p : k.parameters)
        ASSERT_LE(std::uint64_t{p.offset} + p.size, k.parameter_bytes);
  }
  for (std::size_t n = 0; n < original.size(); ++n)
    EXPECT_FALSE(decode_kernel_table(std::span(original).first(n)));
}

TEST(parse_cubin, every_bit_flip_and_cut_is_survived) {
  const byte_vector original = make_cubin(90, "scale");
  std::size_t parsed = 0;
  for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
    byte_vector bytes = original;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    if (const auto table = parse_cubin(bytes)) {
      ++parsed;
      EXPECT_TRUE(decode_kernel_table(encode(*table))) << "what we parse we can send; bit " << bit;
    }
  }
  EXPECT_GT(parsed, 0u);
  for (std::size_t n = 0; n < original.size(); ++n)
    static_cast<void>(parse_cubin(byte_vector(original.begin(), original.begin() + static_cast<long>(n))));
}

// A thousand symbols that share one long name: the time must not be their product.
TEST(parse_cubin, shared_names_have_a_budget) {
  byte_vector file = make_cubin(90, std::string(1 << 16, 'k'));
  auto header = Elf64_Ehdr{};
  std::memcpy(&header, file.data(), sizeof header);
  const std::size_t symtab_at = header.e_shoff + 6 * sizeof(Elf64_Shdr);
  Elf64_Shdr symtab;
  std::memcpy(&symtab, file.data() + symtab_at, sizeof symtab);
  Elf64_Sym kernel;
  std::memcpy(&kernel, file.data() + symtab.sh_offset + sizeof kernel, sizeof kernel);
  symtab.sh_offset = file.size();
  symtab.sh_size = 1000 * sizeof kernel;
  std::memcpy(file.data() + symtab_at, &symtab, sizeof symtab);
  for (int n = 0; n < 1000; ++n) append(file, kernel);
  EXPECT_FALSE(parse_cubin(file));
}

}  // namespace
}  // namespace outboard::marshal
