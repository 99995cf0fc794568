// Host memory that kernels see although they run elsewhere: each block exists here and, under the same name,
// in the worker. What the program has changed is sent before work begins and before the program waits; what
// kernels have changed comes back when the program learns that work is complete. Changes are found by
// comparing with a shadow. Of managed memory that managed_blocks.hh keeps the program from, only what the
// program can reach is compared. Owned by the process state; any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "frontend/lane.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend {

/// Of a block, from its base on; begins at a multiple of marshal::change_line.
struct byte_range {
  std::uint64_t begin = 0, end = 0;
};

struct mirror {
  std::uint64_t base = 0, size = 0;
  std::uint64_t device_address = 0;  ///< what kernels call it; `base` but for registered memory
  std::uint64_t context = 0;         ///< handle; dies with it
  std::byte* shadow = nullptr;       ///< what the worker is known to have; untouched pages cost nothing
  std::byte* memory = nullptr;       ///< our view of it; null: the program's, at `base`
  int file = -1;         ///< what `memory` shows, each byte at its address; holes in it were never written
  bool shut = false;     ///< the program gets at no page of it but those in `windows`
  bool settled = false;  ///< and nothing has changed in the others since they were last compared
  bool lazy = false;     ///< shut, and what kernels change there is fetched when the program touches it
  std::vector<byte_range> windows;
  std::vector<byte_range> left;   ///< windows that were closed since, and are to be compared once more
  bool live = false;              ///< pinned or registered: exchanged while work is not over
  bool kernels = true;            ///< kernels may know the address; else only copies name it, in `parts`
  std::vector<byte_range> parts;  ///< in order, apart from each other

  /// The program can reach nothing of this part of it.
  bool nobody_touches(byte_range part) const {
    const auto meets = [&](const byte_range& w) { return w.begin < part.end && part.begin < w.end; };
    return shut && std::ranges::none_of(windows, meets);
  }

  std::byte* bytes() const { return memory ? memory : reinterpret_cast<std::byte*>(base); }
};

/// Inserts the part into ranges that are in order and apart from each other; ranges that it touches are
/// merged with it.
void join(std::vector<byte_range>& ranges, byte_range part);

class mirrors {
 public:
  /// False: no memory for the shadow. The worker's block is zero, or will be fetched at once.
  bool add(mirror made);
  std::optional<mirror> remove(std::uint64_t base);
  std::vector<mirror> remove_context(std::uint64_t context);
  std::optional<mirror> find(std::uint64_t address) const;
  /// A mirror that kernels know by this address.
  std::optional<mirror> find_device(std::uint64_t address) const;
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  bool any_live() const { return live_.load(std::memory_order_acquire) != 0; }
  /// Whether there is one that kernels may know.
  bool any_for_kernels() const { return for_kernels_.load(std::memory_order_acquire) != 0; }
  /// Copies name this part of a block that kernels do not know: it is compared from now on.
  void add_part(std::uint64_t base, byte_range part);
  /// Kernels may know the block from now on.
  void show_to_kernels(std::uint64_t base);

  /// Sends what the program has changed, or that part of it which kernels may see. Addresses of the program's
  /// own memory in it are reported to `seen`. `at_work`: something goes on that may read or write it.
  CUresult send(session& server, lane& own, bool at_work, bool to_kernels_alone = false);
  /// Fetches what kernels have changed, if any have run since they were last known to be done; of lazy blocks
  /// only what the program can reach.
  CUresult fetch(session& server, lane& own, bool at_work);
  /// The same for a part of one block ({}: all of it), whatever has run.
  CUresult send_range(session& server, lane& own, std::uint64_t context, std::uint64_t base, byte_range part);
  CUresult fetch_range(session& server, lane& own, std::uint64_t context, std::uint64_t base,
                       byte_range part);
  /// In both directions, for all memory except managed memory, while work is not over. `all` false: only if
  /// something has changed where words have changed before. `moved`: something has changed.
  CUresult exchange(session& server, lane& own, std::uint64_t context, bool all, bool& moved);
  /// A stream waits for this word, or writes it: its changes come last. The address is the one that kernels
  /// use.
  void name_word(std::uint64_t device_address);

