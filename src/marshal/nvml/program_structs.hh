// For tests and fuzz targets: structs as a program prepares them before a call, with a version and with lists
// that are exactly as long as the struct says. Values; one thread.
#pragma once

#include <deque>
#include <vector>

#include "api/nvml/layout.hh"

namespace outboard::marshal::nvml {

class program_structs {
 public:
  /// A guard of one element behind the last element of each list.
  static constexpr std::byte untouched{0xee};

  /// Writes zeros, and the version at `at`, with `elements` elements in each list and tail. Returns the
  /// number of bytes.
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
