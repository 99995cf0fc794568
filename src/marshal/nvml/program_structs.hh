// For tests and fuzz targets: structs as a program has them before it calls, with a version and with lists of
// its own that are exactly as long as it says. Values; one thread.
#pragma once

#include <deque>
#include <vector>

#include "api/nvml/layout.hh"

namespace outboard::marshal::nvml {

class program_structs {
 public:
  /// What is behind the last element of each list, one element long.
  static constexpr std::byte untouched{0xee};

  /// Zeros and the version at `at`, `elements` elements in each list and tail. Gives the bytes that are
  /// there.
  std::size_t lay_out(const api::nvml::struct_layout& layout, std::byte* at, unsigned elements) {
    std::size_t size = layout.size;
    if (const api::nvml::field_layout* tail = tail_of(layout)) {
      size = tail->offset + elements * (tail->size / tail->elements);
      std::memset(at, 0, size);
      std::memcpy(at + tail->count_at, &elements, sizeof elements);
    } else {
      std::memset(at, 0, size);
    }
    const unsigned version = static_cast<unsigned>(layout.size) | layout.version << 24;
    if (layout.version != 0) std::memcpy(at, &version, sizeof version);
    for_each_pointer(layout, at, size, [&](const api::nvml::field_layout& f, std::byte* holder) {
      if (f.kind != api::nvml::field_kind::list) return true;
      std::vector<std::byte>& list = memory_.emplace_back((elements + 1) * f.stride, untouched);
      for (unsigned e = 0; f.listed && e < elements; ++e)
        lay_out(*f.listed(), list.data() + e * f.stride, elements);
      const void* const begin = list.data();
      std::memcpy(holder + f.offset, &begin, sizeof begin);
      std::memcpy(holder + f.count_at, &elements, sizeof elements);
      return true;
    });
    return size;
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace outboard::marshal::nvml
