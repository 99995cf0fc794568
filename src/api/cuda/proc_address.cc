#include "api/cuda/proc_address.hh"

#include <algorithm>
#include <iterator>
#include <span>

#include "api/describe.hh"

namespace outboard::api {
namespace {

// implemented::cuX: does the table's line of cuX promise an answer?
namespace implemented {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  [[maybe_unused]] constexpr bool symbol = kind::how != kind::later && kind::how != kind::refused;
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
}  // namespace implemented

struct meaning {
  std::string_view name;
  std::string_view variant;  ///< empty, _ptds or _ptsz
  unsigned since;
  std::string_view symbol;
  bool there;
};

constexpr meaning meanings[] = {
#define SINCE(name, suffix, variant, version) \
  {#name, #variant, version##u, #name #suffix #variant, implemented::name##suffix##variant},
#define SINCE_ELSEWHERE SINCE
#include "api/cuda/proc_versions.def"
#undef SINCE_ELSEWHERE
#undef SINCE
};

constexpr bool sorted() {
  for (std::size_t i = 1; i < std::size(meanings); ++i) {
    const meaning &a = meanings[i - 1], &b = meanings[i];
    const bool ascending =
        a.name < b.name ||
        (a.name == b.name && (a.variant < b.variant || (a.variant == b.variant && a.since < b.since)));
    if (!ascending) return false;
  }
  return true;
}
static_assert(sorted(), "proc_versions.def is not sorted by name, variant, version");

// A name that has per-thread entries at all shows only those to a program that asks for them, even at
// versions older than the first (seen on 580.159: cuMemcpy at 4000 under flag 2 gives status 2, not the
// legacy entry).
std::span<const meaning> candidates(std::string_view name, std::uint64_t flags) {
  // No subrange or find_if on one: clang 14 rejects libstdc++ 12's.
  const meaning* first = std::ranges::lower_bound(meanings, name, {}, &meaning::name);
  const meaning* last = std::ranges::upper_bound(meanings, name, {}, &meaning::name);
  const meaning* split = std::find_if(first, last, [](const meaning& m) { return !m.variant.empty(); });
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  if (per_thread && split != last) return {split, last};
  return {first, split};
}

}  // namespace

proc_answer resolve(std::string_view name, int version, std::uint64_t flags, int driver_version) {
  constexpr std::uint64_t known_flags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (version > driver_version || (flags & ~known_flags) != 0) return {{}, CUDA_ERROR_INVALID_VALUE, {}};
  const std::span<const meaning> found = candidates(name, flags);
  if (std::ranges::none_of(found, &meaning::there)) {
    return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  }
  // As unsigned: 580.159 gives the newest form to a negative version.
  const auto after = std::ranges::upper_bound(found, static_cast<unsigned>(version), {}, &meaning::since);
  if (after == found.begin()) return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
  // An older form is never given for a newer one that is not there yet: its ABI differs.
  const meaning& newest = *std::prev(after);
  if (!newest.there) return {{}, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  return {newest.symbol, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS};
}

}  // namespace outboard::api
