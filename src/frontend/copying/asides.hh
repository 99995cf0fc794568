// Bytes of copies to the host that nobody waits for and that do not come over the session's connection: the
// server announces each piece there and sends it over one of its context's data connections. The pieces stay
// in these connections until there are many, or the server says that work is complete; then several threads
// fetch them. Owned by the session. Only the reader of the session's connection may call the functions marked
// for it; any thread may call the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.hh"
#include "frontend/copying/data_connections.hh"
#include "marshal/data_bodies.hh"

namespace outboard::frontend {

class asides {
 public:
  /// Takes over connections of this context, for pieces of its copies. Returns the name of the first one, for
  /// the server; the next ones count on.
  std::uint32_t adopt(std::uint64_t context, data_connections::links links);
  /// Does the context have connections here?
  bool has(std::uint64_t context);
  /// The server has said that the context is gone: drops its connections. What came over them is in its
  /// place.
  void drop(std::uint64_t context);
  /// Drops all connections, because the worker is gone.
  void drop_all();
  /// Ends all connections, so that a thread that waits for bytes there wakes up.
  void shut_down();
  /// True while there are pieces that are not in their place yet.
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }

  // For the reader:

  /// Expects the next piece of a connection, and the runs that it fills. Returns false if there is no such
  /// connection.
  bool expect(const marshal::aside_body& piece, std::span<const std::span<std::byte>> places);
  /// True if there are so many pieces that several threads should begin to fetch them while the device copies
  /// others.
  bool many() const { return pending_.load(std::memory_order_relaxed) >= 16; }
  /// Waits for all expected pieces, fetches them and returns their bytes. Fails if a connection was lost.
  result<std::uint64_t> collect();

 private:
  struct piece {
    std::uint64_t number = 0;
    std::vector<std::span<std::byte>> places;
  };
  /// Shared with the threads that use it, because a context may end meanwhile.
  struct link {
    std::unique_ptr<data_link> over;
    std::uint64_t context = 0;
    std::deque<piece> expected;  ///< used by the reader, and by the one thread that it lets fetch
  };

  std::vector<std::shared_ptr<link>> with_pieces();
  bool fetch(link& from, std::atomic<std::uint64_t>& bytes);

  std::atomic<std::size_t> pending_{0};
  std::mutex mutex_;  // guards what follows; never held while bytes travel
  std::uint32_t last_name_ = 0;
  std::map<std::uint32_t, std::shared_ptr<link>> links_;
};

}  // namespace outboard::frontend
