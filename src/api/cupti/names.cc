#include "api/cupti/names.hh"

#include <algorithm>
#include <array>
#include <vector>

namespace outboard::api::cupti {
namespace {

struct named {
  const char* name;
  std::uint32_t number;
};

#define NAMED(name, number) {#name, number},
constexpr std::array driver_names = std::to_array<named>({
#include "driver_callbacks.inc"
});
constexpr std::array runtime_names = std::to_array<named>({
#include "runtime_callbacks.inc"
});
constexpr std::array nvtx_names = std::to_array<named>({
#include "nvtx_callbacks.inc"
});
#undef NAMED
#define NAMED(name, number) {"CUPTI_" #name, number},
constexpr std::array result_names = std::to_array<named>({
#include "results.inc"
});
#undef NAMED

/// One domain, both ways.
class book {
 public:
  template <std::size_t N>
  explicit book(const std::array<named, N>& all) : by_name_(all.begin(), all.end()) {
    std::ranges::sort(by_name_, {}, [](const named& n) { return std::string_view(n.name); });
    for (const named& n : all) {
      if (n.number >= by_number_.size()) by_number_.resize(n.number + 1);
      by_number_[n.number] = n.name;
    }
  }

  std::uint32_t find(std::string_view name) const {
    const auto text = [](const named& n) { return std::string_view(n.name); };
    const auto at = std::ranges::lower_bound(by_name_, name, {}, text);
    return at != by_name_.end() && at->name == name ? at->number : 0;
  }
  const char* name(std::uint32_t number) const {
    return number < by_number_.size() ? by_number_[number] : nullptr;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(by_number_.size()); }

 private:
  std::vector<named> by_name_;
  std::vector<const char*> by_number_;
};

const book& book_of(domain which) {
  static const book* const driver = new book(driver_names);
  static const book* const runtime = new book(runtime_names);
  static const book* const nvtx = new book(nvtx_names);
  return which == domain::driver ? *driver : which == domain::runtime ? *runtime : *nvtx;
}

}  // namespace

std::uint32_t callback_of(domain which, std::string_view name) { return book_of(which).find(name); }
const char* callback_name(domain which, std::uint32_t number) { return book_of(which).name(number); }
std::uint32_t callback_count(domain which) { return book_of(which).size(); }

const char* result_name(int code) {
  for (const named& n : result_names) {
    if (n.number == static_cast<std::uint32_t>(code)) return n.name;
  }
  return nullptr;
}

}  // namespace outboard::api::cupti
