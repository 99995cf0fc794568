// The contents of the memory that both ends share: one page of words, then the bytes of the two rings. The
// other end can write anything anywhere at any time, so a word is read once, into a variable of ours, and
// checked before it is used; our own positions are never read back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace outboard::transport::shm {

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t line = 128;
/// Descriptors that may be under way in one direction; a power of two.
inline constexpr std::size_t most_descriptors = 64;

/// One direction. Positions count bytes since the beginning and never wrap.
struct ring_words {
  // The writer's cache line, written with every send.
  alignas(line) std::atomic<std::uint64_t> tail;  ///< bytes before it may be read
  std::atomic<std::uint64_t> descriptors_sent;
  // The reader's cache line, written with every receive.
  alignas(line) std::atomic<std::uint64_t> head;  ///< bytes before it may be overwritten
  std::atomic<std::uint64_t> descriptors_taken;
  // Written rarely, when a side falls asleep, wakes up or leaves; read with every send and receive.
  alignas(line) std::atomic<std::uint32_t> reader_asleep;  ///< wants a byte on the socket when tail moves
  std::atomic<std::uint32_t> reader_gone;                  ///< has closed, and reads nothing more
  alignas(line) std::atomic<std::uint32_t> writer_asleep;  ///< the futex of a writer without room
  /// The position of the byte that carries the n-th descriptor is in [n % most_descriptors].
  alignas(line) std::atomic<std::uint64_t> descriptor_at[most_descriptors];
};

struct shared_words {
  std::uint64_t magic;
  std::uint64_t up_bytes, down_bytes;  ///< powers of two; written before the memory is handed over
  ring_words up, down;                 ///< up: from the client to the server
};

inline constexpr std::uint64_t magic = 0x3120676e69526d53ull;  // "SmRing 1"
inline constexpr std::size_t header_bytes = 4096;
inline constexpr std::uint64_t smallest_ring = 4096, largest_ring = 256u << 20;

static_assert(sizeof(shared_words) <= header_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace outboard::transport::shm
