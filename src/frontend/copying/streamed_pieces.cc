#include "frontend/copying/streamed_pieces.hh"

#include <array>
#include <atomic>
#include <vector>

#include "frontend/copying/copy_crew.hh"
#include "frontend/copying/copy_pieces.hh"
#include "marshal/data_bodies.hh"
#include "transport/resumable/stream.hh"

namespace outboard::frontend {
namespace {

/// Pieces on the way: enough for every connection to have some, few enough for what the server keeps.
constexpr std::uint64_t window = 16;

/// One copy: what its threads share.
class work {
 public:
  work(data_connections& over, std::uint64_t size, const post_piece& post)
      : size_(size),
        piece_(piece_of(size, marshal::max_data_piece)),
        count_((size + piece_ - 1) / piece_),
        first_(over.reserve(count_)),
        post_(post) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t number(std::uint64_t n) const { return first_ + n; }
  std::uint64_t offset(std::uint64_t n) const { return n * piece_; }
  std::uint64_t length(std::uint64_t n) const { return std::min(piece_, size_ - offset(n)); }

  /// Piece n, which is the next; others may move it then. `over`: to the host.
  std::int32_t post(std::uint64_t n, const data_link* over = nullptr) {
    streamed_piece piece{offset(n), length(n), number(n), n == 0, n + 1 == count_};
    if (over) piece.connection = over->number, piece.pace = over->pace.load(std::memory_order_relaxed);
    const std::int32_t code = post_(piece);
    if (code == 0) posted.store(n + 1, std::memory_order_release);
    return code;
  }

  std::atomic<std::uint64_t> posted{0}, moved{0};
  std::atomic<bool> lost{false};  ///< a connection is

 private:
  const std::uint64_t size_, piece_, count_, first_;
  const post_piece& post_;
};

/// `step` moves one piece and says whether there was one, until `over`; what the program's thread does, and
/// those that help it.
template <class Over, class Step>
void keep_moving(Over&& over, Step&& step) {
  for (patience wait; !over();) {
    if (step()) {
      wait.restart();
    } else {
      wait.pause();
    }
  }
}

/// A thread for each connection, the program's own among them.
int helpers_for(const data_connections::links& links) { return static_cast<int>(links.size()) - 1; }

/// Sends pieces, each over whatever connection is free.
class sending {
 public:
  sending(work& shared, const data_connections::links& links, std::span<const std::byte> bytes)
      : shared_(shared), links_(links), bytes_(bytes), sent_(shared.count()) {}

  bool is_sent(std::uint64_t n) const { return sent_[n].load(std::memory_order_acquire); }
  bool all_begun() const { return next_.load() >= shared_.count(); }

  bool step() {
    for (const auto& link : links_) {
      const std::unique_lock use(link->use, std::try_to_lock);
      if (!use) continue;
      std::uint64_t n = next_.load();
      if (n >= shared_.count() || n >= shared_.posted.load(std::memory_order_acquire) + window ||
          !next_.compare_exchange_strong(n, n + 1))
        return false;
      if (send_piece(*link, shared_.number(n), bytes_.subspan(shared_.offset(n), shared_.length(n)))) {
        sent_[n].store(true, std::memory_order_release);
      } else {
        shared_.lost.store(true);
      }
      return true;
    }
    return false;
  }

  /// After the last step of every thread.
  void settle() {
    const auto until = transport::resumable_stream::news_is_worth();
    for (const auto& link : links_) {
      const std::lock_guard use(link->use);
      settle_pieces(*link, until);
    }
  }

 private:
  work& shared_;
  const data_connections::links& links_;
  const std::span<const std::byte> bytes_;
  std::vector<std::atomic<bool>> sent_;
  std::atomic<std::uint64_t> next_{0};
};

/// Receives pieces: piece n comes over connection n modulo their count.
class receiving {
 public:
  receiving(work& shared, const data_connections::links& links, std::span<std::byte> bytes)
      : shared_(shared), links_(links), bytes_(bytes) {
    for (const auto& link : links_) link->taken = 0;
  }

