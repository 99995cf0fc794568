// One session in its worker: connection, lanes, the turn, data connections; what it speaks is session_api's.
// The main thread makes it, stands by for the turn and tears it down; lane threads execute. What needs the
// turn and what has its own lock is said member by member.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backend/session/data_connections.hh"
#include "backend/session/lane.hh"
#include "backend/session/reading_pace.hh"
#include "backend/session/session.hh"
#include "backend/session/session_api.hh"
#include "backend/session/turn.hh"
#include "marshal/data_bodies.hh"
#include "transport/buffered.hh"

namespace outboard::backend {

class session_core {
 public:
  explicit session_core(session_request request);

  session_end run();

  session_api& api() { return *api_; }
  late_objects& late() { return late_; }  ///< own lock

  /// What it counts in, and what the client and the configuration say. Null: nobody looks.
  activity_page* activity() const { return request_.activity; }
  account_share* account() const { return request_.account; }
  const shape_settings& shape() const { return request_.shape; }
  const wire::hello& hello() const { return request_.hello; }
  /// What is shared with other sessions; nullptr: nothing can be.
  broker_link* broker() { return request_.broker; }
  /// What the device prints; nullptr: nobody listens.
  device_output* output() { return request_.output; }
  /// A session whose client is away has ended so that there is more memory. False: there is none.
  bool make_room(const room_message& needed) const;
  data_connections& data() { return data_; }  ///< own lock
  /// Connections that the client has opened for this session and names by their tokens, for copies of this
  /// context. Nothing: not all of them could be had.
  std::optional<marshal::data_open_reply> open_data_connections(const marshal::data_open_body& body,
                                                                std::uint64_t context);
  /// The lane of this number, in a session that goes on from another worker. Before anything is read.
  lane* lane_again(std::uint32_t number) { return find_lane(number); }
  /// Visits every lane whose thread lives. With the turn.
  void each_lane(const std::function<void(lane&)>& visit);
  /// How long whoever has the turn may look whether the device is done. With the turn.
  std::chrono::microseconds patience() const;
  /// Has the client more than one thread that asks? With the turn.
  bool others_ask() const;

  /// Sends one frame; any thread. A lost connection ends the session elsewhere.
  void send(wire::frame_header header, std::span<const std::byte> payload,
            std::span<const std::byte> bulk = {}) {
    send_behind({}, header, payload, bulk);
  }
  /// Bytes for the client's memory. Any thread.
  void send_data(const wire::data_place& place, std::span<const std::byte> bytes);
  /// The same, which need not leave before the reply of the call that this lane has at hand. Small ones only:
  /// they are copied.
  void send_data_with_reply(lane& own, const wire::data_place& place, std::span<const std::byte> bytes);
  /// Sends what stands in `own.reply`, which begins with the result code. The client's thread may ask again.
  void send_reply(lane& own, lane& asking, const wire::frame_header& request);
  /// A reply will leave soon, from this thread.
  void expect_send() { connection_.expect_send(); }
  /// What the device has printed is on the client's side before all that is sent from now on. Any thread.
  void send_output();
  void send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes);
  /// Says in the client's log why its request fails, where the code says too little; before the reply.
  void tell_failure(const std::string& line);

  bool passes_descriptors() const { return connection_.what().passes_descriptors; }
  /// For the call with this ticket, before its reply.
  void send_descriptor(std::uint64_t ticket, int fd);

  /// Has the client closed its end, or does it within a moment? Then nothing need be taken down with care:
  /// the process ends, and its contexts with it.
  bool client_is_leaving();
  /// The peer has broken the rules, or its connection: the session ends. Any thread.
  void fail(std::string why) { end(false, std::move(why)); }
  void give_up_turn(lane& own);
  /// A question is on its way to the client: the thread that stands by reads the answer. Any thread.
  void expect_answer() { turn_.nudge(standby_); }
  /// The highest ticket that has been carried out. Any thread.
  std::uint64_t executed() const { return executed_.load(std::memory_order_relaxed); }

 private:
  std::unique_ptr<transport::connection> take_data_connection(const marshal::share_token& token);
  void send_behind(std::span<const std::byte> before, wire::frame_header header,
                   std::span<const std::byte> payload, std::span<const std::byte> bulk);
  void welcome();
  // To another worker, or from one (leaving.cc):
  status begin();
  void wish_to_leave();
  static session_end end_without_a_word(bool handed_on, std::string why);
  bool wants_to_leave() const { return leaves_.load(std::memory_order_acquire); }
  bool leave();
  bool read_while_settling();
  bool lanes_are_idle();
  status settle(transport::deadline until);
  status may_be_shared();
  status save(session_image& into);
  status go_on(session_image& image);
  std::chrono::milliseconds watch_interval_now() const;
  void lane_main(lane& own);
  void lead(lane* own);
  bool take_ahead(std::size_t& bytes);
  bool read_frame();
  bool nap();
  bool read_into(frame& to);
  void read_ahead();
  void stop_reading_ahead();
  bool deliver(lane* own);
  lane* find_lane(std::uint32_t number);
  void reap_lanes();
  bool execute(lane& own);
  bool carry_out(lane& own, lane& asking, frame& request);
  bool put_aside(lane* own);
  lane* side_lane(std::uint64_t stream);
  bool give_aside(lane& target, const known_stream& stream, bool called);
  bool step_aside(lane& own, const known_stream& stream);
  bool may_serve_aside() const;
  template <class Ready>
  bool wait_for(Ready&& ready);
  void finish_side_launches();
  void serve_side(lane& own);
  void make_side_launch(lane& own, const frame& launch);
  bool call_aside(lane& target);
  bool may_begin();
  void request_over();
  void end(bool orderly, std::string why);
  bool join_lanes();

  session_request request_;
  transport::connection& connection_;
  std::mutex read_mutex_;  // guards from_ and ahead_: its owner is the receiver
  transport::buffered_receiver from_;
  std::deque<frame> ahead_;  // read while the turn's holder was inside the driver
  std::atomic<bool> executing_{false}, reading_ahead_{false};
  std::atomic<bool> mute_{false};    // another worker's is the connection still
  std::atomic<bool> leaves_{false};  // the daemon wishes that another worker goes on
  frame at_hand_;                    // with the turn
  reading_pace pace_;                // with the turn
  turn turn_;
  contender standby_;
  std::map<std::uint32_t, std::unique_ptr<lane>> lanes_;  // with the turn; torn down by the main thread
  std::vector<lane*> side_lanes_;  // that may have launches of their own left to make; with the turn
  launch_mix launches_;            // with the turn
  std::atomic<int> serving_lanes_{0};
  std::mutex send_mutex_;
  std::atomic<std::uint64_t> executed_{0};  // highest ticket
  std::mutex end_mutex_;
  bool has_ended_ = false;
  session_end end_;
  std::unique_ptr<session_api> api_;  // uses what stands above, and `data_` until its end()
  late_objects late_;                 // of the API's
  data_connections data_;             // uses the API's memory
};

}  // namespace outboard::backend
