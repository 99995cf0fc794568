// A stream that outlives the connections (links) that carry it. What was sent and not acknowledged is kept;
// when a link is lost, a resumer brings another one, and both ends send again what the other lacks. Upper
// layers see a connection on which sending is buffered and receiving pauses meanwhile. Shared by the owner of
// connection() and the resumer (frontend: reconnector; worker: resumption). Threads: as transport.hh says for
// the functions of a connection; those of the resumer by one thread at a time, while all others may run.
//
// A stream ends by two farewells. shutdown() ends it for its owner at once, says ours, and leaves the rest to
// the resumer: the stream is leaving. It keeps what the peer may lack, and has its links brought back, until
// the peer's farewell says that all has arrived. Who gets a farewell answers with one.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/resumable/record.hh"
#include "transport/resumable/unacknowledged.hh"
#include "transport/transport.hh"

namespace outboard::transport {

/// May a connection of this kind be the link of a stream, encrypted or not? A network carries it, so it may
/// break while both ends live; and its descriptor can be handed to a worker. `can` is asked before
/// encryption.
inline bool may_resume(const capabilities& can) { return can.detachable && !can.same_host; }

struct stream_options {
  /// Bytes that one receive() of the link may bring beyond what the caller wants.
  std::size_t read_ahead = 64u << 10;
  /// After so many bytes without a send of ours the peer hears what has arrived.
  std::size_t news_every = 1u << 20;
  /// The peer hears at once that a record of at least this size has arrived: its sender waits for that.
  std::size_t tell_at_once = ~std::size_t{0};
  /// Bytes that are kept to be sent again; a sender that has more waits. The same limit holds for bytes that
  /// arrive while nobody receives.
  std::size_t most_kept = 32u << 20;
  /// A link over which nothing comes for so long is lost; 0: only the link itself says so.
  std::chrono::milliseconds silence{0};
  /// The link was lost, the owner has ended the stream, or it has ended. Any thread; must return soon, and
  /// may ask the stream for nothing but ended(), leaving(), parted() and down_since().
  std::function<void()> changed = {};
};

/// A program's end waits so long for what it has sent to arrive: in a hole nothing answers.
inline constexpr std::chrono::seconds parting_time{5};

/// The receiver of a piece of at least this size says at once that it is there.
inline constexpr std::size_t piece_told_at_once = 32u << 10;

/// For the pieces of large copies, at both ends of a data connection: large, many, and each sender may not go
/// on before its piece has arrived.
stream_options options_for_pieces();

class resumable_stream final : public connection {
 public:
  /// `plain`: bytes pass through `link` as they are until begin().
  resumable_stream(std::unique_ptr<connection> link, stream_options options, bool plain = false);
  ~resumable_stream() override;

  /// The stream begins behind what has passed so far. By the thread that sends and receives until then.
  void begin();

  // For upper layers, besides the functions of a connection:

  /// Like send(), with bytes at the end that are not copied. They stay as they are until `owner` is let go;
  /// without an owner, until the peer has them or settle() was called.
  io_result send_lent(std::span<const iovec> parts, std::span<const std::byte> lent,
                      std::shared_ptr<const void> owner, deadline until = no_deadline);
  /// The memory of what was lent without an owner is about to be used for something else. What the peer has
  /// not reported as arrived by `until` is copied.
  void settle(deadline until = news_is_worth());
  /// Until when it is cheaper to wait for that report than to copy.
  static deadline news_is_worth();
  /// For a sender that has nothing to send at the moment: waits shortly for the peer to have everything, so
  /// that the owners of what was lent are let go now, not at the next send. Until `other_work`, which is
  /// asked often with the stream locked, and waits for no lock under which the stream is used.
  void let_go(const std::function<bool()>& other_work);
  /// Why the stream ended, if there is more to say than that it did; else empty.
  std::string why_ended() const;

  // For the resumer:

  /// Since when there has been no link; nothing: there is one, or the stream has ended.
  std::optional<clock::time_point> down_since() const;
  bool ended() const;
  /// Its owner has ended it, the peer may not have everything: it is to be looked after until it has ended.
  bool leaving() const;
  /// The peer has said farewell: if it is the answer to ours, it has everything.
  bool parted() const { return farewell_.load(); }
  /// After shutdown(): waits for the peer's farewell, receiving in the caller's thread while another one
  /// brings links. At the latest at `until` the stream has ended.
  void await_end(deadline until);
  /// The peer has sent a record or has come back, so it knows what it needs to come back.
  bool peer_joined() const { return joined_.load(std::memory_order_relaxed); }
  /// The present link, if any, is of no use: whoever uses it comes back soon.
  void cut_link();
  /// Gives up the present link and returns how many bytes have arrived, which stays true until resume().
  std::uint64_t stop_link();
  /// Would resume() accept this?
  bool can_resume(std::uint64_t peer_has) const;
  /// Goes on over `link`, after stop_link(): sends again what the peer lacks, whose share arrived so far is
  /// `peer_has`. False: this cannot be, and nothing is changed.
  bool resume(std::unique_ptr<connection> link, std::uint64_t peer_has);
  /// There will be no other link. `in_order`: receive() says closed, not broken.
  void give_up(bool in_order, std::string why);
  /// From time to time: tells the peer that we are here, takes what nobody receives, and notices a link that
  /// is lost or silent. True: bytes have passed since the last time, or it is leaving.
  bool tend();

