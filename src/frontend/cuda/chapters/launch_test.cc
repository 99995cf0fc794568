#include "frontend/cuda/chapters/launch.hh"

#include <gtest/gtest.h>

#include <cstring>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {
namespace {

/// The parameters of a message that is written as a launch is, read back from it.
std::vector<std::byte> packed(std::span<const marshal::kernel_parameter> layout, std::uint32_t bytes,
                              void* const* values) {
  std::vector<std::byte> buffer{std::byte{0xee}};  // something is there already
  wire::writer w(buffer);
  marshal::put_body(w, marshal::launch_body{.parameters = marshal::launch_parameters::room(bytes)});
  pack_parameters(w.last(bytes), layout, values);
  wire::reader r(std::span<const std::byte>(buffer).subspan(1));
  const auto content = marshal::take_body<marshal::launch_body>(r).parameters.shown();
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
  marshal::put_body(w, marshal::launch_body{.parameters = marshal::launch_parameters::room(16)});
  pack_parameters(w.last(16), layout, values);
  const auto parameters = w.last(16);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(parameters[i], std::byte{0}) << i;
  EXPECT_EQ(parameters[12], std::byte{7});
}

TEST(travelling_attributes, carry_id_and_value_and_nothing_of_the_program_s_padding) {
  CUlaunchAttribute given[2];
  std::memset(given, 0xff, sizeof given);  // as it may lie on the program's stack
  given[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  given[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  given[1].value.cooperative = 1;
  const travelling_attributes sent(given);
  ASSERT_EQ(sent.list().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const marshal::launch_attribute a = sent.list()[i];
    EXPECT_EQ(a.id, static_cast<std::uint32_t>(given[i].id));
    EXPECT_EQ(a.padding, 0u);
    EXPECT_EQ(std::memcmp(a.value.data(), &given[i].value, sizeof given[i].value), 0);
  }
  EXPECT_TRUE(travelling_attributes({}).list().empty());
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