  bool step() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      data_link& link = *links_[i];
      const std::unique_lock use(link.use, std::try_to_lock);
      if (!use) continue;
      const std::uint64_t n = link.taken * links_.size() + i;
      if (n >= shared_.posted.load(std::memory_order_acquire)) continue;
      ++link.taken;
      const auto code = receive_piece(link, shared_.number(n),
                                      std::array{bytes_.subspan(shared_.offset(n), shared_.length(n))});
      if (!code) {
        shared_.lost.store(true);
      } else if (*code != 0) {
        std::int32_t none = 0;
        failed_.compare_exchange_strong(none, *code);
      }
      shared_.moved.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }
  std::int32_t code() const { return failed_.load(); }

 private:
  work& shared_;
  const data_connections::links& links_;
  const std::span<std::byte> bytes_;
  std::atomic<std::int32_t> failed_{0};
};

std::optional<std::int32_t> connection_lost(session& server) {
  server.lose_data_connection();
  return std::nullopt;
}

}  // namespace

std::optional<std::int32_t> stream_to_device(session& server, data_connections& over,
                                             std::span<const std::byte> bytes, const post_piece& post) {
  work shared(over, bytes.size(), post);
  sending out(shared, over.all(), bytes);
  std::int32_t code = 0;
  const auto stopped = [&] { return shared.lost.load() || out.all_begun(); };
  const std::function<void()> help = [&] { keep_moving(stopped, [&] { return out.step(); }); };
  {
    const copy_crew::shift shift(copy_crew::instance(), help, helpers_for(over.all()));
    const auto done = [&] {
      return shared.lost.load() || code != 0 || shared.posted.load() == shared.count();
    };
    keep_moving(done, [&] {
      bool got_on = false;
      for (std::uint64_t n = shared.posted.load(); n < shared.count() && out.is_sent(n); ++n) {
        if ((code = shared.post(n)) != 0) break;
        got_on = true;
      }
      // The server keeps what has come until it is told where to: the sooner, the fewer blocks it needs.
      if (got_on) server.send_posts();
      return out.step() || got_on;
    });
    if (code != 0) shared.lost.store(true);  // those who help would wait for ever
  }
  out.settle();
  if (code != 0) over.abandon();  // pieces that nobody has asked for lie there
  server.add_aside({bytes.size(), 0});
  if (code == 0 && shared.lost.load()) return connection_lost(server);
  return code;
}

std::optional<std::int32_t> stream_to_host(session& server, data_connections& over,
                                           std::span<std::byte> bytes, const post_piece& post) {
  work shared(over, bytes.size(), post);
  receiving in(shared, over.all(), bytes);
  const data_connections::links& links = over.all();
  std::int32_t code = 0;
  // What was posted comes, with bytes or a code, unless the connections are lost.
  const auto done = [&] {
    return shared.lost.load() || shared.moved.load(std::memory_order_acquire) == shared.count() ||
           (code != 0 && shared.moved.load() == shared.posted.load());
  };
  std::atomic<bool> stopped{false};
  const std::function<void()> help = [&] {
    keep_moving([&] { return stopped.load() || shared.lost.load(); }, [&] { return in.step(); });
  };
  {
    const copy_crew::shift shift(copy_crew::instance(), help, helpers_for(links));
    keep_moving(done, [&] {
      bool got_on = false;
      if (code == 0) code = in.code();
      for (std::uint64_t n = shared.posted.load();
           code == 0 && n < shared.count() && n < shared.moved.load() + window; ++n) {
        if ((code = shared.post(n, links[n % links.size()].get())) != 0) break;
        got_on = true;
      }
      if (got_on) server.send_posts();
      return in.step() || got_on;
    });
    stopped.store(true);
  }
  server.add_aside({0, shared.moved.load() * (bytes.size() / shared.count())});
  if (shared.lost.load()) return connection_lost(server);
  return code != 0 ? code : in.code();
}

}  // namespace outboard::frontend