  // As transport.hh says:

  const capabilities& what() const override { return what_; }
  io_result send(std::span<const iovec> parts, deadline until = no_deadline) override;
  io_result receive(std::span<std::byte> into, deadline until = no_deadline) override;
  io wait_readable(deadline until) override;
  void interrupt() override;
  /// True only if the stream has ended: a lost link says nothing about the peer.
  bool peer_gone() override;
  void shutdown() override;
  void set_spin(std::chrono::microseconds budget) override;
  std::string describe() const override;

 private:
  bool has_room(std::size_t size);
  io await_room(std::unique_lock<std::mutex>& sending, std::size_t size, deadline until);
  io_result transmit(std::span<const iovec> parts, std::span<const std::byte> lent, std::size_t size,
                     deadline until);
  bool send_again(connection& over, std::uint64_t from);
  bool write_all(connection& over, std::span<iovec> parts);
  void send_news(record_kind kind);
  void say_farewell();
  void answer_farewell();
  io send_owed();
  template <class Enough>
  void await_news(Enough&& enough, deadline until);
  std::array<std::byte, record_header> header(record_kind kind, std::size_t size);

  struct taken {
    io_result result;
    bool no_link = false;
  };
  taken take(std::span<std::byte> into, deadline until);
  taken stopped(io status, std::size_t before);
  io refill(std::size_t wanted, deadline until);
  bool parse_header();
  std::size_t copy_out(std::span<std::byte> into);
  /// Whether the thread that receives holds the sender's lock, too.
  enum class also : bool { nothing, sends };
  void pump(also holding = also::nothing);
  void stash_all(also holding = also::nothing);
  void arrived(std::size_t bytes, also holding = also::nothing);
  io await_link(deadline until);
  void lost(const connection* link);
  void fail(const connection* link, std::string why);
  void finish(bool in_order, std::string why);

  const stream_options options_;
  capabilities what_;
  std::atomic<bool> plain_;
  std::atomic<std::uint64_t> sent_{0}, acknowledged_{0};  // of what we send
  std::atomic<std::uint64_t> arrived_{0}, reported_{0};   // of what we receive
  std::atomic<bool> farewell_{false};                     // the peer has ended the stream
  std::atomic<bool> leaving_{false};                      // our owner has
  std::atomic<bool> joined_{false};                       // as peer_joined() says
  std::atomic<bool> heard_{true}, awaits_room_{false}, interrupted_{false};

  std::mutex send_mutex_;  // the sender's role, and who sends for it; guards what follows
  connection* writer_ = nullptr;
  unacknowledged kept_;
  std::size_t look_at_ = 0;  ///< size of `kept_` at which a sender looks for acknowledgements
  std::array<std::byte, record_header> news_{};
  bool said_ = false;  ///< our farewell is the last on this link, some of it may be owed
  /// The rest of news_, which the link has begun to send or may have encrypted: goes before all that follows.
  std::span<const std::byte> owed_;

  std::mutex receive_mutex_;  // the receiver's role; guards what follows. Who has one of the two mutexes only
                              // tries to get the other one.
  connection* reader_ = nullptr;
  std::vector<std::byte> raw_;  ///< bytes of the link, from raw_begin_ to raw_end_
  std::size_t raw_begin_ = 0, raw_end_ = 0;
  std::uint32_t left_ = 0;        ///< bytes of the present record that are still to come
  unsigned records_ = 0;          ///< since the peer last heard
  bool after_large_ = false;      ///< the last record was one
  bool awaited_ = false;          ///< the peer is to hear of the present record at once
  std::vector<std::byte> stash_;  ///< bytes of the stream that came before anybody asked for them
  std::size_t stash_begin_ = 0;

  mutable std::mutex state_mutex_;  // guards what follows; taken last
  std::condition_variable changed_;
  std::shared_ptr<connection> link_;  ///< lives while writer_ or reader_ is it
  bool up_ = true, over_ = false, in_order_ = false;
  bool finished_ = false;  ///< nothing is kept any more
  std::string why_, name_;
  std::chrono::microseconds spin_{0};
  std::uint64_t passed_ = 0;  ///< bytes of both directions when tend() looked last
  clock::time_point down_since_{}, last_heard_ = clock::now(), last_news_ = clock::now();
};

/// The connection that the stream's owner uses: when it goes, the stream ends in order.
std::unique_ptr<connection> connection_of(std::shared_ptr<resumable_stream> stream);
/// The stream behind a connection; nullptr: it is an ordinary one.
resumable_stream* stream_of(connection& c);

}  // namespace outboard::transport
