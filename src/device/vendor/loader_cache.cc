#include "device/vendor/loader_cache.hh"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

namespace outboard::device::vendor {
namespace {

// The format since glibc 2.2 (sysdeps/generic/dl-cache.h): this header, entries, strings; string offsets
// count from the header. Older ldconfigs put a libc5 table in front of it.
constexpr std::string_view magic = "glibc-ld.so.cache1.1";
constexpr std::size_t header_size = 48;
constexpr std::size_t entry_size = 24;

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view text(std::string_view bytes, std::size_t at) {
  if (at >= bytes.size()) return {};
  const std::size_t end = bytes.find('\0', at);
  return end == std::string_view::npos ? std::string_view{} : bytes.substr(at, end - at);
}

}  // namespace

std::vector<std::string> loader_cache_paths(std::string_view soname, const std::string& cache) {
  std::ifstream file(cache, std::ios::binary);
  const std::string contents{std::istreambuf_iterator<char>(file), {}};
  const std::size_t start = contents.find(magic);
  if (start == std::string::npos) return {};
  const std::string_view bytes = std::string_view(contents).substr(start);
  if (bytes.size() < header_size) return {};
  const std::uint32_t count = word(bytes, magic.size());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < count && header_size + (i + 1) * entry_size <= bytes.size(); ++i) {
    const std::size_t entry = header_size + i * entry_size;
    if (text(bytes, word(bytes, entry + 4)) == soname)
      found.emplace_back(text(bytes, word(bytes, entry + 8)));
  }
  return found;
}

}  // namespace outboard::device::vendor
