// How frames become executed requests: the leader reads, hands frames to their lanes, lanes execute and
// answer.
#include <array>

#include "backend/cuda/any_thread.hh"
#include "backend/session/session_core.hh"
#include "base/log.hh"
#include "transport/resumable/stream.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {
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

/// May a client conclude from the reply that kernels have ended? (A look at what they printed is system
/// calls.)
bool may_tell_of_the_end(const api::function_info* function, const wire::frame_header& request) {
  if (!function) return true;  // a service
  const api::description& about = function->about;
  if (about.waits || about.deferred || about.fence || about.destroys != api::no_parameter) return true;
  const auto code = static_cast<api::opcode>(request.opcode);
  return code == api::opcode::cuEventElapsedTime || code == api::opcode::cuEventElapsedTime_v2;
}

bool is_update(const wire::frame_header& h) {
  return h.kind == wire::frame_kind::post &&
         h.opcode == static_cast<std::uint32_t>(marshal::service::memory_update);
}

wire::frame_header reply_to(const wire::frame_header& request) {
  wire::frame_header out;
  out.kind = wire::frame_kind::reply;
  out.opcode = request.opcode;
  out.lane = request.lane;
  out.ticket = request.ticket;
  return out;
}

}  // namespace

bool is_sticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
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

/// A request inside the driver may wait for a stream that waits for the client: for its answer, or for a word
/// that it writes in memory of both sides.
bool session_core::reads_ahead() const { return host_.waiting() || mirrors_.in_use(); }

/// A request inside the driver holds the turn, and perhaps waits for a stream that waits for a host function:
/// the client's answer must get through, and what the client does before and after the function. Everything
/// else that comes waits for the turn.
void session_core::read_ahead() {
  if (!executing_.load()) return;  // whoever has the turn reads by itself
  const std::lock_guard receiver(read_mutex_);
  reading_ahead_.store(true);  // partner: read_frame() and stop_reading_ahead() look at it after executing_
  std::size_t bytes = 0;
  for (const frame& f : ahead_) bytes += f.payload.size();
  while (executing_.load() && reads_ahead() && bytes < most_ahead && !turn_.ended()) {
    frame next;
    if (!read_into(next)) break;
    if (next.header.kind == wire::frame_kind::callback_done) {
      if (!host_.answered(next.header.ticket, next.payload))
        end(false, "protocol error: an answer to no callback");
    } else if (!execute_ahead(next)) {
      bytes += next.payload.size();
      ahead_.push_back(std::move(next));
    }
  }
  reading_ahead_.store(false);
}

/// Memory that both sides see is the same memory: neither what the client has written there nor its look at
/// what kernels have has a place among the requests of its lane, but for the time at which it was sent.
/// False: not such a request, or one that needs the driver.
bool session_core::execute_ahead(const frame& f) {
  if (!mirrors_.touchable()) return false;
  const wire::frame_header& header = f.header;
  if (is_update(header)) return mirrors_.store(f.payload) == CUDA_SUCCESS;
  const auto asked = static_cast<marshal::service>(header.opcode);
  using enum marshal::service;
  const bool looks = asked == memory_fetch || asked == memory_fetch_live || asked == memory_watch;
  if (header.kind != wire::frame_kind::call || !looks) return false;
  wire::reader from(f.payload);
  marshal::memory_question question;
  std::vector<std::byte> changes, payload(sizeof(std::int32_t));
  if (!marshal::take_question(from, asked, question)) return false;
  if (question.watch && !copies_.empty()) {
    question.at = {};  // a word may stand for bytes of a copy: whether that is complete only the driver knows
  } else if (mirrors_.answer(question, 0, changes) != CUDA_SUCCESS) {
    return false;
  }
  wire::writer reply(payload);
  marshal::put_body(reply, question.at);
  send(reply_to(header), payload, changes);
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
    uploaded_ -= l.upload.size();
    return true;
  });
}

lane* session_core::find_lane(std::uint32_t number) {
  if (const auto found = lanes_.find(number); found != lanes_.end()) return found->second.get();
  reap_lanes();
  if (number == 0 || lanes_.size() >= max_lanes) return nullptr;
  auto made = std::make_unique<lane>(number);
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
      if (host_.answered(at_hand_.header.ticket, at_hand_.payload)) return true;
      return end(false, "protocol error: an answer to no callback"), false;
    case wire::frame_kind::post:
      // By whoever reads: an answer that comes behind it must find it done.
      if (is_update(at_hand_.header) && execute_ahead(at_hand_)) return true;
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
    if (own && any_thread_may(at_hand_.header, at_hand_.payload)) return carry_out(*own, *target, at_hand_);
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
  quota_.settle();
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
  if (any_late_.load(std::memory_order_acquire)) enter_late_objects();
  own.reply.assign(sizeof(std::int32_t), std::byte{0});
  own.before_reply.clear();
  wire::writer reply(own.reply);
  std::array<std::byte, scratch_size> first;
  std::pmr::monotonic_buffer_resource scratch(first.data(), first.size());
  call c{*this, own, header, wire::reader(request.payload), reply, scratch};
  outcome what;
  executing_.store(true);
  device::request_under_way = header.ticket;
  if (request_.api) {
    const handler handle = request_.api->find_handler(header.opcode);
    what = handle ? handle(c) : outcome::answer_code(request_.api->unknown_function());
  } else if (const handler handle = find_handler(header.opcode)) {
    c.refused = enter_context(own, header.context);
    if (const auto owner = owners_.find(header.context); owner != owners_.end()) [[unlikely]]
      request.header.context = owner->second;
    if (header.kind == wire::frame_kind::call) connection_.expect_send();
    what = handle(c);
    if (!own.gave_up_turn) c.account_for_work();
  } else {
    what = outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  }
  const bool kept = !own.gave_up_turn;
  if (what.well_formed) {
    executed_.store(header.ticket, std::memory_order_relaxed);
    answer(own, asking, header, what, c.keep_outputs_on_error);
  } else {
    end(false, "protocol error: malformed request " + std::to_string(header.opcode));
  }
  if (kept) executing_.store(false);
  request_over();
  return kept;
}

