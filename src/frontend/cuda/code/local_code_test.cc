#include "frontend/cuda/code/local_code.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace outboard::frontend::cuda {
namespace {

constexpr marshal::image_target target{9, 0, true, false};

std::vector<std::byte> text_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size() + 1, std::byte{0});
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string kernel(std::string_view name, std::string_view parameters) {
  return ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry " + std::string(name) + "(" +
         std::string(parameters) + ") { ret; }\n";
}

marshal::module_image image_of(std::string_view text) {
  const auto bytes = text_of(text);
  const auto view = marshal::image_extent(std::span<const std::byte>(bytes));
  EXPECT_TRUE(view.ok());
  return std::move(*marshal::module_image::select(*view, target));
}

TEST(local_code, knows_the_kernels_of_its_image_after_the_program_has_let_go_of_it) {
  local_code code(image_of(kernel("k", ".param .u64 a, .param .u32 b")), target);
  const marshal::kernel_info* found = code.find_kernel("k");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->parameters, (std::vector<marshal::kernel_parameter>{{0, 8}, {8, 4}}));
  EXPECT_EQ(code.find_kernel("k"), found) << "it is parsed once";
  EXPECT_EQ(code.find_kernel("other"), nullptr);
}

TEST(local_code, says_nothing_of_an_image_that_cannot_be_read) {
  local_code code(image_of(".version 7.0\n.visible .entry k(what, is, this)\n"), target);
  EXPECT_EQ(code.find_kernel("k"), nullptr);
}

TEST(link_inputs, must_have_every_kernel_of_the_linked_image_as_it_is_there) {
  const auto table = [](std::string_view text) { return *marshal::parse_ptx(text); };
  link_inputs inputs;
  inputs.add(CU_JIT_INPUT_PTX, text_of(kernel("k", ".param .u64 a")), target);
  EXPECT_TRUE(inputs.agree(table(kernel("k", ".param .u64 a"))));
  EXPECT_FALSE(inputs.agree(table(kernel("k", ".param .b8 a[999]"))));
  EXPECT_FALSE(inputs.agree(table(kernel("another", ".param .u64 a"))));
  // What is in a library is not known here.
  inputs.add(CU_JIT_INPUT_LIBRARY, text_of("!<arch>"), target);
  EXPECT_TRUE(inputs.agree(table(kernel("another", ".param .u64 a"))));
  EXPECT_FALSE(inputs.agree(table(kernel("k", ".param .b8 a[999]"))));
}

TEST(parameters, have_the_limit_of_driver_and_device) {
  marshal::snapshot facts;
  facts.devices.resize(1);
  facts.driver_version = 13000, facts.devices[0].compute_major = 9;
  EXPECT_EQ(parameter_limit_of(facts, 0), 32764u);
  EXPECT_EQ(parameter_limit_of(facts, 1), 4096u) << "no such device";
  facts.driver_version = 12000;
  EXPECT_EQ(parameter_limit_of(facts, 0), 4096u);
}

}  // namespace
}  // namespace outboard::frontend::cuda
