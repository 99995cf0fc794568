#include "backend/session/side_launches.hh"

#include "backend/session/session_core.hh"
#include "base/cores.hh"
#include "transport/spin.hh"

namespace outboard::backend {
namespace {

/// Launches take microseconds; where the driver has no room they take until the device has made some.
constexpr int looks_before_sleeping = 20'000;

/// Whoever is waited for may need this core.
void pause_between_looks() {
  static const bool scarce = usable_cores() <= 2;
  if (scarce) {
    std::this_thread::yield();
  } else {
    transport::spin_pause();
  }
}

}  // namespace

/// The lane whose own thread may make the launch at hand beside others; null: it needs the turn.
lane* session_core::side_lane(std::uint64_t stream) {
  if (stream == 0) return nullptr;
  const auto found = lanes_.find(at_hand_.header.lane);
  if (found == lanes_.end() || !found->second->answered.load()) return nullptr;
  // Launches of two lanes in one stream keep their order.
  for (const lane* other : side_lanes_) {
    if (other != found->second.get() && other->side.names(stream)) return nullptr;
  }
  return found->second.get();
}

/// The launch at hand goes to the thread of its lane. False: it does not, and may be made here.
bool session_core::put_aside(lane* own) {
  if (at_hand_.header.kind == wire::frame_kind::goodbye) return false;
  const known_stream stream = api_->stream_aside(at_hand_);
  lane* const target = side_lane(stream.id);
  if (!target) return launches_.interrupted(), finish_side_launches(), false;
  const bool mixed = launches_.note(target->id, std::chrono::steady_clock::now());
  if (target == own) return step_aside(*own, stream);
  const bool worth = mixed || request_.lanes_always_aside;
  // Whoever stands by makes no launches: it calls the lane, which finds this one, and goes on reading.
  const bool called = !own && worth && call_aside(*target);
  if (give_aside(*target, stream, called)) return true;
  if (target->side.pending()) finish_side_launches();
  if (worth) (void)call_aside(*target);
  return false;
}

/// Leaves the launch at hand to the lane's own thread, which runs this, and the reading to the stand-by.
/// False: it goes on reading. True: the turn is gone.
bool session_core::step_aside(lane& own, const known_stream& stream) {
  if (!request_.lanes_always_aside && (!launches_.goes_on() || !may_serve_aside())) return false;
  own.side.make_room();
  own.side.wake();
  if (!give_aside(own, stream, true)) {
    (void)own.side.sleep();
    return false;
  }
  own.stepped_aside = true;
  turn_.step_aside(own, standby_);
  return true;
}

bool session_core::give_aside(lane& target, const known_stream& stream, bool called) {
  side_launches& side = target.side;
  if (!called && !side.pending() && !side.open()) return false;
  if (!side.remember(stream.id) || !wait_for([&] { return side.has_room(); })) return false;
  api_->goes_aside(at_hand_, stream);
  if (std::ranges::find(side_lanes_, &target) == side_lanes_.end()) side_lanes_.push_back(&target);
  if (!side.put(at_hand_)) turn_.call(target);
  return true;
}

/// With the turn, until other threads have come so far. False: the session has ended.
template <class Ready>
bool session_core::wait_for(Ready&& ready) {
  if (ready()) return true;
  executing_.store(true);  // what it waits for may need what the client sends
  for (int looks = 0; !ready() && !turn_.ended(); ++looks) {
    if (looks < looks_before_sleeping) {
      pause_between_looks();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  stop_reading_ahead();
  return !turn_.ended();
}

void session_core::finish_side_launches() {
  for (const lane* l : side_lanes_) (void)wait_for([l] { return !l->side.pending(); });
  side_lanes_.clear();
}

/// On the lane's own thread, without the turn: makes what is left for it, as long as something comes.
void session_core::serve_side(lane& own) {
  using clock = std::chrono::steady_clock;
  serving_lanes_.fetch_add(1, std::memory_order_relaxed);
  own.side.wake();
  const std::chrono::microseconds patience =
      request_.lanes_always_aside ? std::chrono::milliseconds(5) : side_launches::patience;
  auto until = clock::now() + patience;
  while (!turn_.ended()) {
    if (const frame* launch = own.side.front()) {
      make_side_launch(own, *launch);
      own.side.pop();
      until = clock::now() + patience;
    } else if (turn_.is_given_to(own) || clock::now() > until) {
      if (own.side.sleep()) break;
    } else {
      pause_between_looks();
    }
  }
  serving_lanes_.fetch_sub(1, std::memory_order_relaxed);
}

void session_core::make_side_launch(lane& own, const frame& launch) {
  if (!may_begin()) return;
  const bool well_formed = api_->launch_aside(own, launch);
  request_over();
  if (!well_formed) end(false, "protocol error: malformed request " + std::to_string(launch.header.opcode));
}

/// The lane's own thread had better make its launches. True: it does, or comes.
bool session_core::call_aside(lane& target) {
  if (target.side.open()) return true;
  if (!request_.lanes_always_aside && !may_serve_aside()) return false;
  target.side.make_room();
  turn_.call(target);
  return true;
}

/// Are there cores for one more?
bool session_core::may_serve_aside() const {
  static const int cores = usable_cores();
  return cores > 2 && serving_lanes_.load(std::memory_order_relaxed) < cores / 2;
}

}  // namespace outboard::backend
