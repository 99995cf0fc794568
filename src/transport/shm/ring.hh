// One direction of a connection through shared memory: the writer's view and the reader's. Each belongs to
// one thread at a time (sender, receiver) and keeps its own position private. What it reads from the other
// end is a claim; a claim that cannot be true breaks the view for good. Nothing here makes a system call,
// allocates or locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/shm/layout.hh"

namespace outboard::transport::shm {

class ring_writer {
 public:
  /// The size of `bytes` is a power of two.
  ring_writer(ring_words& words, std::span<std::byte> bytes)
      : words_(words), bytes_(bytes), mask_(bytes.size() - 1) {}

  /// Copies as much as there is room for; the reader sees it after publish().
  std::size_t put(std::span<const std::byte> from);
  /// Prefetches memory for a put() that will follow soon. Any thread.
  void fetch_ahead() const;
  std::uint64_t unpublished() const { return tail_ - published_.load(std::memory_order_relaxed); }
  /// Returns true if the reader sleeps and the caller must wake it.
  bool publish();

  bool has_room() { return room() > 0; }
  /// Is there room for the mark of another descriptor and for the byte that carries it?
  bool can_mark();
  /// Marks the next byte put as the carrier of a descriptor.
  void mark();

  bool reader_gone() const { return words_.reader_gone.load(std::memory_order_relaxed) != 0; }
  bool broken() const { return broken_; }

  /// Between lie_down() and get_up() a reader that makes room wakes the futex, which is 1 meanwhile.
  void lie_down() { words_.writer_asleep.store(1, std::memory_order_seq_cst); }
  void get_up() { words_.writer_asleep.store(0, std::memory_order_relaxed); }
  std::atomic<std::uint32_t>& futex() { return words_.writer_asleep; }

 private:
  std::size_t room();
  void look();

  ring_words& words_;
  std::span<std::byte> bytes_;
  std::uint64_t mask_;
  std::uint64_t tail_ = 0, marks_ = 0;
  std::atomic<std::uint64_t> published_{
      0};  // written by the sender; relaxed: other threads use it as a hint only
  std::uint64_t head_ = 0, marks_taken_ = 0;  // as last seen; never ahead of the truth
  bool broken_ = false;
};

class ring_reader {
 public:
  ring_reader(ring_words& words, std::span<std::byte> bytes)
      : words_(words), bytes_(bytes), mask_(bytes.size() - 1) {}

  /// Copies what there is, up to the size of `into` and to the next byte that carries a descriptor.
  std::size_t take(std::span<std::byte> into);
  /// Is there a byte of either kind?
  bool readable();
  /// Does the next byte carry a descriptor? Known once take() has returned nothing.
  bool at_mark() const { return mark_ == head_ && tail_ != head_; }
  /// Takes the byte that carries a descriptor.
  std::byte take_mark();
  /// After taking: a writer waits for room, and there is enough to make waking it worthwhile.
  bool writer_waits() const;

  bool broken() const { return broken_; }
  /// Between lie_down() and get_up() a writer that publishes wakes the reader. The caller must look for bytes
  /// in between, and again after a while: the writer may have looked the moment before, when its bytes were
  /// not visible yet.
  void lie_down() { words_.reader_asleep.store(1, std::memory_order_seq_cst); }
  void get_up() { words_.reader_asleep.store(0, std::memory_order_relaxed); }
  void leave() { words_.reader_gone.store(1, std::memory_order_seq_cst); }
  std::atomic<std::uint32_t>& futex_of_writer() { return words_.writer_asleep; }

 private:
  void look();

  static constexpr std::uint64_t none = ~0ull;

  ring_words& words_;
  std::span<std::byte> bytes_;
  std::uint64_t mask_;
  std::uint64_t head_ = 0, marks_ = 0;
  std::uint64_t tail_ = 0, stop_ = 0;  // as last seen, and where take() stops
  std::uint64_t mark_ = none;          // position of the next byte that carries a descriptor
  bool broken_ = false;
};

}  // namespace outboard::transport::shm
