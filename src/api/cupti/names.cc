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
#define NAMED(name, number) {"CUPTI_ACTIVITY_KIND_" #name, number},
constexpr std::array kind_names = std::to_array<named>({
#include "activity_kinds.inc"
    // Those of later CUPTIs (13.5), so that they are refused by name.
    NAMED(GRAPH_HOST_NODE, 56) NAMED(COMPUTE_ENGINE_CTX_SWITCH, 57) NAMED(HOST_LAUNCH, 58)
        NAMED(GREEN_CONTEXT, 59)});
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

template <std::size_t N>
const char* name_in(const std::array<named, N>& all, int number) {
  const auto found = std::ranges::find(all, static_cast<std::uint32_t>(number), &named::number);
  return found != all.end() ? found->name : nullptr;
}

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

const char* result_name(int code) { return name_in(result_names, code); }
const char* kind_name(int kind) {
  const char* const name = name_in(kind_names, kind);
  return name ? name : "a kind without a name";
}

}  // namespace outboard::api::cupti
