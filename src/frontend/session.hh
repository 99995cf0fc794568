// The front-end's end of a session: requests out, replies in, over one connection shared by all threads. A
// thread that waits reads the connection itself (leader) and delivers what it reads to the others
// (followers), so a lone thread never pays for a hand-off. Owned by the process state; any thread may post
// and call. After the connection is lost every request returns CUDA_ERROR_DEVICE_UNAVAILABLE at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/cuda/headers.hh"
#include "frontend/copying/asides.hh"
#include "frontend/copying/drains.hh"
#include "frontend/outbox.hh"
#include "frontend/receiver.hh"
#include "frontend/waiters.hh"
#include "transport/transport.hh"
#include "wire/frame.hh"

namespace outboard::transport {
class resumable_stream;
}

namespace outboard::frontend {

/// One request as the stubs hand it over; the spans are read before post() or call() returns.
struct outgoing {
  std::uint32_t opcode = 0;
  std::uint32_t lane = 0;
  std::uint64_t context = 0;
  std::span<const std::byte> payload;
  std::span<const std::byte> bulk;  ///< follows the payload, not copied
  pace how = pace::work;            ///< of a post
};

/// Where the bytes of a device-to-host copy go when the server sends them: in a row, or rows of `row` bytes
/// that are `pitch` apart, `rows` of them in each slice.
struct landing {
  std::byte* to = nullptr;
  std::size_t size = 0;  ///< bytes that come
  std::size_t row = 0, pitch = 0, rows = 0, slice = 0;

  /// The place of byte `offset`, and how many bytes from there on lie together (`wanted` at most).
  std::span<std::byte> run_at(std::size_t offset, std::size_t wanted) const;
  /// From the first byte to the last one, with the gaps between rows.
  std::span<const std::byte> extent() const;
};

/// A callback that has arrived. `number` 0: nobody waits for an answer.
struct callback_order {
  std::uint64_t number = 0;
  marshal::callback_body errand;
};

struct session_events {
  std::function<void(std::uint64_t context, std::int32_t code)> sticky_error;
  /// What the device printed to its stdout (1) or stderr (2).
  std::function<void(int descriptor, std::string_view text)> output;
  std::function<void(const std::string& why)> lost;  ///< once
  /// Where bytes of a copy in a graph go; nullptr: nowhere.
  std::function<std::byte*(std::uint64_t id, std::uint64_t offset, std::uint64_t size)> graph_place;
};

/// Bytes of frames, headers included.
struct traffic {
  std::uint64_t sent = 0, received = 0;
};

class session final : private frame_sink {
 public:
  session(std::unique_ptr<transport::connection> connection, session_events events);
  ~session() override;

  /// Sends without waiting. `land`: the request is a copy whose bytes arrive later, before the reply of the
  /// call that learns of its completion.
  CUresult post(const outgoing& request, const landing* land = nullptr);

  /// Sends now what was posted so far: the caller waits for its results by another way than call().
  void send_posts();

  /// Sends and waits. The reply's outputs are left in `reply` (without the result code). CUDA_SUCCESS or the
  /// function's own code. `descriptor`: takes the one that the server sends with it, if any.
  CUresult call(const outgoing& request, std::vector<std::byte>& reply, const landing* land = nullptr,
                unique_fd* descriptor = nullptr);

  /// The same for any API: false, or nothing, when the connection is lost; else the function's own code.
  bool post_any(const outgoing& request, const landing* land = nullptr);
  std::optional<std::int32_t> call_any(const outgoing& request, std::vector<std::byte>& reply,
                                       const landing* land = nullptr, unique_fd* descriptor = nullptr);

  /// The thread of this lane has ended.
  void end_lane(std::uint32_t lane);

  /// More callbacks may come: the attendant reads while no other thread does. Each announcement ends with a
  /// callback that says `last`.
  void expect_callbacks(std::uint64_t count);
  bool callbacks_expected() const { return expected_.load(std::memory_order_relaxed) != 0; }
  /// For the one thread that runs callbacks: waits for the next one. Nothing: the session is over.
  std::optional<callback_order> next_callback();
  void answer_callback(std::uint64_t number, std::span<const std::byte> bytes);

  /// Goes on over another connection, to a worker that will be given this session's records. Precondition: no
  /// call is under way in any thread.
  void resume_on(std::unique_ptr<transport::connection> connection);

  /// Orderly end; never blocks for long. Later requests fail as after a loss, silently.
  void goodbye();
  /// After goodbye(): waits until the server has it, at most until that time.
  void await_goodbye(transport::deadline until);