CUresult session_core::replay(lane& own, const wire::frame_header& header, std::vector<std::byte> payload) {
  const handler handle = find_handler(header.opcode);
  // Records hold requests that make things: never ones that wait, nor other records.
  const api::function_info* function = api::find_function(header.opcode);
  if (!handle || !function || function->about.waits) return CUDA_ERROR_INVALID_VALUE;
  frame outer = std::exchange(own.inbox, frame{header, std::move(payload)});
  std::vector<std::byte> outputs(sizeof(std::int32_t));
  wire::writer reply(outputs);
  std::pmr::monotonic_buffer_resource scratch;
  call c{*this, own, own.inbox.header, wire::reader(own.inbox.payload), reply, scratch};
  c.refused = enter_context(own, header.context);
  own.replaying = true;
  const outcome what = handle(c);
  own.replaying = false;
  own.inbox = std::move(outer);
  return what.well_formed ? static_cast<CUresult>(what.code) : CUDA_ERROR_INVALID_VALUE;
}

void session_core::answer(lane& own, lane& asking, const wire::frame_header& header, outcome what,
                          bool keep_outputs) {
  if (request_.api) return answer_by_api(own, asking, header, what);
  auto code = static_cast<CUresult>(what.code);
  // The dump of a fault is on the client's side before the client hears of the fault. A post cannot wait for
  // it: its client may be sending; the next call in that context says the same.
  if (is_sticky(code)) tell_sticky(header.context, code, header.kind == wire::frame_kind::post);
  if (header.kind == wire::frame_kind::post) {
    if (code != CUDA_SUCCESS && !is_sticky(code) && asking.deferred == 0) asking.deferred = code;
    return;
  }
  const api::function_info* function = api::find_function(header.opcode);
  copies_out::departure finished;  // nothing else that is sent overtakes these bytes
  // A free waits for the device, too: what has come is in its place then.
  if (function && (function->about.deferred || function->about.waits) && !copies_.empty()) {
    finished =
        copies_.flush_with([&](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte> b) {
          const std::array<std::uint64_t, 2> prefix{ticket, offset};
          wire::frame_header data;
          data.kind = wire::frame_kind::data;
          send_with_reply(own, data, std::as_bytes(std::span(prefix)), b);
        });
  }
  if (function && function->about.deferred && code == CUDA_SUCCESS)
    code = static_cast<CUresult>(std::exchange(asking.deferred, 0));
  const auto number = static_cast<std::int32_t>(code);
  std::memcpy(own.reply.data(), &number, sizeof number);
  if (what.code != 0 && !keep_outputs) own.reply.resize(sizeof number);
  const bool looks = request_.output && (unseen_.possible() || what.code != 0 || request_.output->kept());
  if (looks && may_tell_of_the_end(function, header)) send_output();
  unseen_.waited(std::exchange(own.waited_for, unseen_output::unknown));
  asking.answered.store(true);  // partner: deliver(), which may see the client's next request at once
  send_behind(own.before_reply, reply_to(header), own.reply, {});
}

void session_core::tell_failure(const std::string& line) {
  log::info(line);
  if (request_.output) request_.output->tell(line);
}

/// What a kernel printed is on the client's side before the reply that says that it has ended.
void session_core::send_output() {
  if (!request_.output) return;
  request_.output->flush([this](std::uint8_t what, std::string_view text) {
    if (what != wire::output_log || (request_.hello.features & wire::feature_failure_lines) != 0)
      send_output_bytes(what, std::as_bytes(std::span(text)));
  });
}

void session_core::send_output_bytes(std::uint8_t what, std::span<const std::byte> bytes) {
  wire::frame_header header;
  header.kind = wire::frame_kind::output;
  send(header, std::as_bytes(std::span(&what, 1)), bytes);
}

/// Bytes that a graph's copy left in its block, for the client's box; a piece never crosses a row.
void session_core::send_block(const boxed_bytes& b) {
  constexpr std::uint64_t piece = 4u << 20;
  for (std::uint64_t at = 0; at < b.size;) {
    const std::uint64_t n = std::min({piece, b.row - at % b.row, b.size - at});
    const std::array<std::uint64_t, 2> prefix{b.id | wire::graph_copy, at};
    wire::frame_header header;
    header.kind = wire::frame_kind::data;
    send(header, std::as_bytes(std::span(prefix)), std::span(b.data + at, n));
    at += n;
  }
}

void session_core::set_owner(std::uint64_t context, std::uint64_t owner) {
  if (owner) {
    owners_[context] = owner;
  } else {
    owners_.erase(context);
  }
}

void session_core::forget_sticky(std::uint64_t context) {
  const std::lock_guard lock(sticky_mutex_);
  sticky_told_.erase(context);
}

void session_core::tell_sticky(std::uint64_t context, CUresult code, bool by_post) {
  {
    const std::lock_guard lock(sticky_mutex_);
    if (sticky_told_.contains(context)) return;
  }
  if (dumps_.expected()) {
    if (by_post) return;
    dumps_.finish();
  }
  {
    const std::lock_guard lock(sticky_mutex_);
    if (!sticky_told_.emplace(context, code).second) return;
  }
  wire::frame_header header;
  header.kind = wire::frame_kind::notice;
  header.context = context;
  const auto number = static_cast<std::int32_t>(code);
  send(header, std::as_bytes(std::span(&number, 1)));
}

}  // namespace outboard::backend
