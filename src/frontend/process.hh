// The front-end's state in the program's process: the one singleton that the C ABI needs. Made by the shim's
// one init; it connects at the first call that needs the server. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe.hh"
#include "frontend/activity.hh"
#include "frontend/context.hh"
#include "frontend/data_dialer.hh"
#include "frontend/handle_table.hh"
#include "frontend/host_functions.hh"
#include "frontend/image_recalls.hh"
#include "frontend/lane.hh"
#include "frontend/memory/address_table.hh"
#include "frontend/memory/freed_blocks.hh"
#include "frontend/memory/mirrors.hh"
#include "frontend/memory/pinned_arena.hh"
#include "frontend/memory/shared_book.hh"
#include "frontend/memory/virtual_book.hh"
#include "frontend/memory/window.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/snapshot.hh"
#include "transport/transport.hh"
#include "wire/hello.hh"

namespace outboard::frontend {

class live_memory;
class managed_blocks;

/// What the shim knows and the front-end does not: the transports linked in and the exported symbols.
struct boot_options {
  /// Those linked in, and the shared objects that the configuration names.
  status (*add_transports)(transport::registry& to,
                           const std::vector<std::pair<std::string, std::string>>& plugins) = nullptr;
  void* (*find_export)(std::string_view symbol) = nullptr;  ///< nullptr: not exported
  void (*forked)() = nullptr;                               ///< in a forked child: forget, free nothing
};

class process {
 public:
  static process& instance();

  void boot(const boot_options& options);  ///< no connection yet, no thread, no allocation that matters
  /// The program ends (destructor of the library) or has forked (child): see design section 5.4.
  void shut_down();
  void forked_child();

  /// Connects on the first call; later calls give the same answer at once.
  CUresult connect();
  CUresult init();  ///< cuInit

  /// Everything that rebuilds this session on another worker, except the contents of memory. The session must
  /// be idle.
  CUresult export_records(std::vector<std::byte>& records);
  /// The memory that the worker counts for this session.
  CUresult ledger(marshal::ledger_reply& held);
  /// Opens a fresh session on a configured server and replays the records there. Device addresses and handles
  /// keep their values; the caller restores the contents of memory.
  CUresult rebuild(std::span<const std::byte> records);

  /// May a call with this description run on this lane now? CUDA_SUCCESS or the driver's own refusal.
  CUresult gate(const api::description& about, const lane& own) const;
  /// The same for hand-written ends: initialised, and (if asked) a usable current context.
  CUresult gate(const lane& own, bool needs_context = true) const;
  bool usable() const { return life_.load(std::memory_order_acquire) == life::running; }

  /// Asks a configured server one question, with or without a session: returns what the welcome of this hello
  /// says.
  result<wire::welcome> ask_aside(wire::hello question, transport::deadline until) const;

  /// Opens data connections of this session; none if it has no use for any.
  const data_dialer& dialer() const { return dialer_; }
  /// Whether several lanes may upload at once. Agreed with the server.
  bool lane_uploads() const { return lane_uploads_; }
  bool exchanges_words() const { return exchanges_words_; }  ///< while work goes on (wire/features.hh)
  /// If the server keeps module images: whether to ask for one, and the challenge that proofs answer; else
  /// nullptr.
  image_recalls* recalls() const { return recalls_.get(); }

  session* server() const { return session_.get(); }
  /// Whether the server can report what its device does. With a session.
  bool records_work() const { return records_work_; }
  const marshal::snapshot& facts() const { return facts_; }
  void* find_export(std::string_view symbol) const { return options_.find_export(symbol); }

