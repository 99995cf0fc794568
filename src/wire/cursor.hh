// The one place that moves over wire bytes. writer appends to a buffer that its owner reuses. reader walks
// over bytes of a peer and fails stickily: after the first misfit every get returns zero and ok() is false,
// so a decoder checks once. Little-endian, no padding, sizes as u64. Values; one thread at a time.
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

/// A type that may be sent as it is in memory: no padding (which would leak memory), no pointer, fixed width.
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

  /// Appends the bytes alone; the receiver must know how many there are.
  void bytes(std::span<const std::byte> data) {
    // Not insert(): g++ 12 reports its growth from empty as an overflow.
    if (!data.empty()) std::memcpy(room(data.size()).data(), data.data(), data.size());
  }

  /// Appends a u64 length, then the bytes.
  void sized(std::span<const std::byte> data) {
    put<std::uint64_t>(data.size());
    bytes(data);
  }
  void text(std::string_view s) { sized(std::as_bytes(std::span(s.data(), s.size()))); }

  /// Room for `n` bytes, which the caller fills before the next append.
  std::span<std::byte> room(std::size_t n) {
    buffer_.resize(buffer_.size() + n);
    return std::span(buffer_).last(n);
  }

  /// The last `n` bytes that were written.
  std::span<std::byte> last(std::size_t n) { return std::span(buffer_).last(n); }

  std::size_t size() const { return buffer_.size(); }

  /// Overwrites a value that was written earlier at `offset`, such as a length that was not known then.
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

  /// The next `n` bytes in place; empty (and failed) if fewer are left. Valid as long as the frame's buffer.
  std::span<const std::byte> bytes(std::uint64_t n) {
    if (!ok_ || n > rest_.size()) return fail(), std::span<const std::byte>{};
    const auto taken = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return taken;
  }

  /// Reads a u64 length, then the bytes. A length above `limit` or above what is left is a misfit; nothing is
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

  /// `n` values of T as bytes; the product is checked for overflow.
  template <raw_value T>
  std::span<const std::byte> array(std::uint64_t n) {
    if (n > rest_.size() / sizeof(T)) return fail(), std::span<const std::byte>{};
    return bytes(n * sizeof(T));
  }

  std::span<const std::byte> rest() const { return rest_; }
  bool ok() const { return ok_; }
  /// True if everything was understood and nothing is left over.
  bool finished() const { return ok_ && rest_.empty(); }
  void fail() { ok_ = false, rest_ = {}; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace outboard::wire
