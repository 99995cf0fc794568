#include "backend/session/session_core.hh"

#include <array>
#include <cstring>

#include "backend/resuming/resumption.hh"
#include "backend/session/patience.hh"
#include "base/version.hh"
#include "transport/spin.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {

using namespace std::chrono_literals;

namespace {

/// How often the stand-by looks whether the client is still there while a lane holds the turn inside the
/// driver.
constexpr auto watch_interval = 100ms;

/// The same while the client is to run a host function: whoever is inside the driver may be waiting for it.
constexpr auto ahead_interval = 1ms;

/// A client that has closed may have left work that ends by itself (its last requests, the goodbye): it gets
/// this long.
constexpr auto gone_patience = 300ms;

/// Between the last release of a context, which runtimes make from a destructor, and the end of the process.
constexpr auto leaving_moment = 2ms;

/// A program may have thousands of threads; a peer may not have millions.
constexpr std::size_t max_lanes = 4096;

/// What may wait while a request that has the turn waits for a host function of the client. A client that has
/// sent more would wait indefinitely: its answer stands behind.
constexpr std::size_t most_ahead = 512u << 20;

/// A reader that naps looks so often in vain before it sleeps until it is woken: its client has stopped.
constexpr int most_naps = 8;

wire::frame_header reply_to(const wire::frame_header& request) {
  wire::frame_header out;
  out.kind = wire::frame_kind::reply;
  out.opcode = request.opcode;
  out.lane = request.lane;
  out.ticket = request.ticket;
  return out;
}

}  // namespace

session_core::session_core(session_request request)
    : request_(std::move(request)),
      api_(*request_.api),
      connection_(*request_.connection),
      from_(connection_),
      data_(
          api_.pieces(), [this](std::string why) { end(false, std::move(why)); },
          [this] { return api_.look_after_copies(); }) {}

session_core::~session_core() {
  if (request_.broker) request_.broker->end();
}

void session_core::welcome() {
  if (request_.hello.features & wire::feature_packed_pieces) data_.pack_pieces();
  auto content = api_.begin(*this);
  std::vector<std::byte> payload;
  wire::frame_header header;
  if (!content) {
    header.kind = wire::frame_kind::refusal;
    payload = wire::encode(wire::refusal{wire::refusal_reason::device, content.error().message});
    send(header, payload);
    return end(false, content.error().message);
  }
  wire::welcome w;
  w.features = request_.hello.features;
  w.session = request_.id;
  w.product = product;
  w.content = std::move(*content);
  header.kind = wire::frame_kind::welcome;
  payload = wire::encode(w, request_.seal);
  send(header, payload);
  if (request_.resuming) request_.resuming->welcomed();
}

session_end session_core::run() {
  welcome();
  connection_.set_spin(transport::default_spin());
  auto gone_since = std::chrono::steady_clock::time_point::max();
  while (!turn_.ended()) {
    const auto now = std::chrono::steady_clock::now();
    if (turn_.await_free(standby_, now + (api_.waits_for_client() ? ahead_interval : watch_interval))) {
      lead(nullptr);
    } else if (api_.waits_for_client()) {
      read_ahead();
    }
    if (!turn_.ended() && connection_.peer_gone()) {
      gone_since = std::min(gone_since, now);
      if (now - gone_since >= gone_patience) end(false, "the client is gone");
    }
  }
  const bool stuck = !join_lanes();
  api_.end(stuck);
  const std::lock_guard lock(end_mutex_);
  end_.stuck = stuck;
  return end_;
}

void session_core::end(bool orderly, std::string why) {
  {
    const std::lock_guard lock(end_mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_ = {orderly, std::move(why)};
  }
  connection_.shutdown();
  api_.stop_waiting();
  data_.end();
  turn_.end();
  turn_.wake(standby_);
}

/// False: a lane is still inside the driver after a little patience.
bool session_core::join_lanes() {
  for (auto& [number, l] : lanes_) turn_.wake(*l);
  const auto until = std::chrono::steady_clock::now() + request_.patience;
  for (auto& [number, l] : lanes_) {
    while (!l->gone.load(std::memory_order_acquire)) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(1ms);
    }
  }
  for (auto& [number, l] : lanes_) l->thread.join();
  return data_.join(until);
}

