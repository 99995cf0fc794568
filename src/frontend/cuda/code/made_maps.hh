// Tensor maps that the driver has made, found by all the arguments they were made from: from the same
// arguments it makes the same map again. Programs that measure a kernel make its maps before each launch,
// between two events, where a question to the server would be measured, too. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

namespace outboard::frontend::cuda {

class made_maps {
 public:
  using map = std::array<std::uint8_t, 128>;
  /// More than a program uses in turns; some 300 bytes each. Beyond it all are forgotten.
  static constexpr std::size_t most = 1024;

  /// `key`: the function, its context and its arguments.
  std::optional<map> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = made_.find(key);
    return at == made_.end() ? std::nullopt : std::optional(at->second);
  }
  void keep(std::string key, const map& made) {
    const std::lock_guard lock(mutex_);
    if (made_.size() >= most) made_.clear();
    made_.insert_or_assign(std::move(key), made);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, map> made_;
};

}  // namespace outboard::frontend::cuda
