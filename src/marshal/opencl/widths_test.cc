#include "marshal/opencl/widths.hh"

#include <gtest/gtest.h>

#include "api/opencl/functions.hh"
#include "marshal/execution.hh"
#include "marshal/request.hh"
#include "wire/handle.hh"

namespace outboard::marshal::opencl {
namespace {

template <class Number>
std::vector<std::uint8_t> bytes_of(std::initializer_list<Number> numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * sizeof(Number));
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

using small = std::uint32_t;
using large = std::uint64_t;
constexpr small most = 0xffffffff;

TEST(widths, sizes_become_as_wide_as_the_client_reads_them) {
  EXPECT_EQ(narrowed<small>(bytes_of<large>({0, 7, most, large{most} + 1, ~large{0}})),
            bytes_of<small>({0, 7, most, most, most}));
  EXPECT_EQ(narrowed<large>(bytes_of<large>({0, ~large{0}})), bytes_of<large>({0, ~large{0}}));
  EXPECT_TRUE(narrowed<small>({1, 2, 3}).empty());
}

TEST(widths, sizes_travel_as_wide_as_the_wire_has_them) {
  EXPECT_EQ(widened<small>(bytes_of<small>({0, most})), bytes_of<large>({0, most}));
  EXPECT_EQ(widened<large>(bytes_of<large>({5, ~large{0}})), bytes_of<large>({5, ~large{0}}));
  EXPECT_TRUE(widened<large>(std::vector<std::uint8_t>{1, 2, 3}).empty());
}

/// One request with its integers in the width of a 32-bit client or a 64-bit one.
template <class Size, class Uint>
std::vector<std::byte> launch(Size size, Uint dimensions, Uint events = 0) {
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  const Size sizes[] = {size, 3};
  const Size* const none = nullptr;
  encode_request<api::opencl::opcode::clEnqueueNDRangeKernel>(
      w, 77, wire::handle{1}, wire::handle{2}, dimensions, none, static_cast<const Size*>(sizes), none,
      events, static_cast<const wire::handle*>(nullptr), static_cast<cl_event*>(nullptr));
  return bytes;
}

TEST(widths, a_request_is_the_same_whatever_the_client_is) {
  const auto narrow = launch<small, small>(most, 2);
  EXPECT_EQ(narrow, (launch<large, small>(most, 2)));
  EXPECT_EQ(narrow, (launch<large, large>(most, 2)));
}

struct no_handles : handle_resolver {
  std::int32_t native_of(api::handle_kind, std::uint64_t value, void*& native) override {
    native = reinterpret_cast<void*>(value);
    return 0;
  }
  std::uint64_t mint(api::handle_kind, void*) override { return 0; }
};

decode_status decode(std::span<const std::byte> bytes) {
  no_handles handles;
  std::pmr::monotonic_buffer_resource scratch;
  wire::reader r(bytes);
  decode_state state{r, handles, scratch};
  return execution<api::opencl::opcode::clEnqueueNDRangeKernel>().decode(state);
}

TEST(widths, a_number_that_the_parameter_cannot_hold_is_malformed) {
  EXPECT_EQ(decode(launch<large, large>(1 << 20, 2)), decode_status::ok);
  EXPECT_EQ(decode(launch<large, large>(1 << 20, 2, large{1} << 32)), decode_status::malformed);
}

}  // namespace
}  // namespace outboard::marshal::opencl
