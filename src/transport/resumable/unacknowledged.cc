#include "transport/resumable/unacknowledged.hh"

#include <algorithm>
#include <cstring>
#include <utility>

namespace outboard::transport {
namespace {

/// Copies lie in chunks of this size, which are used again: memory that is new costs more than the copy.
constexpr std::size_t chunk = 256u << 10;
constexpr std::size_t most_spare = 16;

}  // namespace

unacknowledged::piece unacknowledged::chunk_at(std::uint64_t from) {
  piece made;
  made.from = from;
  if (!spare_.empty()) {
    made.own = std::move(spare_.back());
    spare_.pop_back();
  } else {
    made.own.reset(new std::byte[chunk]);  // not cleared: it is written before it is read
  }
  return made;
}

void unacknowledged::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const bool full = pieces_.empty() || pieces_.back().lent || pieces_.back().size == chunk;
    if (full) pieces_.push_back(chunk_at(end_));
    piece& last = pieces_.back();
    const std::size_t step = std::min(bytes.size(), chunk - last.size);
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
    if (pieces_.size() == 1 && pieces_.front().own && begin_ == end_) {
      pieces_.front().from = end_;
      pieces_.front().size = 0;
      return;
    }
    if (pieces_.front().own && spare_.size() < most_spare) spare_.push_back(std::move(pieces_.front().own));
    pieces_.pop_front();
  }
}

bool unacknowledged::is_settled() const {
  return std::ranges::none_of(pieces_, [](const piece& one) { return one.lent && !one.owner; });
}

void unacknowledged::settle(bool all) {
  if (!all && is_settled()) return;
  std::deque<piece> settled;
  for (piece& one : pieces_) {
    if (!one.lent || (one.owner && !all)) {
      settled.push_back(std::move(one));
      continue;
    }
    // Its beginning may have arrived.
    std::size_t done = begin_ > one.from ? static_cast<std::size_t>(begin_ - one.from) : 0;
    while (done < one.size) {
      piece copy = chunk_at(one.from + done);
      copy.size = std::min(one.size - done, chunk);
      std::memcpy(copy.own.get(), one.lent + done, copy.size);
      done += copy.size;
      settled.push_back(std::move(copy));
    }
  }
  pieces_ = std::move(settled);
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
