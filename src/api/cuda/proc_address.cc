#include "api/cuda/proc_address.hh"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <tuple>

#include "api/cuda/functions.hh"

namespace outboard::api {
namespace {

struct meaning {
  std::string_view name, variant;
  unsigned since = 0;
  std::string_view symbol;
  bool there = false;  ///< the line promises an answer

  auto order() const { return std::tie(name, variant, since); }
};

constexpr std::size_t lines = 0
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) +1
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    ;

/// What every symbol means, sorted by name, variant and version.
class all_meanings {
 public:
  all_meanings() {
    auto to = list_.begin();
    for (const function_info& f : functions()) {
      const symbol_parts parts = parts_of(f.name);
      *to++ = {parts.name, parts.variant, f.since, f.name, f.about.how != kind::refused};
    }
    std::sort(list_.begin(), list_.end(),
              [](const meaning& a, const meaning& b) { return a.order() < b.order(); });
  }
  const meaning* begin() const { return list_.data(); }
  const meaning* end() const { return list_.data() + list_.size(); }

 private:
  std::array<meaning, lines> list_;
};

// If a name has any per-thread entries, a program that asks for them sees only those, even at versions older
// than the first (seen on 580.159: cuMemcpy at 4000 under flag 2 gives status 2, not the legacy entry).
std::span<const meaning> candidates(std::string_view name, std::uint64_t flags) {
  static const all_meanings meanings;
  // This avoids subrange and find_if on one: clang 14 rejects those of libstdc++ 12.
  const meaning* first = std::ranges::lower_bound(meanings.begin(), meanings.end(), name, {}, &meaning::name);
  const meaning* last = std::ranges::upper_bound(meanings.begin(), meanings.end(), name, {}, &meaning::name);
  const meaning* split = std::find_if(first, last, [](const meaning& m) { return !m.variant.empty(); });
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  if (per_thread && split != last) return {split, last};
  return {first, split};
}

}  // namespace

symbol_parts parts_of(std::string_view symbol) {
  symbol_parts parts{symbol, {}, {}};
  if (is_per_thread(symbol)) {
    parts.variant = symbol.substr(symbol.size() - 5);
    symbol.remove_suffix(5);
  }
  const std::size_t at = symbol.find_last_not_of("0123456789");
  const bool has_form =
      at != symbol.npos && at + 1 < symbol.size() && symbol.substr(0, at + 1).ends_with("_v");
  parts.name = has_form ? symbol.substr(0, at - 1) : symbol;
  parts.form = symbol.substr(parts.name.size());
  return parts;
}

proc_answer resolve(std::string_view name, int version, std::uint64_t flags, int driver_version) {
  constexpr std::uint64_t known_flags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (version > driver_version || (flags & ~known_flags) != 0) return {{}, CUDA_ERROR_INVALID_VALUE, {}};
  const std::span<const meaning> found = candidates(name, flags);
  if (std::ranges::none_of(found, &meaning::there)) {
    return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  }
  // Compared as unsigned, because 580.159 gives the newest form for a negative version.
  const auto after = std::ranges::upper_bound(found, static_cast<unsigned>(version), {}, &meaning::since);
  if (after == found.begin()) return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
  // An older form is never returned for a newer one that is missing, because its ABI differs.
  const meaning& newest = *std::prev(after);
  if (!newest.there) return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  return {newest.symbol, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS};
}

}  // namespace outboard::api
