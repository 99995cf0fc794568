// A CUDA session in its worker: tables of objects, memory, copies under way, host functions. session_core
// owns it and does what is no API's own: lanes, the turn, frames. What needs the turn and what has its own
// lock is said member by member.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "backend/cuda/call.hh"
#include "backend/cuda/code/first_uses.hh"
#include "backend/cuda/code/image_keeper.hh"
#include "backend/cuda/code/load.hh"
#include "backend/cuda/copying/copies_out.hh"
#include "backend/cuda/copying/staged_piece.hh"
#include "backend/cuda/copying/staging.hh"
#include "backend/cuda/core_dump.hh"
#include "backend/cuda/graph/graph_copies.hh"
#include "backend/cuda/host_calls.hh"
#include "backend/cuda/memory/memory_map.hh"
#include "backend/cuda/memory/mirrors.hh"
#include "backend/cuda/memory/quota.hh"
#include "backend/cuda/memory/virtual_ranges.hh"
#include "backend/cuda/resource_book.hh"
#include "backend/cuda/short_wait.hh"
#include "backend/cuda/unseen_output.hh"
#include "backend/disk/image_terms.hh"
#include "backend/session/session_core.hh"
#include "device/device.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

class image_cache;
class loaded_ahead;

/// What a CUDA session needs beside what every session does.
struct cuda_terms {
  device::device* device = nullptr;  ///< cuInit has been called; outlives the session
  image_cache* images = nullptr;     ///< where module images are kept; null: nowhere. Outlives the session
  image_terms image_access = {};
  bool core_dumps = true;         ///< the device may write them
  loaded_ahead* ahead = nullptr;  ///< code that waits for the session; null: none. Outlives it
};

/// For session_request.
session_maker speak_cuda(cuda_terms terms);

/// What the worker keeps for a thread of a program that speaks CUDA. Of its thread, but for what says
/// otherwise.
class cuda_lane final : public lane {
 public:
  using lane::lane;
  std::uint64_t context = 0;        ///< handle of the context current on this thread
  std::uint64_t context_epoch = 0;  ///< of the session, when it was entered
  std::int32_t deferred = 0;        ///< a failed post's code, for the next call that may carry it
  std::uint64_t waited_for = unseen_output::unknown;  ///< by the driver, during the request at hand
  std::vector<std::byte> upload;  ///< for the load or link that follows; this lane's requests only
  bool keeps_next = false;        ///< what it loads next was asked for and is not kept yet; likewise
  std::int32_t capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;  ///< of its thread, as the driver has it
};

/// After these a context is lost until it is reset; every later call in it gives the same code.
bool is_sticky(CUresult code);

class cuda_session final : public session_api {
 public:
  cuda_session(session_core& core, cuda_terms terms);

  result<std::vector<std::byte>> begin() override;
  void stop() override { host_.end(); }
  void end(bool stuck) override;
  std::unique_ptr<lane> make_lane(std::uint32_t number) override {
    return std::make_unique<cuda_lane>(number);
  }
  void lane_ended(lane& over) override { forget_upload(static_cast<cuda_lane&>(over).upload.size()); }
  result<std::unique_ptr<preparation>> prepare() override;            // replace/save.cc
  result<std::unique_ptr<settling>> settle() override;                // replace/save.cc
  status save(session_image& into) override;                          // replace/save.cc
  status restore(session_image& image, wire::reader& from) override;  // replace/restore.cc
  outcome carry_out(request_at_hand& request) override;
  void answer(lane& own, lane& asking, const wire::frame_header& request, const outcome& what) override;
  void request_over() override { quota_.settle(); }  ///< any lane's thread
  piece_memory& pieces() override { return staged_pieces_; }
  data_connections::look look_after_copies() override;
  ahead reads_ahead() const override;
  bool execute_ahead(const frame& f) override;
  bool answered(std::uint64_t number, std::span<const std::byte> bytes) override {
    return host_.answered(number, bytes);
  }
  bool any_thread_may(const frame& f) const override;
  known_stream stream_aside(const frame& f) override;
  void goes_aside(const frame& f, const known_stream& stream) override;
  bool launch_aside(lane& own, const frame& f) override;

