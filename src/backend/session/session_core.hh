// The state of one session in its worker: connection, lanes, tables, memory. The main thread makes it, stands
// by for the turn and tears it down; lane threads execute. What needs the turn and what has its own lock is
// said member by member.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "backend/cuda/call.hh"
#include "backend/cuda/code/image_keeper.hh"
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
#include "backend/session/data_connections.hh"
#include "backend/session/reading_pace.hh"
#include "backend/session/session.hh"
#include "backend/session/session_api.hh"
#include "backend/session/side_launches.hh"
#include "backend/session/turn.hh"
#include "marshal/cuda/snapshot.hh"
#include "marshal/data_bodies.hh"
#include "transport/buffered.hh"

namespace outboard::backend {

class lane : public contender {
 public:
  explicit lane(std::uint32_t number) : id(number) {}
  const std::uint32_t id;
  frame inbox;                      ///< handed over with the turn
  bool has_frame = false;           ///< under the turn
  bool finished = false;            ///< the client's thread ended; under the turn
  std::uint64_t context = 0;        ///< handle of the context current on this thread
  std::uint64_t context_epoch = 0;  ///< session_core::contexts_changed() when it was entered
  std::int32_t deferred = 0;        ///< a failed post's code, for the next call that may carry it
  std::vector<std::byte> reply;
  std::vector<std::byte> before_reply;                ///< frames that leave with it
  std::uint64_t waited_for = unseen_output::unknown;  ///< by the driver, during the request at hand
  side_launches side;
  bool stepped_aside = false;        ///< of its thread: it has left the reading to the stand-by
  bool gave_up_turn = false;         ///< during the request at hand
  bool replaying = false;            ///< carries out records: keeps the turn through all of them
  std::vector<std::byte> upload;     ///< for the load or link that follows; this lane's requests only
  bool keeps_next = false;           ///< what it loads next was asked for and is not kept yet; likewise
  std::atomic<bool> answered{true};  ///< no call is under way: the client's thread may ask again
  std::thread thread;
  std::atomic<bool> gone{false};  ///< `thread` is about to end and touches nothing any more
};

/// Made by a request that had given up the turn.
struct late_object {
  std::uint64_t id = 0;
  void* native = nullptr;
  record made_by;
  std::shared_ptr<void> extra;
};

/// After these a context is lost until it is reset; every later call in it gives the same code.
bool is_sticky(CUresult code);

class session_core {
 public:
  explicit session_core(session_request request);
  ~session_core();

  session_end run();

  const api::driver_table& driver() const { return driver_; }
  session_api* other_api() { return request_.api; }
  /// What tells a profiler of the device's work; nullptr: nothing does.
  device::work_recorder* recorder() {
    if (request_.api) return request_.api->recorder();
    return request_.device ? request_.device->recorder() : nullptr;
  }

  /// As the device has them.
  int descriptor_behind(const CUipcEventHandle& event) const {
    return request_.device->descriptor_behind(event);
  }
  CUipcEventHandle with_descriptor(const CUipcEventHandle& event, int descriptor) const {
    return request_.device->with_descriptor(event, descriptor);
  }
  /// For the other API: what it counts there, and what the configuration says. Null: nobody looks.
  activity_page* activity() const { return request_.activity; }
  account_share* account() const { return request_.account; }
  const shape_settings& shape() const { return request_.shape; }
  object_tables& objects() { return objects_; }  ///< with the turn
  quota& limits() { return quota_; }             ///< with the turn
  /// What has to be freed for so much more of a device; nothing: no other session's memory would help,
  /// because the session's own limit or the device does not allow it. With the turn.
  std::optional<room_message> room_for(std::int32_t device, std::uint64_t bytes) const;
  /// A session whose client is away has ended so that there is more memory. False: there is none.
  bool make_room(const room_message& needed) const;
  memory_map& memory() { return memory_; }               ///< own lock
  virtual_ranges& virtual_memory() { return virtual_; }  ///< with the turn
  staging& stage() { return staging_; }                  ///< own lock
  backend::mirrors& mirrors() { return mirrors_; }       ///< own lock
  copies_out& outgoing_copies() { return copies_; }      ///< own lock
  data_connections& data() { return data_; }             ///< own lock
  /// Connections that the client has opened for this session and names by their tokens, for copies of this
  /// context. Nothing: not all of them could be had.
  std::optional<marshal::data_open_reply> open_data_connections(const marshal::data_open_body& body,
                                                                std::uint64_t context);
  host_calls& host() { return host_; }  ///< own lock
  /// What is shared with other sessions; nullptr: nothing can be.
  broker_link* broker() { return request_.broker; }
  /// Offers whose object is gone while the program's descriptors live on.
  std::map<marshal::share_token, std::shared_ptr<void>>& lasting_offers() {
    return lasting_offers_;
  }                                                ///< with the turn
  open_captures& captures() { return captures_; }  ///< with the turn
  work_in_streams& work() { return work_; }        ///< with the turn, but for done()
  short_wait& waits() { return waits_; }           ///< with the turn
  /// How long whoever has the turn may look whether the device is done. With the turn.
  std::chrono::microseconds patience() const;
  /// Has the client more than one thread that asks? With the turn.
  bool others_ask() const;
  unseen_output& unseen() { return unseen_; }                ///< as it says itself
  graph_copies& captured_copies() { return graph_copies_; }  ///< own lock
  resource_book& resources() { return resources_; }          ///< with the turn
  core_dump& dumps() { return dumps_; }                      ///< own lock
  image_keeper& images() { return images_; }                 ///< own lock
  /// Counts bytes that a lane is about to have uploaded. False: all lanes together have too many.
  [[nodiscard]] bool reserve_upload(std::uint64_t more);
  void forget_upload(std::uint64_t bytes) { uploaded_ -= bytes; }
  /// What records_export is giving out, part by part.
  std::vector<std::byte>& export_buffer() { return export_; }  ///< with the turn
  const marshal::snapshot& facts() const { return facts_; }

