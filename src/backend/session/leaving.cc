// How a session leaves its worker, and how the next one goes on with it (successor.hh): the turn is kept by
// the thread that stands by, lanes end what they have begun, the device does what it was asked, and what the
// client sends meanwhile waits where it is. Then all that there is goes over.
#include "backend/session/session_core.hh"
#include "backend/session/successor.hh"
#include "base/log.hh"
#include "wire/make_frame.hh"

namespace outboard::backend {

using namespace std::chrono_literals;

namespace {

/// Work that ends soon is worth more looks than one that lasts.
constexpr auto shortest_pause = 20us, longest_pause = 500us;

}  // namespace

/// Any thread: whoever reads stops, and the turn goes to the thread that stands by.
void session_core::wish_to_leave() {
  leaves_.store(true);
  connection_.interrupt();
  turn_.nudge(standby_);
}

/// The main thread, with the turn. True: the session is another worker's. False: it goes on here.
bool session_core::leave() {
  successor& next = *request_.next;
  const auto goes_on_here = [&] {
    leaves_.store(false);
    if (next.is_named()) leaves_.store(true);
    return false;
  };
  if (!next.is_named()) return goes_on_here();  // woken for a wish that has been seen to
  if (!next.is_prepared()) {
    const status could = may_be_shared();
    if (could.ok()) {
      next.prepare(api_->prepare());
    } else {
      next.prepare(could.error());
    }
    return goes_on_here();
  }
  const auto began = transport::clock::now();
  status could = settle(began + next.patience());
  if (turn_.ended()) return next.refuse("the session ended"), false;
  session_image image;
  send_mutex_.lock();  // what is sent now would be lost; for ever, if the connection is another worker's
  if (could.ok()) could = save(image);
  if (could.ok()) {
    could = next.give(image);
  } else {
    next.refuse(could.error().message);
  }
  if (could.ok()) return true;
  send_mutex_.unlock();
  const std::chrono::duration<double, std::milli> held_up = transport::clock::now() - began;
  log::info("the session stays with this worker: ", could.error().message, " (held up for ", held_up.count(),
            " ms)");
  return goes_on_here();
}

/// A request that waits for the client must get its answer. True: something came.
bool session_core::read_while_settling() {
  if (api_->reads_ahead() == session_api::ahead::nothing) return false;
  const std::lock_guard receiver(read_mutex_);
  if (!from_.has_buffered() && connection_.wait_readable(transport::deadline::min()) != transport::io::done)
    return false;
  std::size_t bytes = 0;
  return take_ahead(bytes);
}

void session_core::each_lane(const std::function<void(lane&)>& visit) {
  for (auto& [number, l] : lanes_) {
    if (!l->gone.load(std::memory_order_acquire)) visit(*l);
  }
}

bool session_core::lanes_are_idle() {
  return std::ranges::all_of(lanes_, [this](const auto& entry) {
    const lane& l = *entry.second;
    const bool rests = l.answered.load() && !l.side.pending() && turn_.is_idle(l);
    return l.gone.load(std::memory_order_acquire) || rests;
  });
}

status session_core::settle(transport::deadline until) {
  std::unique_ptr<session_api::settling> device;
  auto pause = std::chrono::duration_cast<std::chrono::microseconds>(shortest_pause);
  while (!turn_.ended()) {
    const bool idle = lanes_are_idle();
    if (idle && !device) {
      if (!late_.enter(api_->objects())) return failure("it has named two things alike");
      auto begun = api_->settle();
      if (!begun.ok()) return std::move(begun).error();
      device = std::move(*begun);
    }
    if (idle && device->is_over()) return side_lanes_.clear(), status();
    if (transport::clock::now() > until) {
      return failure(idle ? "the device is still at work for it" : "a request of it is still under way");
    }
    if (read_while_settling()) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::duration_cast<std::chrono::microseconds>(longest_pause));
  }
  return failure("the session ended");
}

/// Could another process go on with its connection?
status session_core::may_be_shared() {
  if (!data_.empty()) return failure("it has connections for data");
  const auto stream = connection_.share();
  return stream.ok() ? status() : stream.error();
}

status session_core::save(session_image& into) {
  if (!data_.empty()) return failure("it has connections for data");
  auto stream = connection_.share();
  if (!stream.ok()) return std::move(stream).error();
  core_part own;
  own.scheme = std::move(stream->scheme);
  for (unique_fd& descriptor : stream->descriptors) own.connection.push_back(into.add(std::move(descriptor)));
  own.positions = std::move(stream->positions);
  own.executed = executed_.load(std::memory_order_relaxed);
  const auto unread = [&own](std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    own.unread.insert(own.unread.end(), first, first + bytes.size());
  };
  for (const frame& f : ahead_) unread(wire::make_frame(f.header, f.payload));
  unread(from_.buffered());
  if (own.unread.size() > transport::buffered_receiver::capacity)
    return failure("its client has sent much that waits for other work");
  wire::writer w(into.bytes);
  marshal::put_body(w, own);
  return api_->save(into);
}

/// In place of welcome(): the client knows the session.
status session_core::go_on(session_image& image) {
  wire::reader from(image.bytes);
  const auto own = marshal::take_body<core_part>(from);
  if (!from.ok() || !from_.put_first(std::as_bytes(std::span(own.unread))))
    return failure("the session came malformed, or with more unread bytes than fit");
  executed_.store(own.executed, std::memory_order_relaxed);
  return api_->restore(image, from);
}

}  // namespace outboard::backend
