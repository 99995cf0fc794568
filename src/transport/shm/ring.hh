// One direction of a connection through shared memory: the writer's view and the reader's. Each belongs to
// one thread at a time (sender, receiver) and keeps its own position to itself; of the other end it takes
// what it reads as a claim. Where a claim cannot be true the view is broken for good. Nothing here makes a
// system call, allocates or locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/shm/layout.hh"

namespace outboard::transport::shm {

/// Where one end stands in its direction.
struct ring_place {
  std::uint64_t bytes = 0, marks = 0;
};

class ring_writer {
 public:
  /// `bytes`: a power of two of them.
  ring_writer(ring_words& words, std::span<std::byte> bytes)
      : words_(words), bytes_(bytes), mask_(bytes.size() - 1) {}

  /// Copies as much as there is room for; the reader sees it with publish().
  std::size_t put(std::span<const std::byte> from);
  /// Something will be put soon: until then the memory for it comes over to this processor. Any thread.
  void fetch_ahead() const;
  std::uint64_t unpublished() const { return tail_ - published_.load(std::memory_order_relaxed); }
  /// True: the reader sleeps, and whoever called must wake it.
  bool publish();

  bool has_room() { return room() > 0; }
  /// Is there room for the mark of another descriptor and for the byte that carries it?
  bool can_mark();
  /// The next byte put carries a descriptor.
  void mark();

  bool reader_gone() const { return words_.reader_gone.load(std::memory_order_relaxed) != 0; }
  bool broken() const { return broken_; }

  /// All that was put is published.
  ring_place place() const { return {tail_, marks_}; }
  /// Goes on where another process has stopped. Before anything is put. False: it cannot have been there.
  [[nodiscard]] bool go_on(const ring_place& from);

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
  std::atomic<std::uint64_t> published_{0};   // written by the sender; relaxed: others only guess from it
  std::uint64_t head_ = 0, marks_taken_ = 0;  // as last seen: always behind the truth
  bool broken_ = false;
};

class ring_reader {
 public:
  ring_reader(ring_words& words, std::span<std::byte> bytes)
      : words_(words), bytes_(bytes), mask_(bytes.size() - 1) {}

  /// Copies what there is, up to the size of `into` and to the next byte that carries a descriptor.
  std::size_t take(std::span<std::byte> into);
  /// Is there a byte, of either kind?
  bool readable();
  /// Does the next byte carry a descriptor? Known once take() has given nothing.
  bool at_mark() const { return mark_ == head_ && tail_ != head_; }
  /// Takes that byte.
  std::byte take_mark();
  /// After taking: a writer waits for room, and there is enough to be worth waking it.
  bool writer_waits() const;

  bool broken() const { return broken_; }
  ring_place place() const { return {head_, marks_}; }
  /// Goes on where another process has stopped. Before anything is taken. False: it cannot have been there.
  [[nodiscard]] bool go_on(const ring_place& from);
  /// Between lie_down() and get_up() a writer that publishes wakes the reader; look for bytes in between, and
  /// again after a while: the writer may have looked the moment before, and what it wrote may still have been
  /// on its way.
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
