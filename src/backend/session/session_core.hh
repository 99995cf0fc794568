// One session in its worker: its connection, its lanes, the turn, and the connections for large copies; what
// it speaks is behind session_api.hh. The main thread makes it, stands by for the turn and tears it down;
// lane threads execute. What needs the turn and what has its own lock is said member by member.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/session/data_connections.hh"
#include "backend/session/frame.hh"
#include "backend/session/lane.hh"
#include "backend/session/launch_mix.hh"
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
  ~session_core();

  session_end run();

  session_api& api() { return api_; }
  const wire::hello& hello() const { return request_.hello; }
  /// What it holds is counted there. Null: nobody looks.
  activity_page* activity() const { return request_.activity; }
  backend::memory_slot memory_slot() const { return request_.memory; }
  const shape_settings& shape() const { return request_.shape; }
  /// What is shared with other sessions; nullptr: nothing can be.
  broker_link* broker() { return request_.broker; }
  /// Ends a session whose client is away, to free its memory. False: there is none. With the turn; waits.
  bool make_room();
  /// What the device prints; null: nobody listens.
  device_output* output() { return request_.output; }
  data_connections& data() { return data_; }  ///< own lock
  /// Connections that the client has opened for this session and names by their tokens, for copies of this
  /// context. Nothing: not all of them could be had.
  std::optional<marshal::data_open_reply> open_data_connections(const marshal::data_open_body& body,
                                                                std::uint64_t context);
  /// How long whoever has the turn may look whether the device is done. With the turn.
  std::chrono::microseconds patience() const;
  /// Has the client more than one thread that asks? With the turn.
  bool others_ask() const;

  /// Sends one frame; any thread. A lost connection ends the session elsewhere.
  void send(wire::frame_header header, std::span<const std::byte> payload,
            std::span<const std::byte> bulk = {}) {
    send_behind({}, header, payload, bulk);
  }
  /// To copy so much costs less than a frame that is sent by itself.
  static constexpr std::size_t goes_with_reply = 8u << 10;
  /// A data frame that need not leave before the reply of the call that this lane has at hand. Small ones
  /// only: it is copied.
  void send_with_reply(lane& own, wire::frame_header header, std::span<const std::byte> payload,
                       std::span<const std::byte> bulk);
  bool passes_descriptors() const { return connection_.what().passes_descriptors; }
  /// For the call with this ticket, before its reply.
  void send_descriptor(std::uint64_t ticket, int fd);
  /// What the device has printed so far.
  void send_output();
  void send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes);

  /// A reply is likely to be sent soon, by this thread.
  void expect_reply() { connection_.expect_send(); }
  /// The request with this ticket, the highest so far, has been carried out: acknowledged with what is sent.
  void executed(std::uint64_t ticket) { executed_.store(ticket, std::memory_order_relaxed); }
  /// Answers the call of `asking` with what is in own.reply.
  void reply(lane& own, lane& asking, const wire::frame_header& request);

  /// Has the client closed its end, or does it within a moment? Then nothing need be taken down with care:
  /// the process ends, and its contexts with it.
  bool client_is_leaving();
  /// Lets other lanes go on, once in a request.
  void give_up_turn(lane& own);
  /// Somebody waits for the client from now on: its answer is to be read. Any thread.
  void client_was_asked() { turn_.nudge(standby_); }
  /// Any thread, several times: the first one says why.
  void end(bool orderly, std::string why);

 private:
  std::unique_ptr<transport::connection> take_data_connection(const marshal::share_token& token);
  void send_behind(std::span<const std::byte> before, wire::frame_header header,
                   std::span<const std::byte> payload, std::span<const std::byte> bulk);
  void welcome();
  void lane_main(lane& own);
  void lead(lane* own);
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
  bool is_launch(const wire::frame_header& header) const;
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
  bool join_lanes();

  session_request request_;
  session_api& api_;
  transport::connection& connection_;
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
  data_connections data_;
  std::mutex send_mutex_;
  std::atomic<std::uint64_t> executed_{0};  // highest ticket
  std::mutex end_mutex_;
  bool has_ended_ = false;
  session_end end_;
};

}  // namespace outboard::backend