  /// nullptr: no such device.
  context_state* primary(int device) const;
  context_state* find_context(std::uint64_t handle) const;
  handle_table& handles(api::handle_kind kind) { return *tables_[static_cast<std::size_t>(kind)]; }
  address_table& addresses() { return addresses_; }
  freed_blocks& freed() { return freed_; }
  host_functions& functions() { return functions_; }
  slot_addresses* window_slot(int device) const;
  /// The one that holds this address.
  slot_addresses* window_slot_at(std::uint64_t address) const;
  /// From now on the driver chooses the addresses of blocks, because it does not dump what is mapped in a
  /// window (observed on 580.159.04).
  void leave_window() { window_left_.store(true, std::memory_order_relaxed); }
  bool window_left() const { return window_left_.load(std::memory_order_relaxed); }
  /// Enters memory at an address that the device chose into the books. CUDA_ERROR_MAP_FAILED: this process
  /// has something of its own there, so pointers would be ambiguous.
  CUresult insert_foreign(const memory_block& block);
  /// The same for memory of a graph, whose addresses the device may give to another graph's later.
  CUresult insert_graph_memory(memory_block block);
  /// Takes addresses that the device chose out of the program's reach. False: something of its own is there.
  bool claim_foreign(std::uint64_t address, std::uint64_t size);
  /// The same for managed memory, which the program may touch; and the end of it.
  bool open_foreign(std::uint64_t address, std::uint64_t size);
  void close_foreign(std::uint64_t address, std::uint64_t size) { foreign_.close(address, size); }
  pinned_arena& arena() { return arena_; }
  frontend::mirrors& mirrors() { return mirrors_; }
  managed_blocks& managed() { return *managed_; }
  live_memory& live() { return *live_; }
  /// Host and kernels may use managed memory at the same time: the devices can, and so can this process.
  bool concurrent_managed() const { return concurrent_managed_; }
  /// Kernels know only the page-locked memory whose addresses were found on their way; otherwise they may
  /// know all of it.
  bool find_addresses() const { return find_addresses_; }
  activity& work() { return work_; }
  std::mutex& showing() { return showing_; }  ///< held while a block becomes visible to kernels
  bool host_memory_in_use() const { return host_memory_in_use_.load(std::memory_order_relaxed); }
  void use_host_memory() { host_memory_in_use_.store(true, std::memory_order_relaxed); }
  /// The program has page-locked memory that kernels are meant to write: it has said so, or asked for its
  /// device pointer.
  bool host_memory_mapped() const { return host_memory_mapped_.load(std::memory_order_relaxed); }
  void map_host_memory() { host_memory_mapped_.store(true, std::memory_order_relaxed); }
  /// Graphs allocate or free memory: a launch may be refused for what an earlier one has left.
  void use_graph_memory() { graph_memory_in_use_.store(true, std::memory_order_relaxed); }
  bool graph_memory_in_use() const { return graph_memory_in_use_.load(std::memory_order_relaxed); }
  virtual_book& virtual_memory() { return virtual_memory_; }
  shared_book& shared() { return shared_; }
  std::uint64_t next_context_id() { return ++last_context_id_; }

  bool synchronous() const { return synchronous_; }  ///< OUTBOARD_SYNC=1

 private:
  enum class life : std::uint8_t { fresh, connected, running, ended, forked };

  process();
  ~process();
  /// `unrecorded`: what is to be reported to the program's tool without the lock; empty: nothing.
  CUresult connect_locked(std::string& unrecorded);
  /// What is done with messages that the session sends by itself; `url` is its server's.
  session_events make_events(const std::string& url);
  void use_session(const dialed& with, const settings& s);
  result<std::string> server_url() const;
  void claim_window(wire::hello& hello);
  void open_arena(std::uint64_t base, std::uint64_t size);
  void adopt(marshal::snapshot snapshot);
  void sticky(std::uint64_t context, std::int32_t code);

  boot_options options_;
  std::atomic<life> life_{life::fresh};
  std::mutex connect_mutex_;
  bool tried_ = false;
  CUresult connect_code_ = CUDA_ERROR_NO_DEVICE;
  transport::registry transports_;
  std::unique_ptr<session> session_;
  bool records_work_ = false;
  marshal::snapshot facts_;
  std::array<std::unique_ptr<handle_table>, static_cast<std::size_t>(api::handle_kind::count)> tables_;
  std::vector<context_state*> primaries_;
  address_table addresses_;
  freed_blocks freed_;
  host_functions functions_;
  foreign_claims foreign_;
  virtual_book virtual_memory_;
  shared_book shared_;
  claimed_range arena_range_;
  pinned_arena arena_;
  frontend::mirrors mirrors_;
  std::unique_ptr<managed_blocks> managed_;
  std::unique_ptr<live_memory> live_;
  bool concurrent_managed_ = false, find_addresses_ = true;
  std::atomic<bool> told_of_addresses_{false};
  activity work_;
  std::mutex showing_;
  std::atomic<bool> host_memory_in_use_{false}, host_memory_mapped_{false};
  std::atomic<bool> graph_memory_in_use_{false};
  claimed_range window_;
  std::vector<std::unique_ptr<slot_addresses>> slots_;
  std::atomic<bool> window_left_{false};
  std::atomic<std::uint64_t> last_context_id_{0};
  bool synchronous_ = false;
  data_dialer dialer_;
  bool lane_uploads_ = false, exchanges_words_ = false;
  std::unique_ptr<image_recalls> recalls_;
};

}  // namespace outboard::frontend
