// The bytes of one direction that the peer may not have yet, in order: small ones are copied, large ones may
// be lent by who sends them. A position counts the bytes of the stream from its beginning. One thread at a
// time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace outboard::transport {

class unacknowledged {
 public:
  /// The position of the first byte that is kept, and of the one behind the last.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

  /// Appends copies.
  void copy(std::span<const iovec> parts);
  /// Appends bytes where they are. They stay as they are until `owner` is let go, which happens when they are
  /// acknowledged; without an owner, until settle() or drop().
  void lend(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// The peer has everything before `position`, which lies within what is kept.
  void forget_until(std::uint64_t position);
  /// Whether nothing is lent without an owner.
  bool is_settled() const;
  /// Copies what was lent without an owner: its memory is about to be used for something else. `all`: with
  /// one, too, which is let go.
  void settle(bool all = false);
  /// Forgets everything, sent or not.
  void drop();

  /// Up to `most` bytes from `position` on that lie in a row; empty at the end.
  std::span<const std::byte> run_at(std::uint64_t position, std::size_t most) const;

 private:
  /// Bytes in a row: a chunk of ours that is filled bit by bit, or lent ones.
  struct piece {
    std::unique_ptr<std::byte[]> own;
    const std::byte* lent = nullptr;
    std::shared_ptr<const void> owner;
    std::uint64_t from = 0;  ///< position of its first byte
    std::size_t size = 0;

    const std::byte* data() const { return lent ? lent : own.get(); }
  };

  void append(std::span<const std::byte> bytes);
  piece chunk_at(std::uint64_t from);

  std::deque<piece> pieces_;
  std::vector<std::unique_ptr<std::byte[]>> spare_;  // chunks of the usual size, for the next bytes
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace outboard::transport
