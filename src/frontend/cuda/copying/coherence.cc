#include "frontend/cuda/copying/coherence.hh"

#include <algorithm>
#include <utility>

#include "base/log.hh"
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/host_order.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/memory/live_memory.hh"
#include "frontend/memory/managed_blocks.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend::cuda {
namespace {

using api::left_work;

/// After which kernels, or copies and fills that read and write memory by address, may be at work.
bool begins_work(left_work left) {
  return left != left_work::none && left != left_work::preparations && left != left_work::order;
}

bool names_words(left_work left) {
  return left == left_work::waits_for_word || left == left_work::writes_word;
}

/// Begins work that may look at words of the host, or write them, before it is over.
bool may_look(left_work left) {
  return left == left_work::kernels || left == left_work::functions || left == left_work::graphs ||
         left == left_work::operations || names_words(left);
}

/// A stream that waits for another one's event comes behind its kernels. (Copies from the program's memory
/// to the device's own change nothing of both sides; those to managed memory are waited for. Those to
/// ordinary memory of the program read the device's only.)
bool brings_results(left_work left) {
  if (left == left_work::order) return true;
  return begins_work(left) && left != left_work::copies_in && left != left_work::copies_out;
}

/// The same where both sides have one memory, page-locked and shared: what is written there needs no fetch.
/// (Of the arena it counts what is kept twice, too: what is copied there is fetched with a wait.)
bool brings_shared_results(left_work left, const said_of_request& said) {
  program_memory& memory = process::instance().memory();
  if (said.target != 0)
    return said.order == work_order::in_stream &&
           (memory.arena().holds(said.target) || made_by_program(said.target));
  if (left == left_work::graphs || left == left_work::order) return true;
  return memory.host_memory_mapped() && brings_results(left);
}

/// Launches and fills may carry the error of an earlier one, but say nothing of what is complete.
bool learns_of_completion(const api::description& about) {
  switch (about.leaves) {
    case left_work::kernels:
    case left_work::functions:
    case left_work::graphs:
    case left_work::preparations:
    case left_work::fills:
      return false;
    default:
      return about.deferred || about.waits;
  }
}

work_flow flow_in(const lane& own, std::uint64_t stream, bool per_thread) {
  const std::uint64_t context = own.context_handle();
  if (stream == 2 || (stream == 0 && per_thread)) return {context, work_flow::of_lane(own.id)};
  if (stream <= 1) return {context, 0};
  // A stream of another context than the current one does its own context's work.
  const auto* const known = find_object<object>(reinterpret_cast<CUstream>(stream));
  return {known && known->context ? known->context : context, stream};
}

/// The flow of a request that begins work. Nothing: it is over when the call returns, or is no work yet.
std::optional<work_flow> flow_of(const lane& own, const api::function_info& asked,
                                 std::span<const std::byte> payload, const said_of_request& said) {
  if (any_capture_open() || said.order == work_order::waited_for) return std::nullopt;
  if (said.order == work_order::in_stream) return flow_in(own, said.stream, said.per_thread);
  wire::reader from(payload);
  const bool per_thread = api::per_thread(asked.name);
  const left_work left = asked.about.leaves;
  const bool of_words = names_words(left) || left == left_work::operations;
  if (of_words && payload.size() >= sizeof(std::uint64_t))
    return flow_in(own, from.get<std::uint64_t>(), per_thread);
  if (left != left_work::fills) return work_flow{own.context_handle(), work_flow::of_lane(own.id)};
  if (asked.about.settles || payload.size() < sizeof(std::uint64_t)) return flow_in(own, 0, per_thread);
  wire::reader last(payload.last(sizeof(std::uint64_t)));
  return flow_in(own, last.get<std::uint64_t>(), per_thread);
}

/// Which flow a wait or query has told of.
std::optional<work_flow> asked_flow(const lane& own, const api::function_info& asked,
                                    std::span<const std::byte> payload) {
  if (asked.about.over != api::over::stream) return std::nullopt;
  wire::reader from(payload);
  return flow_in(own, from.get<std::uint64_t>(), api::per_thread(asked.name));
}

/// Events say later what is complete.
void note_event(const lane& own, const api::function_info& asked, std::span<const std::byte> payload) {
  const bool ends = asked.about.object == api::object_change::ends_event;
  if (!ends && asked.about.object != api::object_change::records_event) return;
  managed_blocks& managed = process::instance().memory().managed();
  live_memory& live = process::instance().memory().live();
  wire::reader from(payload);
  const auto event = from.get<std::uint64_t>();
  if (ends) {
    if (managed.started()) managed.forget_event(event);
  } else if (managed.started() || live.any()) {
    const auto flow = flow_in(own, from.get<std::uint64_t>(), api::per_thread(asked.name));
    if (managed.started()) managed.recorded(event, flow);
    live.recorded(event, flow);
  }
}

CUresult show_all(lane& own, std::vector<std::uint64_t>& addresses) {
  std::sort(addresses.begin(), addresses.end());  // a table may name one block many times
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  for (const std::uint64_t address : addresses) {
    if (const CUresult code = show_pinned(own, address); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

/// Until nothing new turns up: memory that becomes visible may hold addresses of more.
CUresult send_changes(lane& own, bool to_kernels_alone) {
  process& p = process::instance();
  while (true) {
    if (const CUresult code =
            p.memory().mirrors().send(*p.server(), own, p.memory().live().any(), to_kernels_alone);
        code != CUDA_SUCCESS)
      return code;
    std::vector<std::uint64_t> noted;
    for (const std::uint64_t address : p.memory().mirrors().take_noted()) {
      const auto chunk = p.memory().arena().chunk_of(address);
      if (chunk && !chunk->shared && !p.memory().mirrors().find(address)) noted.push_back(address);
    }
    if (noted.empty()) return CUDA_SUCCESS;
    if (const CUresult code = show_all(own, noted); code != CUDA_SUCCESS) return code;
  }
}

}  // namespace

completion_mark take_mark() {
  process& p = process::instance();
  return {p.memory().mirrors().work_mark(), p.memory().managed().started() ? p.memory().managed().mark() : 0,
          p.memory().live().mark()};
}

void expect_results(lane& own) {
  process::instance().memory().mirrors().results_may_come();
  own.results_come = true;
}

void tell_left(lane& own) {
  process& p = process::instance();
  if (own.managed_work) p.memory().managed().left(std::exchange(own.managed_work, 0));
  // Once more: a call that was answered meanwhile may have taken this work for a part of what is over.
  const std::uint64_t context = std::exchange(own.mirrors_work, 0);
  if (context && p.objects().find_context(context)) p.memory().mirrors().work_begins(context);
  if (std::exchange(own.results_come, false)) p.memory().mirrors().results_may_come();
  if (const auto flow = std::exchange(own.live_work, {}))
    p.memory().live().begins(*p.server(), *flow, std::exchange(own.awaits_word, false));
}

work_questions questions() {
  const auto about_stream = [](lane& own, const work_flow& flow) {
    std::vector<std::byte> reply;
    return call_apart(own, api::opcode::cuStreamQuery, flow.context, marshal::handle_body{flow.stream},
                      reply);
  };
  const auto wait = [](lane& own, std::uint64_t context) {
    std::vector<std::byte> reply;
    return process::instance().server()->call(
        {static_cast<std::uint32_t>(api::opcode::cuCtxSynchronize), own.id, context, {}, {}}, reply);
  };
  return {about_stream, wait, [] { return !any_capture_open(); }};
}

CUresult show_block(lane& own, std::uint64_t address, std::uint64_t size, marshal::host_block kind,
                    std::uint64_t& device_address, std::byte* view, bool to_kernels) {
  process& p = process::instance();
  mirror made;
  made.base = address;
  made.size = size;
  made.kernels = to_kernels;
  const bool words = kind == marshal::host_block::pinned || kind == marshal::host_block::registered;
  made.live = words && p.exchanges_words();
  made.context = own.context_handle();
  made.memory = view;  // variables are small: no file, all of it is looked at
  std::vector<std::byte> reply;
  const CUresult code = call_apart<api::opcode::cuMemHostGetDevicePointer_v2>(
      own, made.context, marshal::host_map_body{address, size, 0, kind}, reply);
  if (code != CUDA_SUCCESS) return code;
  wire::reader from(reply);
  made.device_address = marshal::take_body<marshal::address_reply>(from).address;
  if (!from.finished()) return malformed_reply(api::opcode::cuMemHostGetDevicePointer_v2);
  if (!p.memory().mirrors().add(made)) return CUDA_ERROR_OUT_OF_MEMORY;
  device_address = made.device_address;
  return CUDA_SUCCESS;
}

CUresult show_pinned(lane& own, std::uint64_t address, bool to_kernels) {
  process& p = process::instance();
  const auto chunk = p.memory().arena().chunk_of(address);
  // Freed, or never given out: a number that looks like an address. What is shared is seen anyway.
  if (!chunk || chunk->shared) return CUDA_SUCCESS;
  // Bytes of a copy that was asked for before the server had the block land here alone.
  const auto* const first = reinterpret_cast<const std::byte*>(chunk->base);
  if (const CUresult code = settle(own, first, chunk->size); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(p.memory().showing());
  if (const auto known = p.memory().mirrors().find(chunk->base)) {
    if (to_kernels && !known->kernels) p.memory().mirrors().show_to_kernels(chunk->base);
    return CUDA_SUCCESS;
  }
  std::uint64_t there = 0;
  const CUresult code =
      show_block(own, chunk->base, chunk->size, marshal::host_block::pinned, there, nullptr, to_kernels);
  if (code == CUDA_ERROR_MAP_FAILED) {
    log::error("the server cannot have page-locked memory at the address of ours: kernels cannot use it");
  }
  return code;
}

void hide_block(lane& own, std::uint64_t address) {
  process& p = process::instance();
  const auto gone = p.memory().mirrors().remove(address);
  std::vector<std::byte> reply;
  if (gone)
    (void)call_apart<api::opcode::cuMemFreeHost>(own, gone->context, marshal::handle_body{address}, reply);
}

void unshare(lane& own, std::uint64_t address) {
  std::vector<std::byte> reply;
  (void)call_apart<api::opcode::cuMemFreeHost>(own, own.context_handle(), marshal::handle_body{address},
                                               reply);
}

CUresult before_request(lane& own, api::opcode code, std::span<const std::byte> payload,
                        std::span<const std::byte> bulk, const said_of_request& said) {
  process& p = process::instance();
  std::vector<std::uint64_t> noted;
  if (p.memory().arena().has_private()) {
    // Fields of a request lie at any offset; bytes of the program's at aligned ones.
    const marshal::address_watch watch{p.memory().arena().base(), p.memory().arena().size(), &noted};
    if (!said.names_copies_alone) marshal::find_addresses(payload, 1, watch);
    marshal::find_addresses(bulk, sizeof(std::uint64_t), watch);
    if (const CUresult shown = show_all(own, noted); shown != CUDA_SUCCESS) return shown;
  }
  if ((p.memory().arena().in_use() || p.memory().virtual_memory().has_host()) &&
      brings_shared_results(api::about(code).leaves, said))
    expect_results(own);
  if (!p.memory().mirrors().any()) return CUDA_SUCCESS;
  const api::function_info* about = api::find_function(static_cast<std::uint32_t>(code));
  if (!about) return CUDA_SUCCESS;
  note_event(own, *about, payload);
  const left_work left = about->about.leaves;
  const bool works = begins_work(left), only_reads = left == left_work::copies_out;
  if (brings_results(left)) expect_results(own);
  if (!works && !learns_of_completion(about->about)) return CUDA_SUCCESS;
  const auto flow = works && !only_reads ? flow_of(own, *about, payload, said) : std::nullopt;
  if (!bulk.empty() && p.memory().managed().started()) p.memory().managed().uploaded(bulk);
  if (flow && p.memory().managed().started()) {
    own.managed_work = p.memory().managed().begin(*flow, payload, left == left_work::graphs);
  }
  // A wait or a question may be for what a kernel does that looks at the host's writes.
  const bool for_kernels = !works || left == left_work::kernels;
  do {
    if (const CUresult sent = send_changes(own, for_kernels); sent != CUDA_SUCCESS)
      return after_leaving(own), sent;
  } while (p.memory().managed().started() &&
           p.memory().managed().reach(flow.value_or(work_flow{}), own.managed_work));
  // Kernels touch what they know, and nothing else that both sides have.
  const bool touches = left != left_work::kernels || p.memory().mirrors().any_for_kernels();
  if (works && touches && !only_reads) {
    own.mirrors_work = flow ? flow->context : own.context_handle();
    p.memory().mirrors().work_begins(own.mirrors_work);
  }
  if (flow && may_look(left) && p.memory().mirrors().any_live()) {
    if (names_words(left) && payload.size() >= 2 * sizeof(std::uint64_t)) {
      wire::reader from(payload.subspan(sizeof(std::uint64_t)));
      p.memory().mirrors().name_word(from.get<std::uint64_t>());
    }
    own.live_work = flow;
    own.awaits_word = left == left_work::waits_for_word || left == left_work::operations;
  }
  return CUDA_SUCCESS;
}

CUresult after_call(lane& own, api::opcode code, std::uint64_t context, std::span<const std::byte> payload,
                    const completion_mark& mark) {
  process& p = process::instance();
  if (!p.memory().mirrors().any() || !p.memory().mirrors().fetch_needed()) return CUDA_SUCCESS;
  const api::function_info* about = api::find_function(static_cast<std::uint32_t>(code));
  if (!about || !learns_of_completion(about->about)) return CUDA_SUCCESS;
  // A free waits for all work of the context, too. (A green one's wait is for a part of what its owner has at
  // work, which is known by the owner: that tells of nothing.)
  const bool of_context = about->about.over == api::over::context;
  const bool of_event = about->about.over == api::over::event;
  const std::uint64_t event = of_event ? wire::reader(payload).get<std::uint64_t>() : 0;
  const auto flow = asked_flow(own, *about, payload);
  if (of_context) p.memory().live().context_over(context, mark.live);
  if (of_event) p.memory().live().event_over(event);
  if (flow) p.memory().live().over(*flow, mark.live);
  const CUresult fetched = p.memory().mirrors().fetch(*p.server(), own, p.memory().live().any());
  if (fetched != CUDA_SUCCESS) return fetched;
  if (of_context) p.memory().mirrors().work_is_done(context, mark.mirrors);
  if (!mark.managed) return CUDA_SUCCESS;
  if (of_context) p.memory().managed().complete_context(context, mark.managed);
  if (of_event) p.memory().managed().complete_event(event);
  if (flow) p.memory().managed().complete(*flow, mark.managed);
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