  const api::driver_table& driver() const { return driver_; }
  /// What tells a profiler of the device's work; nullptr: nothing does.
  device::work_recorder* recorder() { return terms_.device->recorder(); }
  /// As the device has them.
  int descriptor_behind(const CUipcEventHandle& event) const {
    return terms_.device->descriptor_behind(event);
  }
  CUipcEventHandle with_descriptor(const CUipcEventHandle& event, int descriptor) const {
    return terms_.device->with_descriptor(event, descriptor);
  }
  const marshal::snapshot& facts() const { return facts_; }
  object_tables& objects() override { return objects_; }  ///< with the turn
  quota& limits() { return quota_; }                      ///< with the turn
  /// What has to be freed for so much more of a device; nothing: no other session's memory would help,
  /// because the session's own limit or the device does not allow it. With the turn.
  std::optional<room_message> room_for(std::int32_t device, std::uint64_t bytes) const;
  memory_map& memory() { return memory_; }               ///< own lock
  virtual_ranges& virtual_memory() { return virtual_; }  ///< with the turn
  staging& stage() { return staging_; }                  ///< own lock
  backend::mirrors& mirrors() { return mirrors_; }       ///< own lock
  copies_out& outgoing_copies() { return copies_; }      ///< own lock
  host_calls& host() { return host_; }                   ///< own lock
  /// Offers whose object is gone while the program's descriptors live on. With the turn.
  std::map<marshal::share_token, std::shared_ptr<void>>& lasting_offers() { return lasting_offers_; }
  open_captures& captures() { return captures_; }            ///< with the turn
  work_in_streams& work() { return work_; }                  ///< with the turn, but for done()
  short_wait& waits() { return waits_; }                     ///< with the turn
  unseen_output& unseen() { return unseen_; }                ///< as it says itself
  graph_copies& captured_copies() { return graph_copies_; }  ///< own lock
  resource_book& resources() { return resources_; }          ///< with the turn
  core_dump& dumps() { return dumps_; }                      ///< own lock
  image_keeper& images() { return images_; }                 ///< own lock
  first_uses& uses() { return uses_; }                       ///< own lock
  /// Counts bytes that a lane is about to have uploaded. False: all lanes together have too many.
  [[nodiscard]] bool reserve_upload(std::uint64_t more);
  void forget_upload(std::uint64_t bytes) { uploaded_ -= bytes; }
  /// Code with this id that was loaded before the session came here, if any. With the turn.
  std::optional<fresh_code> take_loaded(std::uint64_t id);
  /// The other worker has the image of this code already. With the turn.
  bool is_loaded_there(std::uint64_t id) const { return loaded_there_.contains(id); }
  /// What records_export is giving out, part by part.
  std::vector<std::byte>& export_buffer() { return export_; }  ///< with the turn

  /// Executes a request of another worker's records on this lane's thread, with the turn.
  CUresult replay(cuda_lane& own, const wire::frame_header& header, std::vector<std::byte> payload);
  /// Makes the context current on this lane's thread. CUDA_SUCCESS or why not.
  CUresult enter_context(cuda_lane& own, std::uint64_t context);
  /// Every lane must enter its context again: a native context behind a handle has changed. With the turn.
  void contexts_changed() { ++context_epoch_; }
  /// What requests in `context` (made of a green one) make belongs to `owner`; 0: to itself. With the turn.
  void set_owner(std::uint64_t context, std::uint64_t owner);
  /// A context has failed, and has not been reset. Any thread.
  bool has_failed();
  /// Something was done that no record tells: for as long as the session lasts no other worker can go on with
  /// it. `why` lives for ever. Any thread.
  void keep_here(const char* why) { kept_here_.store(why, std::memory_order_relaxed); }
  const char* why_kept_here() const { return kept_here_.load(std::memory_order_relaxed); }  ///< null: nothing
  /// The context lives anew (reset): its sticky error is forgotten. With the turn.
  void forget_sticky(std::uint64_t context);

 private:
  void tell_sticky(std::uint64_t context, CUresult code, bool by_post);
  void post_over(cuda_lane& asking, std::uint64_t context, CUresult code);
  copies_out::departure send_finished(cuda_lane& own);
  bool send_aside(std::uint64_t ticket, std::uint64_t offset, std::size_t size, const staging::block& block);
  void send_block(const boxed_bytes& b);
  void ask_client(std::uint64_t number, const marshal::callback_body& errand);

  session_core& core_;
  const cuda_terms terms_;
  const api::driver_table& driver_;
  marshal::snapshot facts_;
  object_tables objects_;
  resource_book resources_;
  std::map<std::uint64_t, std::uint64_t> owners_;  // of contexts made of green ones; with the turn
  std::atomic<std::uint64_t> uploaded_{0};         // what lanes have uploaded and no load has taken
  image_keeper images_;
  first_uses uses_;
  std::vector<std::byte> export_;
  std::set<std::uint64_t> loaded_there_;  // by a worker that is to go on with the session; with the turn
  std::atomic<const char*> kept_here_{nullptr};
  std::map<marshal::share_token, std::shared_ptr<void>> lasting_offers_;
  device_tally held_;
  quota quota_;
  memory_map memory_;
  virtual_ranges virtual_;
  open_captures captures_;
  work_in_streams work_;
  short_wait waits_;
  unseen_output unseen_;
  staging staging_;
  staged_pieces staged_pieces_;
  backend::mirrors mirrors_;
  copies_out copies_;
  std::atomic<std::uint64_t> context_epoch_{0};
  std::mutex sticky_mutex_;
  std::map<std::uint64_t, CUresult> sticky_told_;
  host_calls host_;  // its thread uses what stands above
  graph_copies graph_copies_;
  core_dump dumps_;  // its thread sends
};

}  // namespace outboard::backend