void session_core::reply(lane& own, lane& asking, const wire::frame_header& request) {
  asking.answered.store(true);  // partner: deliver(), which may see the client's next request at once
  send_behind(own.before_reply, reply_to(request), own.reply, {});
}

void session_core::send_with_reply(lane& own, wire::frame_header header, std::span<const std::byte> payload,
                                   std::span<const std::byte> bulk) {
  header.size = static_cast<std::uint32_t>(payload.size() + bulk.size());
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  for (const std::span<const std::byte> part : {std::span<const std::byte>(raw), payload, bulk})
    own.before_reply.insert(own.before_reply.end(), part.begin(), part.end());
}

void session_core::send_behind(std::span<const std::byte> before, wire::frame_header header,
                               std::span<const std::byte> payload, std::span<const std::byte> bulk) {
  header.size = static_cast<std::uint32_t>(payload.size() + bulk.size());
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const auto part = [](std::span<const std::byte> b) {
    return iovec{const_cast<std::byte*>(b.data()), b.size()};
  };
  const std::array parts{part(before), part(raw), part(payload), part(bulk)};
  const std::size_t first = before.empty() ? 1 : 0;
  const std::lock_guard lock(send_mutex_);
  // The reader notices a lost connection.
  (void)connection_.send(std::span(parts).subspan(first, (bulk.empty() ? 3 : 4) - first));
}

void session_core::send_descriptor(std::uint64_t ticket, int fd) {
  wire::frame_header header;
  header.kind = wire::frame_kind::descriptor;
  header.ticket = ticket;
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array parts{iovec{raw.data(), raw.size()}};
  const std::lock_guard lock(send_mutex_);
  // The reader notices a lost connection; a frame without its descriptor would leave the stream out of step.
  if (connection_.send(parts).status != transport::io::done) return;
  if (!connection_.send_descriptor(fd)) connection_.shutdown();
}

bool session_core::make_room() { return request_.broker && request_.broker->make_room(); }

void session_core::send_output() {
  if (!request_.output) return;
  request_.output->flush([this](int descriptor, std::string_view text) {
    send_output_bytes(static_cast<std::uint8_t>(descriptor), std::as_bytes(std::span(text)));
  });
}

void session_core::send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes) {
  wire::frame_header header;
  header.kind = wire::frame_kind::output;
  send(header, std::as_bytes(std::span(&what, 1)), bytes);
}

