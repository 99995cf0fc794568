#include "transport/resumable/record.hh"

#include <bit>
#include <cstring>

namespace outboard::transport {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie in memory");

std::array<std::byte, record_header> encode(const record& r) {
  std::array<std::byte, record_header> out;
  std::memcpy(out.data(), &r.arrived, sizeof r.arrived);
  std::memcpy(out.data() + 8, &r.size, sizeof r.size);
  std::memcpy(out.data() + 12, &r.kind, sizeof r.kind);
  return out;
}

std::optional<record> decode_record(std::span<const std::byte, record_header> in) {
  record r;
  std::uint32_t kind = 0;
  std::memcpy(&r.arrived, in.data(), sizeof r.arrived);
  std::memcpy(&r.size, in.data() + 8, sizeof r.size);
  std::memcpy(&kind, in.data() + 12, sizeof kind);
  if (kind < static_cast<std::uint32_t>(record_kind::bytes) ||
      kind > static_cast<std::uint32_t>(record_kind::farewell))
    return std::nullopt;
  r.kind = static_cast<record_kind>(kind);
  const bool brings = r.kind == record_kind::bytes;
  if (brings != (r.size != 0) || r.size > most_in_record) return std::nullopt;
  return r;
}

}  // namespace outboard::transport
