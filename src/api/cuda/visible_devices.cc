#include "api/cuda/visible_devices.hh"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace outboard::api {
namespace {

bool is_uuid(std::string_view entry) { return entry.starts_with("GPU-") || entry.starts_with("MIG-"); }

/// The hexadecimal digits behind the prefix, up to the first character that is neither a digit nor a dash; at
/// most as many as a UUID has.
std::string digits_of(std::string_view uuid) {
  std::string digits;
  for (const char c : uuid.substr(std::min<std::size_t>(uuid.size(), 4))) {
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c)) || digits.size() == 32) break;
    digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return digits;
}

std::optional<std::size_t> by_uuid(std::string_view entry, std::span<const std::string> uuids) {
  const std::string wanted = digits_of(entry);
  if (wanted.empty()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!digits_of(uuids[i]).starts_with(wanted)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<std::size_t> by_index(std::string_view entry, std::size_t devices) {
  const std::string text(entry);
  char* end = nullptr;
  // Converts like strtol() to an int: 2^32 is 0, and a number that does not fit a long is -1.
  const int index = static_cast<int>(std::strtol(text.c_str(), &end, 10));
  if (end == text.c_str() || index < 0 || static_cast<std::size_t>(index) >= devices) return std::nullopt;
  return static_cast<std::size_t>(index);
}

}  // namespace

std::optional<std::size_t> find_visible_device(std::string_view entry, std::span<const std::string> uuids) {
  return is_uuid(entry) ? by_uuid(entry, uuids) : by_index(entry, uuids.size());
}

visible_devices read_visible_devices(std::string_view list, std::span<const std::string> uuids) {
  visible_devices out;
  const bool of_uuids = is_uuid(list);
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = list.substr(0, comma);
    if (is_uuid(entry) != of_uuids) return out;
    const auto ordinal = find_visible_device(entry, uuids);
    if (!ordinal) return out;
    out.twice =
        out.twice || std::find(out.ordinals.begin(), out.ordinals.end(), *ordinal) != out.ordinals.end();
    out.ordinals.push_back(*ordinal);
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace outboard::api
