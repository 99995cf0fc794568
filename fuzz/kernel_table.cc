// Kernel tables: out of machine code and PTX text that a client sends, and as bytes that a server sends.
#include <span>
#include <string_view>

#include "base/check.hh"
#include "marshal/cuda/kernel_table.hh"

namespace {

using namespace outboard;

void check(const result<marshal::kernel_table>& table) {
  if (!table.ok()) return;
  for (const auto& kernel : (*table).kernels) CHECK((*table).find_kernel(kernel.name) != nullptr);
  const auto written = marshal::encode(*table);
  auto again = marshal::decode_kernel_table(written);
  CHECK(again.ok());
  CHECK(marshal::encode(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check(marshal::parse_cubin(bytes));
  check(marshal::parse_ptx({reinterpret_cast<const char*>(data), size}));
  // A table that came over the wire need not be sorted as ours are: only that it can be written again.
  if (auto table = marshal::decode_kernel_table(bytes); table.ok())
    CHECK(marshal::decode_kernel_table(marshal::encode(*table)).ok());
  return 0;
}
