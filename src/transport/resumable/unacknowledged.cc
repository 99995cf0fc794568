#include "transport/resumable/unacknowledged.hh"

#include <algorithm>
#include <cstring>
#include <utility>

namespace outboard::transport {
namespace {

/// Copies of small sends share chunks of this size.
constexpr std::size_t chunk = 64u << 10;
constexpr std::size_t most_spare = 4;

}  // namespace

unacknowledged::piece unacknowledged::chunk_of(std::size_t size) {
  piece made;
  made.from = end_;
  made.room = std::max(size, chunk);
  if (made.room == chunk && !spare_.empty()) {
    made.own = std::move(spare_.back());
    spare_.pop_back();
  } else {
    made.own.reset(new std::byte[made.room]);  // not cleared: it is written before it is read
  }
  return made;
}

void unacknowledged::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const bool full = pieces_.empty() || pieces_.back().lent || pieces_.back().size == pieces_.back().room;
    if (full) pieces_.push_back(chunk_of(bytes.size()));
    piece& last = pieces_.back();
    const std::size_t step = std::min(bytes.size(), last.room - last.size);
    std::memcpy(last.own.get() + last.size, bytes.data(), step);
    last.size += step;
    end_ += step;
    bytes = bytes.subspan(step);
  }
}

void unacknowledged::copy(std::span<const iovec> parts) {
  for (const iovec& part : parts) append({static_cast<const std::byte*>(part.iov_base), part.iov_len});
}

void unacknowledged::lend(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  piece made;
  made.lent = bytes.data();
  made.owner = std::move(owner);
  made.from = end_;
  made.size = bytes.size();
  pieces_.push_back(std::move(made));
  end_ += bytes.size();
}

void unacknowledged::forget_until(std::uint64_t position) {
  begin_ = std::max(begin_, position);
  while (!pieces_.empty() && pieces_.front().from + pieces_.front().size <= begin_) {
    // The last chunk goes on being filled.
    if (pieces_.size() == 1 && pieces_.front().room == chunk && begin_ == end_) {
      pieces_.front().from = end_;
      pieces_.front().size = 0;
      return;
    }
    if (pieces_.front().room == chunk && spare_.size() < most_spare)
      spare_.push_back(std::move(pieces_.front().own));
    pieces_.pop_front();
  }
}

void unacknowledged::settle() {
  for (piece& one : pieces_) {
    if (!one.lent || one.owner) continue;
    // Its beginning may have arrived.
    const std::size_t gone = begin_ > one.from ? static_cast<std::size_t>(begin_ - one.from) : 0;
    one.own.reset(new std::byte[one.size - gone]);
    one.room = one.size -= gone;
    one.from += gone;
    std::memcpy(one.own.get(), one.lent + gone, one.size);
    one.lent = nullptr;
  }
}

void unacknowledged::drop() {
  pieces_.clear();
  spare_.clear();
  begin_ = end_;
}

std::span<const std::byte> unacknowledged::run_at(std::uint64_t position, std::size_t most) const {
  const auto behind = std::ranges::upper_bound(pieces_, position, {}, &piece::from);
  if (position >= end_ || behind == pieces_.begin()) return {};
  const piece& one = *std::prev(behind);
  const auto offset = static_cast<std::size_t>(position - one.from);
  return {one.data() + offset, std::min(most, one.size - offset)};
}

}  // namespace outboard::transport
