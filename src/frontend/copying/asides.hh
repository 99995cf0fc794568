// Bytes of copies to the host that nobody waited for and that do not come over the session's connection:
// there the server only announces each piece, and sends it over one of its context's data connections. The
// pieces stay in those connections until there are many or the server says that work is complete; then
// several threads fetch them. Owned by the session. Functions that the reader of the session's connection
// calls are for that thread only; the others are for any thread.
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
  /// Connections of this context, for pieces of its copies. Gives the name of the first one, for the server;
  /// the next ones count on.
  std::uint32_t adopt(std::uint64_t context, data_connections::links links);
  /// Has the context connections here?
  bool has(std::uint64_t context);
  /// The server has said that the context has gone: so have its connections, and what came over them is in
  /// its place.
  void drop(std::uint64_t context);
  /// All of them: the worker has gone.
  void drop_all();
  /// Pieces that are not in their place yet.
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }

  // For the reader:

  /// The next piece of a connection, and the runs it fills. False: there is no such connection.
  bool expect(const marshal::aside_body& piece, std::span<const std::span<std::byte>> places);
  /// Will some that are expected fill a part of this memory?
  bool touch(std::span<const std::byte> memory);
  /// So many pieces that several threads should begin to fetch them, while the device copies others.
  bool many() const { return pending_.load(std::memory_order_relaxed) >= 16; }
  /// Fetches all pieces that are expected, waiting for them, and gives their bytes. An error: a connection
  /// was lost.
  result<std::uint64_t> collect();

 private:
  struct piece {
    std::uint64_t number = 0;
    std::vector<std::span<std::byte>> places;
  };
  /// Held by those who use it: a context may end meanwhile.
  struct link {
    std::unique_ptr<data_link> over;
    std::uint64_t context = 0;
    std::deque<piece> expected;  ///< of the reader, and of the one thread that it lets fetch
  };

  std::vector<std::shared_ptr<link>> with_pieces();
  bool fetch(link& from, std::atomic<std::uint64_t>& bytes);

  std::atomic<std::size_t> pending_{0};
  std::mutex mutex_;  // guards what follows; never held while bytes travel
  std::uint32_t last_name_ = 0;
  std::map<std::uint32_t, std::shared_ptr<link>> links_;
};

}  // namespace outboard::frontend