  /// Posted copies to host memory whose bytes have not come yet.
  bool copies_pending() const {
    return landings_pending_.load(std::memory_order_acquire) != 0 || asides_.pending() || drains_->pending();
  }
  /// Whether bytes of such copies will come into this memory.
  bool copies_pending_to(std::span<const std::byte> memory) {
    return copies_pending() && (drains_->touch(memory) || copies_pending_by_frames(memory));
  }
  /// The same for copies whose bytes come over connections.
  bool copies_pending_by_frames(std::span<const std::byte> memory);
  /// The same for copies over the session's own connection alone, without the guesses of
  /// copies_pending_by_frames().
  bool lands_in(std::span<const std::byte> memory);
  asides& arrivals() { return asides_; }
  frontend::drains& drains() { return *drains_; }
  /// Can the server hand us descriptors, so that memory can be shared?
  bool passes_descriptors() const { return connection_->what().passes_descriptors; }
  /// What every request returns once the session is lost.
  static constexpr CUresult lost_code = CUDA_ERROR_DEVICE_UNAVAILABLE;
  /// No server sends such a reply to this request. Nothing else that it says can be trusted, so this loses
  /// the session (docs/wire.md).
  void malformed_reply(std::string_view request) {
    lose("the server's reply to " + std::string(request) + " is malformed");
  }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// What went over the connection so far. Memory that both sides share moves without it. Any thread.
  traffic moved() const {
    return {sent_.load(std::memory_order_relaxed) + aside_.sent.load(std::memory_order_relaxed),
            received_.load(std::memory_order_relaxed) + aside_.received.load(std::memory_order_relaxed)};
  }
  /// What went over data connections. Any thread.
  void add_aside(const traffic& more) {
    aside_.sent.fetch_add(more.sent, std::memory_order_relaxed);
    aside_.received.fetch_add(more.received, std::memory_order_relaxed);
  }
  /// A data connection was lost: the session cannot go on without it.
  void lose_data_connection() { lose("a data connection to the server broke"); }
  std::uint64_t session_id = 0;
  /// Its requests are known by the calls that send them (call_watch.hh). One session in a process: tickets
  /// are each session's own.
  bool notes_calls = true;

 private:
  std::uint64_t send(const outgoing& request, wire::frame_kind kind, waiter* waiting, const landing* land);
  bool gathers() const { return connection_->what().send_is_a_call; }
  bool write(std::span<const iovec> parts, bool waits, std::span<const std::byte> lent = {});
  bool write_to_connection(std::span<const iovec> parts, std::span<const std::byte> lent = {});
  bool send_gathered();
  void send_plain(wire::frame_kind kind, std::uint64_t ticket, std::span<const std::byte> payload);
  void await(waiter& own);
  template <class Enough>
  void lead(std::unique_lock<std::mutex>& lock, waiter* own, Enough&& enough);
  void hand_over_reading(const waiter* own);
  void lose(const std::string& why);
  void forget(const waiter& own);

  // frame_sink: called by the leader only
  std::vector<std::byte>* reply_target(std::uint64_t ticket) override;
  void reply_arrived(std::uint64_t ticket) override;
  bool landing_places(std::uint64_t ticket, std::uint64_t offset, std::uint64_t size,
                      std::vector<std::span<std::byte>>& places) override;
  void landed(std::uint64_t ticket, std::uint64_t end) override;
  status before_landing(std::span<const std::span<std::byte>> places) override;
  void copy_failed(std::uint64_t ticket) override;
  status aside(const marshal::aside_body& piece, std::span<const std::span<std::byte>> places) override;
  status collect_asides() override;
  void notice(std::uint64_t context, std::int32_t code) override;
  void output(int descriptor, std::string_view text) override { events_.output(descriptor, text); }
  void callback(std::uint64_t number, const marshal::callback_body& errand) override;
  void descriptor(std::uint64_t ticket, unique_fd fd) override;

  std::unique_ptr<transport::connection> connection_;
  transport::resumable_stream* stream_;  ///< of connection_, if that can be resumed
  session_events events_;
  asides asides_;
  const std::shared_ptr<frontend::drains> drains_;
  std::atomic<std::uint64_t> received_{0};  ///< written by the leader alone
  std::unique_ptr<receiver> receiver_;

  struct {
    std::atomic<std::uint64_t> sent{0}, received{0};
  } aside_;

  std::mutex send_mutex_;
  std::mutex write_mutex_;  // held in connection_->send() once the outbox has its thread, which keeps only
                            // this one; after send_mutex_
  std::uint64_t last_ticket_ = 0;       // under send_mutex_
  std::atomic<std::uint64_t> sent_{0};  // written under send_mutex_
  std::atomic<std::uint64_t> last_answered_{0};

  std::mutex lose_mutex_;   // held while it becomes lost; before state_mutex_
  std::mutex state_mutex_;  // guards what follows; never held while sending or receiving
  bool leading_ = false;
  waiter* leader_ = nullptr;  ///< the leader's own, if it waits for a reply; the leader alone looks
  waiters waiters_;
  std::unordered_map<std::uint64_t, landing> landings_;
  std::deque<callback_order> orders_;
  std::condition_variable attend_;
  bool attendant_asleep_ = false;
  std::atomic<std::uint64_t> expected_{0};  ///< callbacks announced and not yet over
  std::atomic<std::size_t> landings_pending_{0};
  std::atomic<bool> lost_{false}, goodbye_said_{false};

  outbox outbox_{[this] { return send_gathered(); }};  // with send_mutex_; its thread uses what stands above
};

}  // namespace outboard::frontend
