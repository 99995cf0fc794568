// Managed memory that the program and kernels use at the same time. From a request that may touch a block
// until its work is known to be complete, the program's pages of the block are closed (page_gate.hh): a
// thread that touches them sleeps until the work is done and its bytes are here, as if it had come later.
// Work that is not done in time may be waiting for that very touch: then the pages around it are opened, and
// while the work lasts both sides tell each other what they change there, many times a second. If system
// calls wait for closed pages too, larger blocks stay closed when the work is over: only what is touched is
// then fetched. Two threads do all of this; they exist from the first such request on. Owned by the process
// state; any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "frontend/memory/mirrors.hh"
#include "frontend/memory/page_gate.hh"
#include "frontend/session.hh"
#include "frontend/work_flow.hh"

namespace outboard::frontend {

class managed_blocks {
 public:
  explicit managed_blocks(mirrors& all) : mirrors_(all) {}

  /// From now on blocks are handled in this way. False: this process cannot.
  bool start(session& server, work_questions ask);
  bool started() const { return started_.load(std::memory_order_acquire); }

  /// Where all blocks lie, each byte at its address.
  int file() const { return gate_.file(); }

  /// Whole pages that this process has claimed hold the block, which mirrors will have, too. `variable`:
  /// kernels name it without a parameter. The program uses the first `used` bytes. Returns our own view of
  /// it; nullptr: no memory.
  std::byte* add(std::uint64_t base, std::uint64_t size, std::uint64_t used, bool variable);
  /// The block's pages are open from then on. Without such a block nothing happens.
  void remove(std::uint64_t base);

  /// A request of this flow is about to leave that may touch the blocks whose addresses are among `words`,
  /// and those that memory names (`all`: every one). Closes them; changes are sent after this. Returns its
  /// number, 0: there are none.
  std::uint64_t begin(const work_flow& flow, std::span<const std::byte> words, bool all);
  /// After changes were sent for it: true when they name more blocks, whose changes must be sent, too.
  bool reach(const work_flow& flow, std::uint64_t number);
  void left(std::uint64_t number);  ///< the server has it
  /// Device memory may hold these bytes.
  void uploaded(std::span<const std::byte> bytes);

  /// All requests for which left() was called.
  std::uint64_t mark() const;
  /// The program knows that the work that the flow had at `mark` is complete, and mirrors have been fetched
  /// since.
  void complete(const work_flow& flow, std::uint64_t mark);
  void complete_context(std::uint64_t context, std::uint64_t mark);
  /// An event stands for the work that its flow had when it was recorded.
  void recorded(std::uint64_t event, const work_flow& flow);
  void complete_event(std::uint64_t event);
  void forget_event(std::uint64_t event);

  /// Only work of this stream names the block by memory (managed_blocks::nobody: none does; 0: all).
  void attach(std::uint64_t base, std::uint64_t stream);
  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  /// A host function may touch everything, and it cannot be made to wait: between lend() and take_back() all
  /// is open, or is opened when it is touched.
  void lend();
  void take_back();

  /// The session is over: all pages are open, and stay so.
  void stop();

  /// How long a touch waits for work that the driver has and that does not end: work that changes nothing
  /// there may be waiting for the touch; other work is at least busy.
  static constexpr std::chrono::milliseconds patience{250}, most_patience{2000};

 private:
  using clock = std::chrono::steady_clock;
  struct block {
    std::uint64_t base = 0, size = 0, used = 0;  ///< used: by the program
    std::uint64_t first_page = 0, pages = 0;     ///< pages: bytes
    std::byte* view = nullptr;                   ///< of first_page
    bool variable = false, reachable = false;
    bool closed = false, lent = false;
    bool lazy = false;  ///< while closed: without users it stays so, and is as fresh as its windows
    std::uint64_t attached = 0;
    std::uint64_t closing = 0;                 ///< of all that there were, the one that closed it last
    bool issued = false;                       ///< the driver has the request that closed it
    std::map<work_flow, std::uint64_t> users;  ///< latest request
    std::vector<std::uint64_t> touched;        ///< addresses that are waited for
    clock::time_point since{};                 ///< of the first, or when the driver got what closed it
    clock::time_point looked{}, changed{};     ///< what is there while somebody waits
    std::vector<std::byte> seen;
    std::vector<byte_range> windows;                         ///< open while closed
    std::uint64_t next_window = first_window, last_end = 0;  ///< of the last window
  };
  struct context_wait {
    std::uint64_t wanted = 0, done = 0;  ///< marks
    bool begun = false;                  ///< its thread
  };
  using blocks = std::map<std::uint64_t, block>;
  static constexpr std::uint64_t first_window = 64u << 10, most_window = 32u << 20;

  block* at(std::uint64_t address);
  void close(block& b);
  void close_windows(block& b);
  static void forget_windows(block& b);
  void open(block& b);
  void rest(block& b);
  bool may_be_lazy(const block& b);
  static bool idle(const block& b) { return b.closed && b.users.empty(); }
  std::size_t windows_allowed() const;
  void use(block& b, const work_flow& flow, std::uint64_t number);
  void drop(const std::function<bool(const work_flow&)>& which, std::uint64_t mark);
  std::uint64_t all_left() const;
  std::vector<std::uint64_t> together(const block& b) const;

  void take_touches();
  void look_at_work();
  static bool waits_for_work(const block& b);
  std::optional<std::chrono::nanoseconds> refresh_all(lane& own);
  void note_touch(std::uint64_t address);
  std::optional<std::chrono::nanoseconds> step(lane& own);
  bool settle(lane& own, std::uint64_t base);
  bool flow_done(lane& own, const work_flow& flow, std::uint64_t number);
  void note_issued(lane& own, std::uint64_t base, const work_flow& unfinished, std::uint64_t closing);
  bool context_done(std::uint64_t context, std::uint64_t number);
  void wait_in(std::uint64_t context, context_wait& w);
  bool out_of_patience(lane& own, std::uint64_t base);
  bool refresh(lane& own, std::uint64_t base);
  byte_range next_part(block& b);
  void open_window(lane& own, std::uint64_t base);
  void exchange(lane& own, std::uint64_t base);
  block* closed_by(std::uint64_t base, std::uint64_t closing);
  bool set_windows(std::uint64_t base, std::uint64_t closing, bool open);

  mirrors& mirrors_;
  page_gate gate_;
  session* server_ = nullptr;
  work_questions ask_;
  std::atomic<bool> started_{false};
  std::atomic<bool> ended_{false};

  mutable std::mutex mutex_;  // guards what follows; never held while a request is under way
  blocks blocks_;
  std::set<std::uint64_t> busy_;     // bases of those with users
  std::set<std::uint64_t> stirred_;  // of those without, in which somebody waits
  bool lending_ = false, traced_ = false;
  clock::time_point traced_known_{};
  std::uint64_t last_number_ = 0, last_closing_ = 0;
  std::set<std::uint64_t> leaving_;
  std::uint64_t low_ = 0, high_ = 0;  // of all blocks
  std::map<std::uint64_t, std::pair<work_flow, std::uint64_t>> events_;
  std::map<std::uint64_t, context_wait> waits_;
  std::condition_variable waits_changed_, work_touched_;
  std::atomic<int> threads_{0};
};

}  // namespace outboard::frontend
