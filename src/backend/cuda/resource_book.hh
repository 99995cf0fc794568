// The resources of devices that the driver has described in this session. Its struct holds pointers of this
// process, so the client gets numbers for them. Owned by the session; with the turn.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/cuda/headers.hh"

namespace outboard::backend {

class resource_book {
 public:
  /// The same resource always gets the same number; 0: there are too many.
  std::uint64_t number_of(const CUdevResource& resource) {
    const std::string content(reinterpret_cast<const char*>(&resource), sizeof resource);
    if (const auto known = numbers_.find(content); known != numbers_.end()) return known->second;
    if (all_.size() == most) return 0;
    all_.push_back(resource);
    return numbers_[content] = all_.size();
  }

  /// nullptr: no such number was given out.
  const CUdevResource* find(std::uint64_t number) const {
    return number == 0 || number > all_.size() ? nullptr : &all_[number - 1];
  }

 private:
  /// Splits give fresh ones each time; programs make a handful.
  static constexpr std::size_t most = 1 << 16;
  std::vector<CUdevResource> all_;
  std::map<std::string, std::uint64_t> numbers_;
};

}  // namespace outboard::backend
