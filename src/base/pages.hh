// The system's page size, and addresses rounded to pages. Any thread.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace outboard {

/// In bytes.
inline std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// The beginning of the page that holds the address.
inline std::uint64_t page_down(std::uint64_t address) { return address / page_size() * page_size(); }
/// The address, rounded up to a whole page.
inline std::uint64_t page_up(std::uint64_t address) { return page_down(address + page_size() - 1); }

}  // namespace outboard
