// Containers of device code, with their decompression.
#include <span>

#include "ptx/text/fatbin.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outboard;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (auto entries = ptx::fatbin_entries(bytes); entries.ok()) {
    for (const auto& entry : *entries)
      // What claims to unpack to very much is only slow, not interesting.
      if (entry.kind == ptx::entry_kind::ptx && entry.unpacked_size <= (16u << 20))
        (void)ptx::entry_text(entry).ok();
    (void)ptx::choose_ptx(*entries, 90);
  }
  return 0;
}
