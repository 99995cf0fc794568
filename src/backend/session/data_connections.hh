// Further connections of a session for the bytes of large copies, so that neither one stream nor one thread
// bounds them: each carries one direction, has a thread, and passes bytes between its socket and page-locked
// memory that the device reads or writes by itself. Whatever the session speaks. Belongs to it; any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backend/session/data_piece.hh"
#include "base/configuration/config.hh"
#include "marshal/data_bodies.hh"
#include "marshal/piece_packing.hh"
#include "transport/transport.hh"
#include "wire/frame.hh"

namespace outboard::backend {

/// What a client may ask for at once: each way as many as a configuration can say.
inline bool well_formed(const marshal::data_open_body& body) {
  return body.tokens.size() <= std::size_t{2} * most_data_connections && body.inward <= body.tokens.size();
}

class data_connections {
 public:
  /// What there is of copies that nobody waits for.
  enum class look { nothing, not_yet, sent };

  /// `broken` ends the session: a connection is gone whose client is not. `look_after` sends what is complete
  /// of the copies that nobody waits for, by send_later(); run by threads of such connections.
  data_connections(piece_memory& memory, std::function<void(std::string)> broken,
                   std::function<look()> look_after)
      : memory_(memory), broken_(std::move(broken)), look_after_(std::move(look_after)) {}
  data_connections(const data_connections&) = delete;

  /// What the client opens together, it closes together.
  std::uint64_t begin_set();
  /// For a context whose request the calling thread is about. False: there are too many.
  bool add_inward(std::unique_ptr<transport::connection> connection, std::uint64_t context,
                  std::uint64_t set);
  /// Its number; nothing: there are too many. `later`, unless 0: for send_later(),
  /// with that name, not for send().
  std::optional<std::uint32_t> add_outward(std::unique_ptr<transport::connection> connection,
                                           std::uint64_t context, std::uint64_t set, std::uint32_t later);

  /// Before the first connection: the client takes packed pieces.
  void pack_pieces() { packs_ = true; }

  /// The frame of this number, which the client sent before it asked: waits for it. nullptr: it will not
  /// come.
  std::unique_ptr<data_piece> take(std::uint64_t context, std::uint64_t number);

  /// Takes the piece and sends it when its bytes are there; without one, sends `code`. False: there is no
  /// such connection, the piece is the caller's. `pace`: see data_out_body.
  bool send(std::uint32_t connection, std::uint64_t number, std::unique_ptr<data_piece>& piece,
            std::int32_t code, std::uint32_t pace = 0);

  /// Will send_later() find a connection?
  bool has_later(std::uint64_t context) const;
  /// There is a copy that send_later() is to be asked for once it is complete.
  void expect_later();
  struct way {
    std::uint32_t connection = 0;  ///< its name
    std::uint64_t number = 0;
  };
  /// Takes the piece, whose bytes are there, for one of the context's connections. The caller tells the
  /// client; one caller at a time.
  std::optional<way> send_later(std::unique_ptr<data_piece>& piece, std::uint64_t context);

  /// The context is dead: its connections end, those of send_later() when all is sent.
  void drop_context(std::uint64_t context);
  /// There are none, and nothing came over earlier ones that nobody has taken.
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return links_.empty() && arrived_.empty();
  }
  /// Nobody waits any more; the threads end as soon as they are out of the driver.
  void end();
  /// After end(). False: one is still inside the driver.
  bool join(std::chrono::steady_clock::time_point until);

 private:
  struct outgoing {
    std::uint64_t number = 0;
    std::unique_ptr<data_piece> piece;
    std::int32_t code = 0;
    bool complete = false;   ///< the bytes are there
    std::uint32_t pace = 0;  ///< of the line, if the client says it
  };
  struct link {
    std::unique_ptr<transport::connection> connection;
    std::function<void()> enter;
    std::uint64_t context = 0, set = 0;
    bool inward = false;
    std::uint32_t later = 0;                      ///< its name for send_later(), if it is for that
    std::uint64_t sent_later = 0;                 ///< frames; under mutex_
    bool closing = false;                         ///< its context is dead; under mutex_
    bool over = false;                            ///< its thread is about to end; under mutex_
    std::deque<outgoing> queue;                   ///< under mutex_
    std::optional<marshal::piece_packer> packer;  ///< its thread's, if what it sends may be packed
    std::vector<std::byte> packed;                ///< its thread's: what came
    std::condition_variable work;
    std::thread thread;
  };

  std::optional<std::uint32_t> add(std::unique_ptr<link> made, std::uint64_t context, std::uint64_t set);
  void run(link& own);
  void receive_all(link& own);
  bool receive_one(link& own);
  const char* receive_piece(link& own, const wire::frame_header& header, std::unique_ptr<data_piece>& piece);
  void send_all(link& own);
  bool next_to_send(link& own, outgoing& piece);
  void scout(const link& own, std::unique_lock<std::mutex>& lock);
  bool send_one(link& own, outgoing& piece);
  bool send_frame(link& own, std::span<const iovec> parts, outgoing& piece);
  bool may_bring(std::uint64_t context) const;
  static bool sends_later(const link& l, std::uint64_t context);
  struct arrival {
    std::unique_ptr<data_piece> piece;
    std::uint64_t set = 0;  ///< it came over
  };
  using arrivals = std::map<std::pair<std::uint64_t, std::uint64_t>, arrival>;  ///< by context and number
  template <class Which>
  arrivals forget_arrived(Which&& which);
  void reap(std::unique_lock<std::mutex>& lock);

  piece_memory& memory_;
  const std::function<void(std::string)> broken_;
  const std::function<look()> look_after_;
  bool packs_ = false;
  mutable std::mutex mutex_;  // guards what follows; never held in a call of the driver, nor while bytes
                              // travel
  bool ended_ = false;
  std::uint32_t last_ = 0;
  std::uint64_t last_set_ = 0;
  std::map<std::uint32_t, std::unique_ptr<link>> links_;
  arrivals arrived_;
  std::pair<std::uint64_t, std::uint64_t> wanted_{};  ///< what take() asks for, or asked for last
  std::condition_variable came_, went_;
  std::uint32_t last_later_ = 0;  ///< connection that send_later() used last
  bool expected_ = false;         ///< copies of send_later() may be under way
  bool scouting_ = false;         ///< a thread looks after them
};

}  // namespace outboard::backend
