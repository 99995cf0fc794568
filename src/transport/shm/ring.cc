#include "transport/shm/ring.hh"

#include <algorithm>
#include <cstring>

namespace outboard::transport::shm {
namespace {

/// Asks for the line, to write to it. (GCC's own prefetch for writing is one for reading where it does not
/// know the processor; those that have no such thing pass it over.)
void fetch_for_writing(const std::byte* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace

void ring_writer::fetch_ahead() const {
  // The peer read it last, or it is a lap old and in no cache near: the bytes of a send would wait for it,
  // and the tail behind them.
  const std::uint64_t at = published_.load(std::memory_order_relaxed);
  for (std::uint64_t offset = 0; offset < 2 * line; offset += line / 2)
    fetch_for_writing(bytes_.data() + ((at + offset) & mask_));
}

void ring_writer::look() {
  const std::uint64_t head = words_.head.load(std::memory_order_seq_cst);  // partner: ring_reader::take()
  const std::uint64_t taken = words_.descriptors_taken.load(std::memory_order_acquire);
  broken_ = broken_ || head < head_ || head > published_.load(std::memory_order_relaxed) ||
            taken < marks_taken_ || taken > marks_;
  if (broken_) return;
  head_ = head;
  marks_taken_ = taken;
}

std::size_t ring_writer::room() {
  if (tail_ - head_ == bytes_.size()) look();
  return broken_ ? 0 : bytes_.size() - (tail_ - head_);
}

std::size_t ring_writer::put(std::span<const std::byte> from) {
  if (bytes_.size() - (tail_ - head_) < from.size()) look();
  const std::size_t n =
      broken_ ? 0 : std::min(from.size(), bytes_.size() - static_cast<std::size_t>(tail_ - head_));
  if (n == 0) return 0;
  const std::size_t at = tail_ & mask_, first = std::min(n, bytes_.size() - at);
  std::memcpy(bytes_.data() + at, from.data(), first);
  if (first < n) std::memcpy(bytes_.data(), from.data() + first, n - first);
  tail_ += n;
  return n;
}

bool ring_writer::publish() {
  if (unpublished() == 0) return false;
  published_.store(tail_, std::memory_order_relaxed);
  // The reader sets reader_asleep and then looks at tail. We may look at reader_asleep before our tail has
  // got through to it, and miss each other: the reader looks again before it sleeps for long
  // (ring_connection::await_bytes()). A fence here would make every post wait until the line of tail, which
  // the reader polls, has come over: more than all the rest of it.
  words_.tail.store(tail_, std::memory_order_release);
  return words_.reader_asleep.load(std::memory_order_relaxed) != 0 && words_.reader_asleep.exchange(0) != 0;
}

bool ring_writer::can_mark() {
  if (marks_ - marks_taken_ >= most_descriptors) look();
  return !broken_ && marks_ - marks_taken_ < most_descriptors && has_room();
}

void ring_writer::mark() {
  words_.descriptor_at[marks_ % most_descriptors].store(tail_, std::memory_order_relaxed);
  words_.descriptors_sent.store(++marks_, std::memory_order_release);  // before the tail that lies behind it
}

bool ring_writer::go_on(const ring_place& from) {
  tail_ = from.bytes;
  published_.store(tail_, std::memory_order_relaxed);
  marks_ = from.marks;
  // What was not read yet is no more than there is room for.
  head_ = tail_ - std::min<std::uint64_t>(tail_, bytes_.size());
  marks_taken_ = marks_ - std::min<std::uint64_t>(marks_, most_descriptors);
  look();
  return !broken_;
}

bool ring_reader::go_on(const ring_place& from) {
  head_ = tail_ = stop_ = from.bytes;
  marks_ = from.marks;
  look();
  return !broken_;
}

void ring_reader::look() {
  const std::uint64_t tail = words_.tail.load(std::memory_order_seq_cst);  // partner: ring_writer::publish()
  // Behind the tail: then a mark that lies before it is seen.
  const std::uint64_t sent = words_.descriptors_sent.load(std::memory_order_acquire);
  broken_ = broken_ || tail < tail_ || tail - head_ > bytes_.size() || sent - marks_ > most_descriptors;
  if (broken_) return;
  tail_ = stop_ = tail;
  mark_ = none;
  if (sent == marks_) return;
  mark_ = words_.descriptor_at[marks_ % most_descriptors].load(std::memory_order_relaxed);
  broken_ = mark_ < head_;
  stop_ = std::min(tail, std::max(mark_, head_));
}

std::size_t ring_reader::take(std::span<std::byte> into) {
  if (head_ == stop_) look();
  const std::size_t n = broken_ ? 0 : std::min<std::uint64_t>(into.size(), stop_ - head_);
  if (n == 0) return 0;
  const std::size_t at = head_ & mask_, first = std::min(n, bytes_.size() - at);
  std::memcpy(into.data(), bytes_.data() + at, first);
  if (first < n) std::memcpy(into.data() + first, bytes_.data(), n - first);
  head_ += n;
  words_.head.store(head_, std::memory_order_seq_cst);  // partner: ring_writer::look(), behind lie_down()
  return n;
}

bool ring_reader::readable() {
  if (head_ == stop_) look();
  return !broken_ && (head_ != stop_ || at_mark());
}

std::byte ring_reader::take_mark() {
  const std::byte carrier = bytes_[head_ & mask_];
  ++head_;
  stop_ = head_;  // look again: the next mark is not known
  words_.descriptors_taken.store(++marks_, std::memory_order_release);
  words_.head.store(head_, std::memory_order_seq_cst);
  return carrier;
}

bool ring_reader::writer_waits() const {
  // A quarter: one wake-up for many bytes. The writer looks by itself now and then.
  return words_.writer_asleep.load(std::memory_order_seq_cst) != 0 &&
         tail_ - head_ <= bytes_.size() - bytes_.size() / 4;
}

}  // namespace outboard::transport::shm
