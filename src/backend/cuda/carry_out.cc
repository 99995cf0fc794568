// How a CUDA session carries out a request and answers it: with the turn, ahead of what has it, or beside.
#include "backend/cuda/any_thread.hh"
#include "backend/cuda/launch_decoding.hh"
#include "backend/cuda/session.hh"
#include "backend/worker/device_output.hh"

namespace outboard::backend {
namespace {

/// May a client conclude from the reply that kernels have ended? (A look at what they printed is system
/// calls.)
bool may_tell_of_the_end(const api::function_info* function) {
  if (!function) return true;  // a service
  const api::description& about = function->about;
  if (about.waits || about.deferred || about.fence || about.destroys != api::no_parameter) return true;
  return about.object == api::object_change::times_events;
}

bool is_update(const wire::frame_header& h) {
  return h.kind == wire::frame_kind::post &&
         h.opcode == static_cast<std::uint32_t>(marshal::service::memory_update);
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

outcome cuda_session::carry_out(request_at_hand& request) {
  device::request_under_way = request.header.ticket;
  const handler handle = find_handler(request.header.opcode);
  if (!handle) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  auto& own = static_cast<cuda_lane&>(request.own);
  call c(*this, request);
  c.refused = enter_context(own, request.header.context);
  if (const auto owner = owners_.find(request.header.context); owner != owners_.end()) [[unlikely]]
    request.asked.header.context = owner->second;
  if (request.header.kind == wire::frame_kind::call) core_.expect_send();
  outcome what = handle(c);
  if (!own.gave_up_turn) c.account_for_work();
  what.keeps_outputs = c.keep_outputs_on_error;
  return what;
}

CUresult cuda_session::replay(cuda_lane& own, const wire::frame_header& header,
                              std::vector<std::byte> payload) {
  const handler handle = find_handler(header.opcode);
  // Records hold requests that make things: never ones that wait, nor other records.
  const api::function_info* function = api::find_function(header.opcode);
  if (!handle || !function || function->about.waits) return CUDA_ERROR_INVALID_VALUE;
  frame made{header, std::move(payload)};
  std::vector<std::byte> outputs(sizeof(std::int32_t));
  wire::writer reply(outputs);
  std::pmr::monotonic_buffer_resource scratch;
  request_at_hand request{core_, own, made, made.header, wire::reader(made.payload), reply, scratch};
  call c(*this, request);
  c.refused = enter_context(own, header.context);
  own.replaying = true;
  const outcome what = handle(c);
  own.replaying = false;
  return what.well_formed ? static_cast<CUresult>(what.code) : CUDA_ERROR_INVALID_VALUE;
}

/// Nobody waits for the answer to a post: of an error the client hears by a notice or by its next call that
/// may carry it. A post cannot wait for the dump of a fault: its client may be sending; the next call in that
/// context says the same.
void cuda_session::post_over(cuda_lane& asking, std::uint64_t context, CUresult code) {
  if (is_sticky(code)) return tell_sticky(context, code, true);
  if (code != CUDA_SUCCESS && asking.deferred == 0) asking.deferred = code;
}

void cuda_session::answer(lane& at, lane& from, const wire::frame_header& request, const outcome& what) {
  auto& own = static_cast<cuda_lane&>(at);
  auto& asking = static_cast<cuda_lane&>(from);
  auto code = static_cast<CUresult>(what.code);
  if (request.kind == wire::frame_kind::post) return post_over(asking, request.context, code);
  // The dump of a fault is on the client's side before the client hears of the fault.
  if (is_sticky(code)) tell_sticky(request.context, code, false);
  const api::function_info* function = api::find_function(request.opcode);
  copies_out::departure finished;  // nothing else that is sent overtakes these bytes
  // A free waits for the device, too: what has come is in its place then.
  if (function && (function->about.deferred || function->about.waits) && !copies_.empty())
    finished = send_finished(own);
  if (function && function->about.deferred && code == CUDA_SUCCESS)
    code = static_cast<CUresult>(std::exchange(asking.deferred, 0));
  const auto number = static_cast<std::int32_t>(code);
  std::memcpy(own.reply.data(), &number, sizeof number);
  if (what.code != 0 && !what.keeps_outputs) own.reply.resize(sizeof number);
  const device_output* const output = core_.output();
  const bool looks = output && (unseen_.possible() || what.code != 0 || output->kept());
  if (looks && may_tell_of_the_end(function)) core_.send_output();
  unseen_.waited(std::exchange(own.waited_for, unseen_output::unknown));
  core_.send_reply(own, asking, request);
}

/// The bytes of copies that have ended; small ones leave with the reply that follows.
copies_out::departure cuda_session::send_finished(cuda_lane& own) {
  return copies_.flush_with(
      [&](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte> bytes) {
        core_.send_data_with_reply(own, {ticket, offset}, bytes);
      });
}

/// A request inside the driver may wait for a stream that waits for the client: for its answer, or for a word
/// that it writes in memory of both sides.
session_api::ahead cuda_session::reads_ahead() const {
  if (host_.waiting()) return ahead::answers;
  return mirrors_.in_use() ? ahead::words : ahead::nothing;
}

/// Memory that both sides see is the same memory: neither what the client has written there nor its look at
/// what kernels have has a place among the requests of its lane, but for the time at which it was sent.
/// False: not such a request, or one that needs the driver.
bool cuda_session::execute_ahead(const frame& f) {
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
  core_.send(wire::reply_to(header), payload, changes);
  return true;
}

bool cuda_session::any_thread_may(const frame& f) const {
  return backend::any_thread_may(f.header, f.payload);
}

known_stream cuda_session::stream_aside(const frame& f) {
  const std::uint64_t stream = lone_launch_stream(f.header, f.payload);
  if (stream == 0 || captures_.any() || host_.waiting() || !owners_.empty()) return {};
  CUstream native = nullptr;
  if (objects_.resolve_stream(stream, native) != CUDA_SUCCESS) return {};
  return {stream, native};
}

void cuda_session::goes_aside(const frame& f, const known_stream& stream) {
  work_.on(f.header.context, static_cast<CUstream>(stream.native));
  unseen_.launched(f.header.context);
}

bool cuda_session::launch_aside(lane& at, const frame& f) {
  auto& own = static_cast<cuda_lane&>(at);
  wire::reader body(f.payload);
  launch_place where;
  const auto code = make_launch(driver_, objects_, body, enter_context(own, f.header.context), where);
  if (!code) return false;
  if (*code == CUDA_SUCCESS) uses_.of_kernel(objects_, where.kernel, f.header);
  post_over(own, f.header.context, *code);
  return true;
}

CUresult cuda_session::enter_context(cuda_lane& own, std::uint64_t context) {
  if (context == 0) return CUDA_SUCCESS;
  const std::uint64_t epoch = context_epoch_.load(std::memory_order_relaxed);
  if (own.context == context && own.context_epoch == epoch) return CUDA_SUCCESS;
  CUcontext native = nullptr;
  if (const CUresult code = objects_.resolve(context, native); code != CUDA_SUCCESS) {
    return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_CONTEXT : code;
  }
  const CUresult code = driver_.cuCtxSetCurrent(native);
  if (code == CUDA_SUCCESS) own.context = context, own.context_epoch = epoch;
  return code;
}

}  // namespace outboard::backend