  /// What the program can reach of a block: nothing (once it is compared, nothing can change), some parts of
  /// it, all.
  void shut(std::uint64_t base, bool lazy);
  void open_window(std::uint64_t base, byte_range part);
  /// Fetches it, and from then on it is a window: every other fetch comes before or brings it, too.
  void fetch_window(session& server, lane& own, std::uint64_t base, byte_range part);
  void close_windows(std::uint64_t base, bool lazy);
  void unshut(std::uint64_t base);
  void work_begins(std::uint64_t context);  ///< kernels or copies may write from now on
  std::uint64_t work_mark() const { return work_mark_.load(std::memory_order_relaxed); }
  /// Something begins that may change memory of both sides, or a stream waits for another that does. Counts
  /// how often.
  void results_may_come() { results_mark_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t results_mark() const { return results_mark_.load(std::memory_order_relaxed); }
  /// All work that was submitted in the context before `mark` was taken is done; call fetch() first. Work
  /// that began since keeps the context at work.
  void work_is_done(std::uint64_t context, std::uint64_t mark);
  bool fetch_needed() const { return working_.load(std::memory_order_acquire); }

  /// The worker is a new one, and its blocks are zero.
  void forget_common();

  /// Where addresses of blocks that no kernel knows yet lie: those found in what is sent are noted.
  void watch(std::uint64_t low, std::uint64_t size);
  std::vector<std::uint64_t> take_noted();
  /// Managed memory lies in this range: its addresses in what is sent are noted, too.
  void watch_managed(std::uint64_t low, std::uint64_t size);
  std::vector<std::uint64_t> take_managed_noted();

 private:
  CUresult send_part(session& server, lane& own, std::uint64_t context, bool last);
  CUresult compare(session& server, lane& own, std::uint64_t context, mirror& m, byte_range part);
  CUresult compare_all(session& server, lane& own, std::uint64_t context, mirror& m, byte_range part);
  /// Why there is a fetch: the program has learned of the end of work, of all of it or not; or work goes on,
  /// with a look at everything, or only if some place has changed.
  enum class look : std::uint8_t { told, told_at_work, at_all, at_lively };
  CUresult send_live(session& server, lane& own, std::uint64_t context, bool& moved);
  /// What the program has changed in the parts that parts_of() gives of each mirror, into changes_.
  template <class Parts>
  CUresult collect(session& server, lane& own, std::uint64_t context, bool at_work, const Parts& parts_of);
  bool lively_changed();
  void note_lively(std::uint64_t line);
  CUresult fetch_from(session& server, lane& own, std::uint64_t context, marshal::fetch_body next,
                      std::span<const marshal::address_range> only, look how = look::told,
                      bool* moved = nullptr);
  const mirror* at_device(std::uint64_t address) const;
  const mirror* at(std::uint64_t address) const;
  void count(std::ptrdiff_t more);
  void set_lazy(mirror& m, bool lazy);
  std::optional<std::vector<marshal::address_range>> ranges() const;

  mutable std::mutex mutex_;  // guards what follows; held while sending and fetching
  std::map<std::uint64_t, mirror> mirrors_;
  std::set<std::uint64_t> contexts_at_work_;
  std::vector<std::byte> changes_, request_, reply_;
  std::vector<byte_range> compared_;   // of one mirror
  marshal::late_words late_;           // of changes_; names words_
  std::vector<std::uint64_t> lively_;  // lines in mirrors in which words have changed lately, the latest last
  std::vector<std::uint64_t> words_;   // addresses in mirrors that streams wait for or write, ascending
  std::uint64_t watched_low_ = 0, watched_size_ = 0;
  std::uint64_t managed_low_ = 0, managed_size_ = 0;
  std::vector<std::uint64_t> noted_, managed_noted_;
  std::size_t lazy_ = 0;  // so many are
  std::atomic<std::size_t> count_{0}, for_kernels_{0}, live_{0};
  std::atomic<bool> working_{false};
  std::atomic<std::uint64_t> work_mark_{0}, results_mark_{0};
};

}  // namespace outboard::frontend
