// Further connections to the worker for the bytes of one context's large copies in one direction: several
// streams, filled or emptied by several threads, for every API. Owned by the context's state; used by one
// copy at a time, whose helping threads use single links only.
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

/// One connection, and which of its pieces is next. A thread that uses it holds `use`.
struct data_link {
  std::unique_ptr<transport::connection> connection;
  std::mutex use;
  std::uint64_t taken = 0;                      ///< pieces of the copy at hand that have come over it
  std::uint32_t number = 0;                     ///< to the host: the worker's name for it
  std::optional<marshal::piece_packer> packer;  ///< if what is sent may be packed
  std::vector<std::byte> packed, unpacked;      ///< a piece that comes packed
  std::atomic<std::uint32_t> pace{0};           ///< nanoseconds in which a MiB arrives; 0: not known
};

/// What a context's copies that nobody waits for have come to; the connections themselves belong to `asides`.
struct later_copies {
  std::mutex use;            ///< guards what follows
  std::uint64_t wanted = 0;  ///< bytes so far
  bool tried = false;        ///< to open connections, or to share memory, for them
};

class data_connections {
 public:
  using links = std::vector<std::unique_ptr<data_link>>;

  std::mutex use;  ///< held by the copy that uses them; guards all below

  std::uint64_t wanted = 0;  ///< bytes that would have gone over them so far
  bool refused = false;      ///< the server has none for us

  bool open() const { return !links_.empty() && !dead_.load(std::memory_order_acquire); }
  /// Those before end with this: the worker has taken the new ones, so it has done all that was asked of
  /// them.
  void adopt(links made) {
    links_ = std::move(made);
    dead_.store(false, std::memory_order_release);
  }
  /// They are no good any more: the context or the worker has gone. Any thread, without `use`.
  void abandon() { dead_.store(true, std::memory_order_release); }

  const links& all() const { return links_; }

  /// Numbers for the pieces of a copy; never given again.
  std::uint64_t reserve(std::uint64_t count) { return std::exchange(next_, next_ + count); }

 private:
  links links_;
  std::uint64_t next_ = 1;
  std::atomic<bool> dead_{false};
};

/// One piece over the link, which the caller uses. False: the connection is lost. Where it can be resumed,
/// the bytes stay as they are until settle_pieces().
bool send_piece(data_link& over, std::uint64_t number, std::span<const std::byte> bytes);

/// The memory of the pieces that were sent over the link, which the caller uses, may be used for something
/// else from now on. Waits until `until` for the server to say that it has them, and copies the rest.
void settle_pieces(data_link& over, transport::deadline until);

/// The next piece of the link, which must be this one, into the runs one behind the other. Nothing: the
/// connection is lost, or the server does not keep to the protocol. Else the code of its copy, 0 for success.
std::optional<std::int32_t> receive_piece(data_link& over, std::uint64_t number,
                                          std::span<const std::span<std::byte>> into);

}  // namespace outboard::frontend
