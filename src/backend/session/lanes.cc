// How frames become executed requests: the leader reads, hands frames to their lanes, lanes execute and
// answer.
#include <array>

#include "backend/session/session_core.hh"
#include "transport/resumable/stream.hh"

namespace outboard::backend {

using ahead = session_api::ahead;

namespace {

/// A program may have thousands of threads; a peer may not have millions.
constexpr std::size_t max_lanes = 4096;

/// What may wait while a request that has the turn waits for a host function of the client. A client that has
/// sent more would wait for ever: its answer stands behind.
constexpr std::size_t most_ahead = 512u << 20;

/// Requests need no more than this for arrays; grown from the heap beyond.
constexpr std::size_t scratch_size = 16 << 10;

/// A reader that naps looks so often in vain before it sleeps until it is woken: its client has stopped.
constexpr int most_naps = 8;

}  // namespace

/// Reads one frame into at_hand_. False: interrupted, or the session has ended.
bool session_core::read_frame() {
  if (reading_ahead_.load()) connection_.interrupt();
  const std::lock_guard receiver(read_mutex_);
  if (ahead_.empty()) return (!pace_.napping() || nap()) && read_into(at_hand_);
  at_hand_ = std::move(ahead_.front());
  ahead_.pop_front();
  return true;
}

/// Until a request is there, or nobody has sent one for a while. False: interrupted.
bool session_core::nap() {
  for (int naps = 0; naps < most_naps && !from_.has_buffered(); ++naps) {
    const transport::io seen = connection_.wait_readable(transport::deadline::min());
    if (seen == transport::io::interrupted) return false;
    if (seen != transport::io::timed_out) break;
    std::this_thread::sleep_for(reading_pace::nap);
  }
  return true;
}

void session_core::stop_reading_ahead() {
  executing_.store(false);
  if (reading_ahead_.load()) connection_.interrupt();
}

/// A request inside the driver holds the turn, and perhaps waits for a stream that waits for a host function:
/// the client's answer must get through, and what the client does before and after the function. Everything
/// else that comes waits for the turn.
void session_core::read_ahead() {
  if (!executing_.load()) return;  // whoever has the turn reads by itself
  const std::lock_guard receiver(read_mutex_);
  reading_ahead_.store(true);  // partner: read_frame() and stop_reading_ahead() look at it after executing_
  std::size_t bytes = 0;
  for (const frame& f : ahead_) bytes += f.payload.size();
  while (executing_.load() && api_->reads_ahead() != ahead::nothing && bytes < most_ahead && !turn_.ended()) {
    if (!take_ahead(bytes)) break;
  }
  reading_ahead_.store(false);
}

/// By the receiver. False: interrupted, or the session has ended.
bool session_core::take_ahead(std::size_t& bytes) {
  frame next;
  if (!read_into(next)) return false;
  if (next.header.kind == wire::frame_kind::callback_done) {
    if (!api_->answered(next.header.ticket, next.payload))
      end(false, "protocol error: an answer to no callback");
  } else if (!api_->execute_ahead(next)) {
    bytes += next.payload.size();
    ahead_.push_back(std::move(next));
  }
  return true;
}

bool session_core::read_into(frame& to) {
  std::array<std::byte, wire::header_size> raw;
  const transport::io got = from_.fill(raw, true);
  if (got == transport::io::interrupted) return false;
  if (got != transport::io::done) {
    const auto* const stream = transport::stream_of(connection_);
    std::string why = stream ? stream->why_ended() : "";
    if (why.empty()) {
      why = got == transport::io::closed
                ? "the client left without a goodbye: it was killed, or ended by _exit"
                : "the connection broke";
    }
    end(false, std::move(why));
    return false;
  }
  auto header = wire::decode_header(raw, wire::max_frame_payload);
  if (!header) return end(false, "protocol error: " + header.error().message), false;
  to.header = *header;
  to.payload.resize(header->size);
  if (from_.fill(to.payload) != transport::io::done)
    return end(false, "the connection broke inside a frame"), false;
  return true;
}

/// Threads of programs come and go: those that have ended leave nothing behind.
void session_core::reap_lanes() {
  std::erase_if(lanes_, [this](auto& entry) {
    lane& l = *entry.second;
    if (!l.gone.load(std::memory_order_acquire)) return false;
    l.thread.join();
    api_->lane_ended(l);
    return true;
  });
}

lane* session_core::find_lane(std::uint32_t number) {
  if (const auto found = lanes_.find(number); found != lanes_.end()) return found->second.get();
  reap_lanes();
  if (number == 0 || lanes_.size() >= max_lanes) return nullptr;
  auto made = api_->make_lane(number);
  lane* raw = made.get();
  lanes_[number] = std::move(made);
  raw->thread = std::thread([this, raw] { lane_main(*raw); });
  return raw;
}

/// What the frame at hand asks. True: `own` goes on leading; false: the turn is with somebody else, or all is
/// over.
bool session_core::deliver(lane* own) {
  switch (at_hand_.header.kind) {
    case wire::frame_kind::goodbye:
      return end(true, "goodbye"), false;
    case wire::frame_kind::callback_done:
      if (api_->answered(at_hand_.header.ticket, at_hand_.payload)) return true;
      return end(false, "protocol error: an answer to no callback"), false;
    case wire::frame_kind::post:
      // By whoever reads: an answer that comes behind it must find it done.
      if (api_->execute_ahead(at_hand_)) return true;
      break;
    case wire::frame_kind::call:
    case wire::frame_kind::lane_end:
      break;
    default:
      return end(false, "protocol error: a frame that only servers send"), false;
  }
  if (at_hand_.header.kind == wire::frame_kind::lane_end && !lanes_.contains(at_hand_.header.lane))
    return true;
  lane* target = find_lane(at_hand_.header.lane);
  if (!target) return end(false, "protocol error: lane " + std::to_string(at_hand_.header.lane)), false;
  if (target != own) {
    if (!target->answered.load())
      return end(false, "protocol error: a request of a thread that waits for a reply"), false;
    if (!turn_.await_idle(*target)) return false;
    // Handing over the turn costs more than most calls do.
    if (own && api_->any_thread_may(at_hand_)) return carry_out(*own, *target, at_hand_);
  }
  std::swap(target->inbox, at_hand_);
  target->has_frame = true;
  if (target == own) return true;
  turn_.pass(*target);
  return false;
}

/// Reads and delivers until the turn goes elsewhere. `own` is null for the stand-by.
void session_core::lead(lane* own) {
  while (!turn_.ended()) {
    if (own && own->has_frame) {
      if (!execute(*own)) return;
      if (own->finished) return turn_.release(standby_);
      continue;
    }
    if (wants_to_leave()) {
      if (own) return turn_.release(standby_);
      return;
    }
    if (!read_frame()) {
      if (contender* wants = turn_.wanted_by()) return turn_.pass(*wants);
      continue;
    }
    pace_.read(at_hand_.header.kind != wire::frame_kind::post, [] { return reading_pace::clock::now(); });
    if (lanes_.size() > 1 && put_aside(own)) {
      if (own && own->stepped_aside) return;
      continue;
    }
    if (!deliver(own)) return;
  }
}

void session_core::lane_main(lane& own) {
  while (!own.finished) {
    const turn::awaited what = turn_.await(own);
    if (what == turn::awaited::end) break;
    if (what == turn::awaited::called) {
      serve_side(own);
      continue;
    }
    // The stand-by may have left a launch here and then passed the turn on, which this lane had wanted back:
    // a lane that leads makes no launches of its own, and would wait for itself.
    if (own.side.front()) serve_side(own);
    lead(&own);
    if (std::exchange(own.stepped_aside, false)) {
      serve_side(own);
      continue;
    }
    if (own.finished || turn_.ended()) break;
    bool interrupt = false;
    if (own.gave_up_turn && !wants_to_leave()) turn_.reclaim(own, standby_, interrupt);
    if (interrupt) connection_.interrupt();
  }
  own.gone.store(true, std::memory_order_release);
}

/// A locked session's requests wait here. False: it ended meanwhile.
bool session_core::may_begin() {
  if (!request_.held_by_page || !request_.activity) return true;
  activity_page* page = request_.activity;
  while (true) {
    page->busy.fetch_add(1);
    if (page->held.load() == 0) return true;
    page->busy.fetch_sub(1);
    if (turn_.ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void session_core::request_over() {
  api_->request_over();
  if (request_.held_by_page && request_.activity) request_.activity->busy.fetch_sub(1);
}

/// Runs the lane's frame. True: the turn is still ours.
bool session_core::execute(lane& own) {
  own.has_frame = false;
  if (own.inbox.header.kind == wire::frame_kind::lane_end) return own.finished = true;
  return carry_out(own, own, own.inbox);
}

/// What `asking` sent, on the thread of `own`. True: the turn is still ours.
bool session_core::carry_out(lane& own, lane& asking, frame& request) {
  own.gave_up_turn = false;
  const wire::frame_header& header = request.header;
  asking.answered.store(header.kind == wire::frame_kind::post);
  if (!may_begin()) return true;
  own.reply.assign(sizeof(std::int32_t), std::byte{0});
  own.before_reply.clear();
  wire::writer reply(own.reply);
  std::array<std::byte, scratch_size> first;
  std::pmr::monotonic_buffer_resource scratch(first.data(), first.size());
  request_at_hand at_hand{*this, own, request, header, wire::reader(request.payload), reply, scratch};
  executing_.store(true);
  const bool entered = late_.enter(api_->objects());
  if (!entered) end(false, "protocol error: the handle of a load is in use");
  const outcome what = entered ? api_->carry_out(at_hand) : outcome::malformed();
  const bool kept = !own.gave_up_turn;
  if (what.well_formed) {
    executed_.store(header.ticket, std::memory_order_relaxed);
    api_->answer(own, asking, header, what);
  } else {
    end(false, "protocol error: malformed request " + std::to_string(header.opcode));
  }
  if (kept) executing_.store(false);
  request_over();
  return kept;
}

void session_core::send_reply(lane& own, lane& asking, const wire::frame_header& request) {
  asking.answered.store(true);  // partner: deliver(), which may see the client's next request at once
  send_behind(own.before_reply, wire::reply_to(request), own.reply, {});
}

}  // namespace outboard::backend
