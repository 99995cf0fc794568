#include "marshal/cuda/image_fatbin.hh"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

namespace outboard::marshal {
namespace {

constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000, flag_arch = 0x100000, flag_family = 0x200000;
constexpr std::size_t entry_bytes = 64;
// One or two entries for each architecture there is; the libraries of CUDA 13 stay below 100.
constexpr std::size_t max_entries = 4096;

result<fatbin_entry> read_entry(std::span<const std::byte> here, std::uint64_t at) {
  const std::string where = "fatbin entry at offset " + std::to_string(at);
  if (here.size() < entry_bytes) return failure(where + " is cut off");
  const auto header = load<std::uint32_t>(here, 4);
  const auto padded = load<std::uint64_t>(here, 8);
  const auto packed = load<std::uint32_t>(here, 16);
  const auto flags = load<std::uint64_t>(here, 40);
  if (header < entry_bytes || header > here.size())
    return failure(where + ": header of " + std::to_string(header) + " bytes");
  if (padded > here.size() - header)
    return failure(where + ": payload of " + std::to_string(padded) + " bytes, " +
                   std::to_string(here.size() - header) + " are left");

  fatbin_entry entry;
  switch (load<std::uint16_t>(here, 0)) {
    case 1:
      entry.kind = entry_kind::ptx;
      break;
    case 2:
      entry.kind = entry_kind::cubin;
      break;
    case 8:
      entry.kind = entry_kind::lto;
      break;
    default:
      break;
  }
  entry.capability = load<std::uint32_t>(here, 28);
  entry.arch_specific = (flags & flag_arch) != 0;
  entry.family_specific = (flags & flag_family) != 0;
  if (flags & flag_zstd) {
    entry.packing = entry_packing::zstd;
  } else if (flags & flag_lz4) {
    entry.packing = entry_packing::lz4;
  }
  std::uint64_t used = padded;
  entry.unpacked_size = padded;
  if (entry.packing != entry_packing::none) {
    if (packed > padded)
      return failure(where + ": " + std::to_string(packed) + " compressed bytes in a payload of " +
                     std::to_string(padded));
    used = packed;
    entry.unpacked_size = load<std::uint64_t>(here, 56);
  }
  entry.whole = here.first(static_cast<std::size_t>(header + padded));
  entry.payload = here.subspan(header, static_cast<std::size_t>(used));
  return entry;
}

result<std::vector<std::byte>> unpack_lz4(const fatbin_entry& entry) {
  // 255 is the best an LZ4 block can do; a hostile size must not cost memory that the bytes cannot fill.
  if (entry.unpacked_size > entry.payload.size() * 255 + 64 ||
      entry.unpacked_size > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    return failure("fatbin entry: " + std::to_string(entry.payload.size()) + " bytes of LZ4 cannot hold " +
                   std::to_string(entry.unpacked_size));
  std::vector<std::byte> out(static_cast<std::size_t>(entry.unpacked_size));
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()),
                                      reinterpret_cast<char*>(out.data()),
                                      static_cast<int>(entry.payload.size()), static_cast<int>(out.size()));
  if (got < 0 || static_cast<std::size_t>(got) != out.size())
    return failure("fatbin entry: damaged LZ4 data");
  return out;
}

// zstd's ratio has no bound, so memory grows with what really comes out; and beyond a size that is usual for
// code, a few bytes may not claim much of it.
result<std::vector<std::byte>> unpack_zstd(const fatbin_entry& entry) {
  constexpr std::uint64_t usual = 64u << 20, most_times = 256;
  if (entry.unpacked_size > usual + entry.payload.size() * most_times)
    return failure("fatbin entry: " + std::to_string(entry.payload.size()) +
                   " bytes of zstd say that they hold " + std::to_string(entry.unpacked_size));
  struct closer {
    void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
  };
  const std::unique_ptr<ZSTD_DStream, closer> stream(ZSTD_createDStream());
  if (!stream) return error{action::retry, "out of memory"};
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 27);
  ZSTD_inBuffer in{entry.payload.data(), entry.payload.size(), 0};
  std::vector<std::byte> out;
  std::size_t have = 0;
  while (true) {
    if (have == out.size()) {
      if (have > entry.unpacked_size) return failure("fatbin entry: more zstd data than the header says");
      const std::uint64_t step = std::max<std::uint64_t>(1 << 16, have);
      out.resize(static_cast<std::size_t>(std::min(entry.unpacked_size + 1, have + step)));
    }
    ZSTD_outBuffer to{out.data(), out.size(), have};
    const std::size_t before_in = in.pos;
    const std::size_t left = ZSTD_decompressStream(stream.get(), &to, &in);
    if (ZSTD_isError(left)) return failure(std::string("fatbin entry: zstd: ") + ZSTD_getErrorName(left));
    const bool moved = to.pos != have || in.pos != before_in;
    have = to.pos;
    if (left == 0) break;
    if (!moved && have < out.size()) return failure("fatbin entry: zstd data is cut off");
  }
  if (have != entry.unpacked_size)
    return failure("fatbin entry: zstd data of " + std::to_string(have) + " bytes, the header says " +
                   std::to_string(entry.unpacked_size));
  out.resize(have);
  return out;
}

}  // namespace

result<std::uint64_t> fatbin_extent(std::span<const std::byte> bytes) {
  if (bytes.size() < fatbin_header_bytes || load<std::uint32_t>(bytes, 0) != fatbin_magic)
    return failure("no fatbin: the magic number 0xba55ed50 is missing");
  const auto version = load<std::uint16_t>(bytes, 4);
  const auto header = load<std::uint16_t>(bytes, 6);
  const auto size = load<std::uint64_t>(bytes, 8);
  if (version != 1) return failure("fatbin of version " + std::to_string(version) + ", only 1 is known");
  if (header < fatbin_header_bytes || header > bytes.size() || size > bytes.size() - header)
    return failure("fatbin of " + std::to_string(header) + " + " + std::to_string(size) +
                   " bytes, there are " + std::to_string(bytes.size()));
  return header + size;
}

result<std::vector<fatbin_entry>> fatbin_entries(std::span<const std::byte> bytes) {
  const auto extent = fatbin_extent(bytes);
  if (!extent) return extent.error();
  bytes = bytes.first(static_cast<std::size_t>(*extent));
  std::vector<fatbin_entry> entries;
  for (std::size_t at = load<std::uint16_t>(bytes, 6); at < bytes.size();) {
    auto entry = read_entry(bytes.subspan(at), at);
    if (!entry) return std::move(entry).error();
    if (entries.size() == max_entries) return failure("fatbin with more than 4096 entries");
    at += entry->whole.size();
    entries.push_back(*std::move(entry));
  }
  return entries;
}

result<std::vector<std::byte>> entry_unpack(const fatbin_entry& entry, std::uint64_t limit) {
  if (entry.unpacked_size > limit)
    return failure("fatbin entry of " + std::to_string(entry.unpacked_size) + " bytes, the limit is " +
                   std::to_string(limit));
  if (entry.packing == entry_packing::lz4) return unpack_lz4(entry);
  if (entry.packing == entry_packing::zstd) return unpack_zstd(entry);
  return std::vector<std::byte>(entry.payload.begin(), entry.payload.end());
}

}  // namespace outboard::marshal
