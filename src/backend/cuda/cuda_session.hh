// What a CUDA session has besides its connection and its lanes (session_core.hh): the device, tables, memory,
// and whatever else its handlers keep. Owned by the worker process; the main thread makes it and takes it
// down. What needs the turn and what has its own lock is said member by member.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/call.hh"
#include "backend/cuda/code/image_keeper.hh"
#include "backend/cuda/copying/copies_out.hh"
#include "backend/cuda/copying/staged_piece.hh"
#include "backend/cuda/copying/staging.hh"
#include "backend/cuda/core_dump.hh"
#include "backend/cuda/cuda_lane.hh"
#include "backend/cuda/graph/graph_copies.hh"
#include "backend/cuda/host_calls.hh"
#include "backend/cuda/late_objects.hh"
#include "backend/cuda/memory/memory_map.hh"
#include "backend/cuda/memory/mirrors.hh"
#include "backend/cuda/memory/quota.hh"
#include "backend/cuda/memory/virtual_ranges.hh"
#include "backend/cuda/objects.hh"
#include "backend/cuda/resource_book.hh"
#include "backend/cuda/short_wait.hh"
#include "backend/cuda/sticky_errors.hh"
#include "backend/cuda/unseen_output.hh"
#include "backend/cuda/work_in_streams.hh"
#include "backend/disk/image_terms.hh"
#include "backend/session/session_api.hh"
#include "backend/session/session_core.hh"
#include "device/device.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

/// Where images of modules are kept for other sessions.
struct kept_images {
  image_cache* cache = nullptr;  ///< null: nowhere
  image_terms access = {};
};

class cuda_session final : public session_api {
 public:
  /// cuInit of the device has been called; the device outlives the session.
  explicit cuda_session(device::device& device, const kept_images& images = {});

  result<std::vector<std::byte>> begin(session_core& session) override;
  std::unique_ptr<lane> make_lane(std::uint32_t number) override {
    return std::make_unique<cuda_lane>(number);
  }
  void forget_lane(lane& gone) override { forget_upload(static_cast<cuda_lane&>(gone).upload.size()); }
  bool carry_out(lane& own, lane& asking, frame& request) override;
  piece_memory& pieces() override { return staged_pieces_; }
  data_connections::look look_after_copies() override;
  bool waits_for_client() const override { return host_->waiting(); }
  bool client_answered(std::uint64_t number, std::span<const std::byte> bytes) override {
    return host_->answered(number, bytes);
  }
  bool serve_early(const frame& f) override;
  bool any_thread_may(const wire::frame_header& header, std::span<const std::byte> payload) override;
  std::uint64_t side_stream(const frame& launch) override;
  bool leave_aside(const frame& launch, std::uint64_t stream) override;
  bool make_side_launch(lane& on, const frame& launch) override;
  void stop_waiting() override { host_->end(); }
  void end(bool stuck) override;

  /// From begin() to end().
  session_core& core() { return *core_; }
  const api::driver_table& driver() const { return driver_; }
  const device::device& executing_device() const { return device_; }
  object_tables& objects() { return objects_; }          ///< with the turn
  late_objects& late() { return late_; }                 ///< own lock
  quota& limits() { return quota_; }                     ///< with the turn
  memory_map& memory() { return memory_; }               ///< own lock
  virtual_ranges& virtual_memory() { return virtual_; }  ///< with the turn
  staging& stage() { return staging_; }                  ///< own lock
  backend::mirrors& mirrors() { return mirrors_; }       ///< own lock
  copies_out& outgoing_copies() { return copies_; }      ///< own lock
  host_calls& host() { return *host_; }                  ///< own lock
  /// Offers whose object is gone while the program's descriptors live on. With the turn.
  std::map<marshal::share_token, std::shared_ptr<void>>& lasting_offers() { return lasting_offers_; }
  open_captures& captures() { return captures_; }             ///< with the turn
  work_in_streams& work() { return work_; }                   ///< with the turn, but for done()
  short_wait& waits() { return waits_; }                      ///< with the turn
  unseen_output& unseen() { return unseen_; }                 ///< as it says itself
  graph_copies& captured_copies() { return *graph_copies_; }  ///< own lock
  resource_book& resources() { return resources_; }           ///< with the turn
  core_dump& dumps() { return *dumps_; }                      ///< own lock
  image_keeper& images() { return images_; }                  ///< own lock
  sticky_errors& sticky() { return sticky_; }                 ///< own lock
  const marshal::snapshot& facts() const { return facts_; }
  /// What records_export is giving out, part by part. With the turn.
  std::vector<std::byte>& export_buffer() { return export_; }

  /// Counts bytes that a lane is about to have uploaded. `too_much`: more than an honest client sends, by all
  /// lanes together; `no_memory`: more than the session may hold.
  enum class upload_room : std::uint8_t { taken, no_memory, too_much };
  [[nodiscard]] upload_room reserve_upload(std::uint64_t more);
  void forget_upload(std::uint64_t bytes) {
    uploaded_ -= bytes;
    held_.take(this_machine, bytes);
  }

  /// Executes a request of another worker's records on this lane's thread, with the turn.
  CUresult replay(cuda_lane& own, const wire::frame_header& header, std::vector<std::byte> payload);
  /// Every lane must enter its context again: a native context behind a handle has changed. With the turn.
  void contexts_changed() { ++context_epoch_; }
  /// What requests in `context` (made of a green one) make belongs to `owner`; 0: to itself. With the turn.
  void set_owner(std::uint64_t context, std::uint64_t owner);

 private:
  result<std::vector<std::byte>> describe_devices();
  /// Makes the context current on this lane's thread. CUDA_SUCCESS or why not.
  CUresult enter_context(cuda_lane& own, std::uint64_t context);
  void answer(cuda_lane& own, cuda_lane& asking, const wire::frame_header& header, outcome what,
              bool keep_outputs);
  void tell_sticky(std::uint64_t context, CUresult code, bool by_post);
  bool send_aside(std::uint64_t ticket, std::uint64_t offset, std::size_t size, const staging::block& block);
  void send_errand(std::uint64_t number, const marshal::callback_body& errand);
  void send_block(const boxed_bytes& b);

  device::device& device_;
  const kept_images kept_images_;
  session_core* core_ = nullptr;
  const api::driver_table& driver_;
  marshal::snapshot facts_;
  object_tables objects_;
  late_objects late_;
  resource_book resources_;
  std::map<std::uint64_t, std::uint64_t> owners_;  // of contexts made of green ones; with the turn
  std::atomic<std::uint64_t> context_epoch_{0};
  std::atomic<std::uint64_t> uploaded_{0};  // what lanes have uploaded and no load has taken
  image_keeper images_;
  std::vector<std::byte> export_;
  std::map<marshal::share_token, std::shared_ptr<void>> lasting_offers_;
  device_tally held_;
  quota quota_;
  memory_map memory_;
  virtual_ranges virtual_;
  open_captures captures_;
  work_in_streams work_;
  short_wait waits_;
  unseen_output unseen_;
  sticky_errors sticky_;
  staging staging_;
  staged_pieces staged_pieces_;
  backend::mirrors mirrors_;
  copies_out copies_;
  // These end with the session: the threads of the first and the last one send.
  std::optional<host_calls> host_;
  std::optional<graph_copies> graph_copies_;
  std::optional<core_dump> dumps_;
};

}  // namespace outboard::backend
