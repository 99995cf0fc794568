// Changes of host memory as a peer may send them: whatever the bytes, only the block they name is touched.
#include <array>
#include <cstdint>
#include <span>

#include "marshal/cuda/memory_changes.hh"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t base = 0x2080'0000'0000;
  static std::array<std::byte, 5000> memory, shadow;
  (void)outboard::marshal::apply_changes(
      std::as_bytes(std::span(data, size)),
      [](std::uint64_t address) -> std::optional<outboard::marshal::change_target> {
        if (address - base >= memory.size()) return std::nullopt;
        return outboard::marshal::change_target{std::span(memory).subspan(address - base),
                                                std::span(shadow).subspan(address - base)};
      });
  return 0;
}
