// Parts of a message that are elsewhere: in the sender's memory when it is written, in the frame when it is
// read. A body with only such fields and fixed ones is written and read without allocating. Values; the
// memory that a view shows must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/cursor.hh"

namespace outboard::marshal {

/// Travels as `bytes`: u64 size, then the bytes; more than `Most` is a misfit.
template <std::uint64_t Most>
class byte_view {
 public:
  byte_view() = default;
  byte_view(std::span<const std::byte> shown) : data_(shown.data()), size_(shown.size()) {}
  /// Writes `size` zeroes, which a sender whose bytes are in pieces overwrites in place: if this is the last
  /// field of a message, they are writer::last(size).
  static byte_view room(std::size_t size) {
    byte_view made;
    made.size_ = size;
    return made;
  }

  std::span<const std::byte> shown() const { return {data_, data_ ? size_ : 0}; }
  std::size_t size() const { return size_; }

  void put(wire::writer& w) const {
    w.put<std::uint64_t>(size_);
    if (data_) {
      w.bytes(shown());
    } else {
      w.room(size_);
    }
  }
  void take(wire::reader& r) { *this = byte_view(r.sized(Most)); }

 private:
  const std::byte* data_ = nullptr;  ///< null: zeroes
  std::size_t size_ = 0;
};

/// Travels as `list of T`: u64 count, then the items; more than `Most` is a misfit. Items may be at any
/// address, so they are read by copying.
template <wire::raw_value T, std::uint64_t Most>
class list_view {
 public:
  list_view() = default;
  list_view(std::span<const T> shown) : bytes_(std::as_bytes(shown)) {}
  /// `shown` must hold whole items.
  static list_view of_bytes(std::span<const std::byte> shown) {
    list_view made;
    made.bytes_ = shown;
    return made;
  }

  std::size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](std::size_t i) const {
    T item;
    std::memcpy(&item, bytes_.data() + i * sizeof item, sizeof item);
    return item;
  }

  void put(wire::writer& w) const {
    w.put<std::uint64_t>(size());
    w.bytes(bytes_);
  }
  void take(wire::reader& r) {
    const auto n = r.get<std::uint64_t>();
    if (n > Most) return r.fail();
    bytes_ = r.array<T>(n);
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace outboard::marshal
