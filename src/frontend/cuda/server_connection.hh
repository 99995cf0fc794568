// The life of the process's connection: booted by the shim, connected by the first call that needs the
// server, running after cuInit, ended by exit or fork; and what was agreed with the server. Part of the
// process's state; any thread may ask, and the first one connects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "api/describe.hh"
#include "frontend/boot_options.hh"
#include "frontend/cuda/code/image_recalls.hh"
#include "frontend/cuda/context.hh"
#include "frontend/data_dialer.hh"
#include "frontend/lane.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "transport/transport.hh"
#include "wire/hello.hh"

namespace outboard::frontend {

struct dialed;
struct settings;

class server_connection {
 public:
  explicit server_connection(process& whole) : process_(whole) {}

  void boot(const boot_options& options);  ///< no connection yet, no thread, no allocation that matters
  /// The program ends (destructor of the library) or has forked (child): see design section 5.4.
  void shut_down();
  void forked_child();

  /// Connects on the first call; later calls give the same answer at once.
  CUresult connect();
  CUresult init();  ///< cuInit

  /// May a call with this description run on this lane now? CUDA_SUCCESS or the driver's own refusal.
  CUresult gate(const api::description& about, const lane& own) const {
    return about.preinit ? CUDA_SUCCESS : gate(own, !about.noctx);
  }
  /// The check for hand-written ends: initialised, and (if asked) a usable current context.
  CUresult gate(const lane& own, bool needs_context = true) const {
    if (const life now = life_.load(std::memory_order_acquire); now != life::running) [[unlikely]]
      return now == life::ended ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    if (session_->lost()) [[unlikely]]
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (own.in_callback) [[unlikely]]
      return CUDA_ERROR_NOT_PERMITTED;
    return needs_context ? state_of(own.current()) : CUDA_SUCCESS;
  }
  bool usable() const { return life_.load(std::memory_order_acquire) == life::running; }

  /// nullptr: not connected yet.
  session* server() const { return session_.get(); }

  /// Opens data connections of this session, or none where it has no use for them.
  const data_dialer& dialer() const { return dialer_; }
  /// May several lanes upload at once? Agreed with the server.
  bool lane_uploads() const { return lane_uploads_; }
  /// Where the server keeps module images: whether to ask for one, and what proofs answer; else nullptr.
  image_recalls* recalls() const { return recalls_.get(); }
  /// Host and kernels may use managed memory at the same time: the devices can, and so can this process.
  bool concurrent_managed() const { return concurrent_managed_; }
  bool synchronous() const { return synchronous_; }  ///< OUTBOARD_SYNC=1
  void* find_export(std::string_view symbol) const { return options_.find_export(symbol); }

  /// Asks a configured server one question over a connection of its own, with or without a session. Returns
  /// what the server's welcome to this hello says.
  result<wire::welcome> ask_server(wire::hello question, transport::deadline until) const;

  // rebuild.cc
  /// Everything that rebuilds this session on another worker, but for the contents of memory. The session
  /// must be idle.
  CUresult export_records(std::vector<std::byte>& records);
  /// What the worker counts for this session.
  CUresult ledger(marshal::ledger_reply& held);
  /// Opens a fresh session on a configured server and replays the records there. Device addresses and handles
  /// keep their values; the caller restores the contents of memory.
  CUresult rebuild(std::span<const std::byte> records);

 private:
  enum class life : std::uint8_t { fresh, connected, running, ended, forked };

  /// What the driver says of calls in this context: none, destroyed, failed, usable.
  static CUresult state_of(const context_state* current) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    if (!current->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (const std::int32_t sticky = current->sticky.load(std::memory_order_acquire))
      return static_cast<CUresult>(sticky);
    return current->owner ? state_of_owner(*current->owner) : CUDA_SUCCESS;
  }
  static CUresult state_of_owner(const context_state& owner);
  CUresult connect_locked();
  CUresult begin_session(dialed& with, const settings& s);
  void use_session(const dialed& with, const settings& s);
  void prepare_host_memory();

  process& process_;
  boot_options options_;
  std::atomic<life> life_{life::fresh};
  std::mutex connect_mutex_;
  bool tried_ = false;
  CUresult connect_code_ = CUDA_ERROR_NO_DEVICE;
  transport::registry transports_;
  std::unique_ptr<session> session_;
  data_dialer dialer_;
  bool lane_uploads_ = false, concurrent_managed_ = false, synchronous_ = false;
  std::unique_ptr<image_recalls> recalls_;
};

}  // namespace outboard::frontend
