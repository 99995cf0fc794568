// Further connections to the worker for the bytes of one context's large copies in one direction: several
// streams, filled or emptied by several threads, for any API. Owned by the context's state; one copy at a
// time uses them, and its helping threads use single links only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "marshal/piece_packing.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

/// One connection, and the number of its next piece. A thread that uses it holds `use`.
struct data_link {
  std::unique_ptr<transport::connection> connection;
  std::mutex use;
  std::uint64_t taken = 0;                      ///< pieces of the current copy that have come over it
  std::uint32_t number = 0;                     ///< to the host: the worker's name for the connection
  std::optional<marshal::piece_packer> packer;  ///< set if sent pieces may be packed
  std::vector<std::byte> packed, unpacked;      ///< buffers for a piece that arrives packed
  std::atomic<std::uint32_t> pace{0};           ///< nanoseconds in which a MiB arrives; 0: unknown
};

/// The amount of a context's copies that nobody waits for; `asides` owns the connections.
struct later_copies {
  std::mutex use;            ///< guards what follows
  std::uint64_t wanted = 0;  ///< bytes so far
  bool tried = false;        ///< tried to open connections, or to share memory, for them
};

class data_connections {
 public:
  using links = std::vector<std::unique_ptr<data_link>>;

  std::mutex use;  ///< held by the copy that uses the connections; guards everything below

  std::uint64_t wanted = 0;  ///< bytes so far that could have gone over them
  bool refused = false;      ///< the server refuses to open any

  bool open() const { return !links_.empty() && !dead_.load(std::memory_order_acquire); }
  /// Replaces the earlier connections. This is safe: the worker has accepted the new ones, so it has executed
  /// all requests about the earlier ones.
  void adopt(links made) {
    links_ = std::move(made);
    dead_.store(false, std::memory_order_release);
  }
  /// Makes the connections unusable, because the context or the worker is gone. Any thread; does not need
  /// `use`.
  void abandon() { dead_.store(true, std::memory_order_release); }

  const links& all() const { return links_; }

  /// Reserves numbers for the pieces of a copy; they are never reused.
  std::uint64_t reserve(std::uint64_t count) { return std::exchange(next_, next_ + count); }

 private:
  links links_;
  std::uint64_t next_ = 1;
  std::atomic<bool> dead_{false};
};

/// Sends one piece over a link that the caller uses. Returns false if the connection is lost. The bytes must
/// stay as they are until settle_pieces().
bool send_piece(data_link& over, std::uint64_t number, std::span<const std::byte> bytes);
/// From now on the pieces that were sent need their bytes no more, though a broken line may come back.
void settle_pieces(const data_connections::links& over);

/// Receives the link's next piece, which must have this number, into the runs one after the other. Returns
/// nothing if the connection is lost or the server breaks the protocol, else the code of the piece's copy (0:
/// success).
std::optional<std::int32_t> receive_piece(data_link& over, std::uint64_t number,
                                          std::span<const std::span<std::byte>> into);

}  // namespace outboard::frontend