  /// Sends one frame; any thread. A lost connection ends the session elsewhere.
  void send(wire::frame_header header, std::span<const std::byte> payload,
            std::span<const std::byte> bulk = {}) {
    send_behind({}, header, payload, bulk);
  }
  /// A data frame that need not leave before the reply of the call that this lane has at hand. Small ones
  /// only: it is copied.
  void send_with_reply(lane& own, wire::frame_header header, std::span<const std::byte> payload,
                       std::span<const std::byte> bulk);

  bool passes_descriptors() const { return connection_.what().passes_descriptors; }
  /// For the call with this ticket, before its reply.
  void send_descriptor(std::uint64_t ticket, int fd);

  /// Has the client closed its end, or does it within a moment? Then nothing need be taken down with care:
  /// the process ends, and its contexts with it.
  bool client_is_leaving();
  void give_up_turn(lane& own);
  /// Enters what a request without the turn has made: before the next request of anybody, so whoever names it
  /// once the client has heard of it finds it.
  void enter_late(late_object made);
  /// Executes a request of another worker's records on this lane's thread, with the turn.
  CUresult replay(lane& own, const wire::frame_header& header, std::vector<std::byte> payload);
  /// Makes the context current on this lane's thread. CUDA_SUCCESS or why not.
  CUresult enter_context(lane& own, std::uint64_t context);
  /// Every lane must enter its context again: a native context behind a handle has changed. With the turn.
  void contexts_changed() { ++context_epoch_; }
  /// What requests in `context` (made of a green one) make belongs to `owner`; 0: to itself. With the turn.
  void set_owner(std::uint64_t context, std::uint64_t owner);
  /// The context lives anew (reset): its sticky error is forgotten. With the turn.
  void forget_sticky(std::uint64_t context);
  /// Says in the client's log why its request fails, where the code says too little; before the reply.
  void tell_failure(const std::string& line);

 private:
  std::unique_ptr<transport::connection> take_data_connection(const marshal::share_token& token);
  void send_behind(std::span<const std::byte> before, wire::frame_header header,
                   std::span<const std::byte> payload, std::span<const std::byte> bulk);
  void enter_late_objects();
  void welcome();
  result<std::vector<std::byte>> describe_devices();
  void answer_by_api(lane& own, lane& asking, const wire::frame_header& request, outcome what);
  void lane_main(lane& own);
  void lead(lane* own);
  bool read_frame();
  bool nap();
  bool read_into(frame& to);
  bool reads_ahead() const;
  void read_ahead();
  bool execute_ahead(const frame& f);
  void stop_reading_ahead();
  bool deliver(lane* own);
  lane* find_lane(std::uint32_t number);
  void reap_lanes();
  bool execute(lane& own);
  bool carry_out(lane& own, lane& asking, frame& request);
  void answer(lane& own, lane& asking, const wire::frame_header& header, outcome what, bool keep_outputs);
  bool put_aside(lane* own);
  lane* side_lane(std::uint64_t stream);
  bool give_aside(lane& target, std::uint64_t stream, bool called);
  bool step_aside(lane& own, std::uint64_t stream);
  bool may_serve_aside() const;
  template <class Ready>
  bool wait_for(Ready&& ready);
  void finish_side_launches();
  void serve_side(lane& own);
  void make_side_launch(lane& own, const frame& launch);
  bool call_aside(lane& target);
  bool may_begin();
  void request_over();
  void tell_sticky(std::uint64_t context, CUresult code, bool by_post);
  void send_output();
  void send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes);
  void send_block(const boxed_bytes& b);
  void end(bool orderly, std::string why);
  bool join_lanes();

  session_request request_;
  transport::connection& connection_;
  const api::driver_table& driver_;
  marshal::snapshot facts_;
  std::mutex read_mutex_;  // guards from_ and ahead_: its owner is the receiver
  transport::buffered_receiver from_;
  std::deque<frame> ahead_;  // read while the turn's holder was inside the driver
  std::atomic<bool> executing_{false}, reading_ahead_{false};
  frame at_hand_;      // with the turn
  reading_pace pace_;  // with the turn
  turn turn_;
  contender standby_;
  std::map<std::uint32_t, std::unique_ptr<lane>> lanes_;  // with the turn; torn down by the main thread
  std::vector<lane*> side_lanes_;  // that may have launches of their own left to make; with the turn
  launch_mix launches_;            // with the turn
  std::atomic<int> serving_lanes_{0};
  object_tables objects_;
  resource_book resources_;
  std::map<std::uint64_t, std::uint64_t> owners_;  // of contexts made of green ones; with the turn
  std::mutex late_mutex_;
  std::vector<late_object> late_;
  std::atomic<bool> any_late_{false};
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
  staging staging_;
  staged_pieces staged_pieces_;
  data_connections data_;
  backend::mirrors mirrors_;
  copies_out copies_;
  std::mutex send_mutex_;
  std::atomic<std::uint64_t> executed_{0};  // highest ticket
  std::atomic<std::uint64_t> context_epoch_{0};
  std::mutex end_mutex_;
  bool has_ended_ = false;
  session_end end_;
  std::mutex sticky_mutex_;
  std::map<std::uint64_t, CUresult> sticky_told_;
  host_calls host_;  // its thread uses what stands above
  graph_copies graph_copies_;
  core_dump dumps_;  // its thread sends
};

}  // namespace outboard::backend
