// The one place that moves over wire bytes. writer appends to a buffer that its owner reuses; reader walks
// bytes of a peer and fails stickily: after the first misfit every get gives zero and ok() is false, so a
// decoder checks once. Little-endian, no padding, sizes as u64. Values; one thread at a time.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace outboard::wire {

static_assert(std::endian::native == std::endian::little, "the codec copies values as they lie in memory");

/// May be sent as it lies in memory: no padding (padding leaks), no pointer, fixed width.
template <class T>
concept raw_value = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::same_as<T, bool> &&
                    (std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);

class writer {
 public:
  explicit writer(std::vector<std::byte>& into) : buffer_(into) {}

  template <raw_value T>
  void put(const T& value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put(bool value) { put<std::uint8_t>(value ? 1 : 0); }

  /// The bytes alone; the receiver knows how many.
  void bytes(std::span<const std::byte> data) {
    // Not insert(): g++ 12 takes its growth from empty for an overflow.
    if (!data.empty()) std::memcpy(room(data.size()).data(), data.data(), data.size());
  }

  /// u64 length, then the bytes.
  void sized(std::span<const std::byte> data) {
    put<std::uint64_t>(data.size());
    bytes(data);
  }
  void text(std::string_view s) { sized(std::as_bytes(std::span(s.data(), s.size()))); }

  /// Room for `n` bytes to be filled by the caller before the next append.
  std::span<std::byte> room(std::size_t n) {
    buffer_.resize(buffer_.size() + n);
    return std::span(buffer_).last(n);
  }

  std::size_t size() const { return buffer_.size(); }

  /// Overwrites a value written earlier at `offset` (a length that is known only now).
  template <raw_value T>
  void patch(std::size_t offset, const T& value) {
    std::memcpy(buffer_.data() + offset, &value, sizeof value);
  }

 private:
  std::vector<std::byte>& buffer_;
};

class reader {
 public:
  reader() = default;
  explicit reader(std::span<const std::byte> from) : rest_(from) {}

  template <raw_value T>
  T get() {
    T value{};
    const std::span<const std::byte> raw = bytes(sizeof(T));
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  /// Any byte but 0 and 1 is a misfit.
  bool flag() {
    const auto value = get<std::uint8_t>();
    if (value > 1) fail();
    return value == 1;
  }

  /// The next `n` bytes in place, or nothing (and failed) when fewer are left. Valid while the frame's buffer
  /// is.
  std::span<const std::byte> bytes(std::uint64_t n) {
    if (!ok_ || n > rest_.size()) return fail(), std::span<const std::byte>{};
    const auto taken = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return taken;
  }

  /// u64 length, then the bytes; a length above `limit` or the bytes left is a misfit, and nothing is
  /// allocated.
  std::span<const std::byte> sized(std::uint64_t limit = ~0ull) {
    const auto n = get<std::uint64_t>();
    if (n > limit) return fail(), std::span<const std::byte>{};
    return bytes(n);
  }
  std::string_view text(std::uint64_t limit = 1 << 16) {
    const auto raw = sized(limit);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

  /// `n` values of T as bytes; the product is checked.
  template <raw_value T>
  std::span<const std::byte> array(std::uint64_t n) {
    if (n > rest_.size() / sizeof(T)) return fail(), std::span<const std::byte>{};
    return bytes(n * sizeof(T));
  }

  std::span<const std::byte> rest() const { return rest_; }
  bool ok() const { return ok_; }
  /// Everything was understood and nothing is left over.
  bool finished() const { return ok_ && rest_.empty(); }
  void fail() { ok_ = false, rest_ = {}; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace outboard::wire
