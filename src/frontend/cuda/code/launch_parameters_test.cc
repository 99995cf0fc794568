#include "frontend/cuda/code/launch_parameters.hh"

#include <gtest/gtest.h>

#include <cstring>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {
namespace {

/// What put_parameters appends, without the length, after checking the length.
std::vector<std::byte> packed(std::span<const marshal::kernel_parameter> layout, std::uint32_t bytes,
                              void* const* values) {
  std::vector<std::byte> buffer{std::byte{0xee}};  // something is there already
  wire::writer w(buffer);
  put_parameters(w, layout, bytes, values);
  wire::reader r(std::span<const std::byte>(buffer).subspan(1));
  const auto content = r.sized();
  EXPECT_TRUE(r.finished());
  return {content.begin(), content.end()};
}

TEST(launch_parameters, each_value_lies_at_its_offset_and_gaps_are_zero) {
  char small = 0x11;
  std::uint64_t pointer = 0x2222222222222222;
  std::uint16_t last = 0x3333;
  void* values[] = {&small, &pointer, &last};
  const marshal::kernel_parameter layout[] = {{0, 1}, {8, 8}, {16, 2}};
  const auto bytes = packed(layout, 18, values);
  const unsigned char expected[] = {0x11, 0,    0,    0,    0,    0,    0,    0,    0x22,
                                    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x33, 0x33};
  ASSERT_EQ(bytes.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
}

TEST(launch_parameters, a_kernel_without_parameters_needs_no_values) {
  EXPECT_TRUE(packed({}, 0, nullptr).empty());
}

TEST(launch_parameters, a_reused_buffer_leaks_nothing_into_the_gaps) {
  std::vector<std::byte> buffer(64, std::byte{0xff});
  buffer.clear();
  wire::writer w(buffer);
  std::uint32_t value = 7;
  void* values[] = {&value};
  const marshal::kernel_parameter layout[] = {{12, 4}};
  put_parameters(w, layout, 16, values);
  for (std::size_t i = 8; i < 20; ++i) EXPECT_EQ(buffer[i], std::byte{0}) << i;
}

TEST(packed_buffer, takes_pointer_and_size_in_any_order) {
  char data[5] = "abcd";
  std::size_t size = 4;
  void* forward[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, data, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
  void* backward[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, data,
                      CU_LAUNCH_PARAM_END};
  for (void** list : {forward, backward}) {
    const auto got = packed_buffer(list);
    ASSERT_TRUE(got);
    EXPECT_EQ(static_cast<const void*>(got->data()), data);
    EXPECT_EQ(got->size(), 4u);
  }
}

TEST(packed_buffer, an_empty_list_means_no_parameters) {
  void* list[] = {CU_LAUNCH_PARAM_END};
  const auto got = packed_buffer(list);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->empty());
}

TEST(packed_buffer, what_is_no_list_is_refused) {
  std::size_t size = 4;
  void* size_alone[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  EXPECT_FALSE(packed_buffer(size_alone));
  void* unknown[] = {reinterpret_cast<void*>(9), nullptr, CU_LAUNCH_PARAM_END};
  EXPECT_FALSE(packed_buffer(unknown));
  std::vector<void*> endless(64);
  for (std::size_t i = 0; i < endless.size(); i += 2) {
    endless[i] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    endless[i + 1] = &size;
  }
  EXPECT_FALSE(packed_buffer(endless.data()));
}

}  // namespace
}  // namespace outboard::frontend::cuda
