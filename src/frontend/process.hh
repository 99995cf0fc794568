// The front-end's state in the program's process: the one singleton that the C ABI needs. Made by the shim's
// one init; it connects at the first call that needs the server. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/describe.hh"
#include "frontend/activity.hh"
#include "frontend/data_dialer.hh"
#include "frontend/host_functions.hh"
#include "frontend/image_recalls.hh"
#include "frontend/lane.hh"
#include "frontend/memory/program_memory.hh"
#include "frontend/program_objects.hh"
#include "frontend/session.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/snapshot.hh"
#include "transport/transport.hh"
#include "wire/hello.hh"

namespace outboard::frontend {

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
  bool samples_boards() const { return samples_boards_; }  ///< the same of its sensors
  const marshal::snapshot& facts() const { return facts_; }
  void* find_export(std::string_view symbol) const { return options_.find_export(symbol); }

  program_objects& objects() { return objects_; }
  program_memory& memory() { return memory_; }
  host_functions& functions() { return functions_; }
  activity& work() { return work_; }

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
  void sticky(std::uint64_t context, std::int32_t code);

  boot_options options_;
  std::atomic<life> life_{life::fresh};
  std::mutex connect_mutex_;
  bool tried_ = false;
  CUresult connect_code_ = CUDA_ERROR_NO_DEVICE;
  transport::registry transports_;
  std::unique_ptr<session> session_;
  bool records_work_ = false, samples_boards_ = false;
  marshal::snapshot facts_;
  program_objects objects_;
  program_memory memory_;
  host_functions functions_;
  std::atomic<bool> told_of_addresses_{false};
  activity work_;
  bool synchronous_ = false;
  data_dialer dialer_;
  bool lane_uploads_ = false, exchanges_words_ = false;
  std::unique_ptr<image_recalls> recalls_;
};

}  // namespace outboard::frontend
