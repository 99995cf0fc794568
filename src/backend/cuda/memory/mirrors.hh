// The worker's half of host memory that kernels see: pinned and registered memory of the client, page-locked
// again here, and managed memory. The client's changes are stored byte by byte; what kernels have changed is
// found against a shadow of what the client has. Any thread (own lock); scanning takes time and needs no
// turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/copying/staging.hh"
#include "backend/worker/device_tally.hh"
#include "base/fd.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/memory_changes.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

struct mirrored {
  marshal::host_block kind = marshal::host_block::pinned;
  std::uint64_t address = 0, size = 0;  ///< as the client names it
  std::byte* memory = nullptr;          ///< here
  std::uint64_t device_address = 0;
  std::byte* shadow = nullptr;  ///< null: shared with the client, nothing is ever compared
  std::uint64_t mapped = 0;     ///< bytes mapped by us at `memory`, 0: the driver's
  bool owned = false;           ///< managed: allocated for the client, freed with the block
  unsigned flags = 0;           ///< managed: of the allocation
  std::uint64_t context = 0, ticket = 0;
  std::int32_t device = -1;                    ///< managed and owned: which device's memory it counts as
  std::shared_ptr<const unique_fd> file = {};  ///< shared: its pages
};

class mirrors {
 public:
  mirrors(const api::driver_table& driver, staging& stage, device_tally& held)
      : driver_(driver), staging_(stage), held_(held) {}
  ~mirrors();

  /// Knows from the snapshot how managed memory may be touched. Before any other call.
  void open(const marshal::snapshot& facts);

  /// pinned, registered: page-locks memory of ours; managed: takes up a variable. Answers the device's
  /// address.
  CUresult map(const marshal::host_map_body& wanted, std::uint64_t context, std::uint64_t ticket,
               std::uint64_t& device_address);
  /// Page-locked memory at this address that the client maps too; it is zero, and its size is sealed.
  CUresult share(const marshal::host_share_body& wanted, std::uint64_t context, unique_fd& memory);
  /// The same memory in another worker of this session: `file` has its pages.
  CUresult share_again(const marshal::host_share_body& wanted, std::uint64_t context, unique_fd file);
  /// Whole granules: no page is shared with anything else, and the ledger counts what is gone.
  static std::uint64_t managed_size(std::uint64_t wanted) {
    return (wanted + granule - 1) / granule * granule;
  }
  CUresult allocate_managed(const marshal::managed_body& wanted, std::int32_t device, std::uint64_t context,
                            std::uint64_t ticket, std::uint64_t& address);
  /// False: no such block. The device must be done with it.
  bool drop(std::uint64_t address);
  bool page_locked(std::uint64_t address) const;  ///< a block of ours starts here
  void drop_context(std::uint64_t context);
  /// Managed memory that is not ours, a variable, goes with its module and without a word to us. Before it
  /// goes: drops the blocks in these ranges, so that nothing is stored or read there any more.
  void drop_within(std::span<const marshal::address_range> going);
  /// Behind the end of modules: drops the variables whose memory has gone though nobody could name them.
  void drop_stale();
  bool has_variables() const { return variables_.load() != 0; }
  /// The address lies in managed memory that was allocated for the client.
  bool allocated(std::uint64_t address) const;

  /// There is pinned or registered memory that both sides keep.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// store(), and find() without a context, make no call of the driver.
  bool touchable() const { return touch_while_busy_ || one_memory_ || managed_blocks_.load() == 0; }
  /// CUDA_ERROR_INVALID_VALUE: not changes of our blocks, which an honest client never sends.
  CUresult store(std::span<const std::byte> changes);
  /// Appends changes from `at` on and moves it; {0, 0} when everything was seen. `only`: nothing is looked at
  /// outside of these ranges, if there are any. `live`: kernels are at work meanwhile (late_words).
  CUresult find(marshal::fetch_body& at, std::uint64_t context, std::vector<std::byte>& changes,
                std::span<const marshal::address_range> only = {}, bool live = false);
  /// Whether a kernel has changed something in one of these places.
  bool moved(std::span<const marshal::address_range> places) const;
  /// find() for what the client asks.
  CUresult answer(marshal::memory_question& q, std::uint64_t context, std::vector<std::byte>& changes);

  std::uint64_t pinned_bytes() const;
  /// Has the host room for so much more page-locked memory of this session's? What virtual_ranges have
  /// counts, too.
  bool admits_page_locked(std::uint64_t size) const;
  std::uint64_t managed_bytes() const;
  std::vector<mirrored> all() const;     ///< for records: without variables
  std::vector<mirrored> shared() const;  ///< of which the client has the same pages

 private:
  static constexpr std::uint64_t granule = 2u << 20;
  using blocks = std::map<std::uint64_t, mirrored>;
  CUresult insert(mirrored made);
  CUresult share_file(const marshal::host_share_body& wanted, std::uint64_t context,
                      std::shared_ptr<const unique_fd> file);
  void release(const mirrored& m);
  CUresult page_lock(mirrored& m, bool exact, int file = -1);
  bool vacant(std::uint64_t address, std::uint64_t size) const;
  CUresult check_managed(const mirrored& m) const;
  CUresult read(std::uint64_t from, std::byte* to, std::size_t size, std::uint64_t context, CUstream& stream);
  const mirrored* at(std::uint64_t address) const;
  struct finding {
    std::vector<std::byte>& changes;
    marshal::late_words& late;
    std::size_t looked = 0;
    std::size_t bytes() const { return changes.size() + late.size(); }
  };
  CUresult find_live(marshal::fetch_body& at, std::uint64_t context, std::vector<std::byte>& changes,
                     std::span<const marshal::address_range> only);
  CUresult find_once(marshal::fetch_body& at, std::uint64_t context, finding& found,
                     std::span<const marshal::address_range> only);
  CUresult find_in(marshal::fetch_body& at, std::uint64_t context, finding& found);
  CUresult scan(std::unique_lock<std::mutex>& lock, const mirrored& m, std::size_t& at, std::uint64_t context,
                finding& found);
  bool drop(std::uint64_t address, const std::byte* shadow);
  std::vector<mirrored> variables() const;
  bool holds(const mirrored& m) const;
  bool by_hand(const mirrored& m) const;

  const api::driver_table& driver_;
  staging& staging_;
  device_tally& held_;
  std::mutex shape_mutex_;  // whoever adds and removes blocks; held in the driver
  mutable std::mutex
      mutex_;  // what follows; a host function of the client may wait for it, and the driver for that
  blocks blocks_;
  std::uint64_t stores_ = 0;  // how often the client has changed something
  std::mutex looking_;        // a look at memory that kernels are at work on; several questions may be one
  marshal::late_words late_;  // its words so far, with `looking_`
  std::mutex reading_;        // one copy that looks for changes at a time, or who frees managed memory
  std::atomic<int> freeing_{0};
  std::map<std::uint64_t, CUstream> streams_;  // by context: theirs, with `reading_`
  bool one_memory_ = false;                    // the device's memory is this machine's
  bool touch_while_busy_ = false;              // managed memory may be touched while kernels run
  std::atomic<bool> in_use_{false};
  std::atomic<int> refused_{CUDA_SUCCESS};  // what the next question of a look is answered
  std::atomic<std::size_t> managed_blocks_{0}, variables_{0};
  std::uint64_t pinned_ = 0, managed_ = 0, most_pinned_ = 0;
};

}  // namespace outboard::backend