bool session_core::client_is_leaving() {
  const auto until = std::chrono::steady_clock::now() + leaving_moment;
  while (!connection_.peer_gone()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

std::unique_ptr<transport::connection> session_core::take_data_connection(const marshal::share_token& token) {
  if (!request_.broker || !request_.attach) return nullptr;
  auto kept = request_.broker->take_back(share_class::connection, token);
  if (!kept) return nullptr;
  auto link =
      request_.attach({kept->about.native.begin(), kept->about.native.end()}, std::move(kept->descriptor));
  if (!link.ok()) return nullptr;
  return request_.resuming ? request_.resuming->adopt(token, std::move(*link)) : std::move(*link);
}

std::optional<marshal::data_open_reply> session_core::open_data_connections(
    const marshal::data_open_body& body, std::uint64_t context) {
  marshal::data_open_reply reply;
  const std::uint64_t set = data_.begin_set();
  for (std::size_t i = 0; i < body.tokens.size(); ++i) {
    auto link = take_data_connection(body.tokens[i]);
    if (!link) return std::nullopt;
    if (i < body.inward) {
      if (!data_.add_inward(std::move(link), context, set)) return std::nullopt;
      continue;
    }
    const auto number =
        data_.add_outward(std::move(link), context, set,
                          body.later ? body.later + static_cast<std::uint32_t>(i) - body.inward : 0);
    if (!number) return std::nullopt;
    reply.outward.push_back(*number);
  }
  return reply;
}

std::chrono::microseconds session_core::patience() const { return spin_budget(!others_ask()); }

void session_core::give_up_turn(lane& own) {
  // A post comes before all that is asked after it: whoever asks next waits for it as the lane itself does.
  if (own.gave_up_turn || own.keeps_turn || own.inbox.header.kind == wire::frame_kind::post) return;
  own.gave_up_turn = true;
  stop_reading_ahead();
  turn_.release(standby_);
}

bool session_core::others_ask() const {
  int others = 0;
  for (auto at = lanes_.begin(); at != lanes_.end() && others < 2; ++at)
    others += !at->second->gone.load(std::memory_order_relaxed);
  return others > 1;
}

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
  while (executing_.load() && api_.waits_for_client() && bytes < most_ahead && !turn_.ended()) {
    frame next;
    if (!read_into(next)) break;
    if (next.header.kind == wire::frame_kind::callback_done) {
      if (!api_.client_answered(next.header.ticket, next.payload))
        end(false, "protocol error: an answer to no callback");
    } else if (!api_.serve_early(next)) {
      bytes += next.payload.size();
      ahead_.push_back(std::move(next));
    }
  }
  reading_ahead_.store(false);
}

bool session_core::read_into(frame& to) {
  std::array<std::byte, wire::header_size> raw;
  const transport::io got = from_.fill(raw, true);
  if (got == transport::io::interrupted) return false;
  if (got != transport::io::done) {
    const auto* const stream = transport::stream_of(connection_);
    std::string why = stream ? stream->why_ended() : "";
    if (why.empty())
      why = got == transport::io::closed ? "the client closed the connection" : "the connection broke";
    end(got == transport::io::closed, std::move(why));
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
    api_.forget_lane(l);
    return true;
  });
}

lane* session_core::find_lane(std::uint32_t number) {
  if (const auto found = lanes_.find(number); found != lanes_.end()) return found->second.get();
  reap_lanes();
  if (number == 0 || lanes_.size() >= max_lanes) return nullptr;
  auto made = api_.make_lane(number);
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
      if (api_.client_answered(at_hand_.header.ticket, at_hand_.payload)) return true;
      return end(false, "protocol error: an answer to no callback"), false;
    case wire::frame_kind::post:
      // By whoever reads: an answer that comes behind it must find it done.
      if (at_hand_.header.opcode == api_.watched().early_post && api_.serve_early(at_hand_)) return true;
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
    if (own && at_hand_.header.kind == wire::frame_kind::post &&
        api_.any_thread_may(at_hand_.header, at_hand_.payload))
      return carry_out(*own, *target, at_hand_);
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
    if (own.gave_up_turn) turn_.reclaim(own, standby_, interrupt);
    if (interrupt) connection_.interrupt();
  }
  own.gone.store(true, std::memory_order_release);
}

/// A locked session's requests wait here. False: it ended meanwhile.
bool session_core::may_begin() {
  activity_page* page = request_.activity;
  if (!page) return true;
  while (true) {
    page->busy.fetch_add(1);
    if (page->held.load() == 0) return true;
    page->busy.fetch_sub(1);
    if (turn_.ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void session_core::request_over() {
  if (request_.activity) request_.activity->busy.fetch_sub(1);
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
  const std::uint32_t opcode = request.header.opcode;
  asking.answered.store(request.header.kind == wire::frame_kind::post);
  if (!may_begin()) return true;
  own.reply.assign(sizeof(std::int32_t), std::byte{0});
  own.before_reply.clear();
  executing_.store(true);
  const bool well_formed = api_.carry_out(own, asking, request);
  const bool kept = !own.gave_up_turn;
  if (!well_formed) end(false, "protocol error: malformed request " + std::to_string(opcode));
  if (kept) executing_.store(false);
  request_over();
  return kept;
}

}  // namespace outboard::backend
