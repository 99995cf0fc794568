#include "frontend/cuda/memory/coherence.hh"

#include <algorithm>
#include <utility>

#include "base/log.hh"
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/memory/managed_blocks.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"
#include "marshal/cuda/launch_bodies.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend::cuda {
namespace {

/// Launches and fills may carry the error of an earlier one, but say nothing of what is complete.
bool learns_of_completion(const api::description& about) {
  return !about.quiet && (about.deferred || about.waits);
}

work_flow flow_in(const lane& own, std::uint64_t stream, bool per_thread) {
  const std::uint64_t context = own.context_handle();
  if (stream == 2 || (stream == 0 && per_thread)) return {context, work_flow::of_lane(own.id)};
  return {context, stream == 1 ? 0 : stream};
}

/// The flow of a request that begins work. Nothing: it is over when the call returns, or is no work yet.
std::optional<work_flow> flow_of(const lane& own, const api::description& about,
                                 std::span<const std::byte> payload) {
  using api::flow_place;
  if (any_capture_open()) return std::nullopt;
  wire::reader from(payload);
  const auto of = [&](marshal::flavour how, std::uint64_t stream) -> std::optional<work_flow> {
    if (!marshal::on_stream(how)) return std::nullopt;
    return flow_in(own, stream, marshal::per_thread(how));
  };
  switch (about.flow) {
    case flow_place::thread:
      return work_flow{own.context_handle(), work_flow::of_lane(own.id)};
    case flow_place::launch: {
      const auto head = marshal::take_body<marshal::launch_head>(from);
      return flow_in(own, head.stream, head.per_thread);
    }
    case flow_place::graph_launch: {
      const auto body = marshal::take_body<marshal::graph_launch_body>(from);
      return flow_in(own, body.stream, body.per_thread);
    }
    case flow_place::copy_across: {
      const auto body = marshal::take_body<marshal::copy_across_body>(from);
      return of(body.how, body.stream);
    }
    case flow_place::copy_in: {
      const auto body = marshal::take_body<marshal::copy_in_body>(from);
      return of(body.how, body.stream);
    }
    case flow_place::prefetch: {
      const auto body = marshal::take_body<marshal::prefetch_body>(from);
      return flow_in(own, body.stream, body.per_thread);
    }
    case flow_place::default_stream:
      break;
    case flow_place::last_parameter:
      if (payload.size() < sizeof(std::uint64_t)) break;
      from = wire::reader(payload.last(sizeof(std::uint64_t)));
      return flow_in(own, from.get<std::uint64_t>(), about.per_thread);
  }
  return flow_in(own, 0, about.per_thread);
}

/// What is complete when a wait or query has succeeded: all of the context, what an event has marked, or a
/// stream.
void note_complete(const lane& own, const api::description& about, std::span<const std::byte> payload,
                   const completion_mark& mark) {
  process& p = own.state();
  if (about.drains) p.memory.mirrors.work_is_done(own.context_handle(), mark.mirrors);
  if (!mark.managed) return;
  wire::reader from(payload);
  if (about.drains) {
    p.memory.managed().complete_context(own.context_handle(), mark.managed);
  } else if (about.asks == api::completion::event) {
    p.memory.managed().complete_event(from.get<std::uint64_t>());
  } else if (about.asks == api::completion::stream) {
    p.memory.managed().complete(flow_in(own, from.get<std::uint64_t>(), about.per_thread), mark.managed);
  }
}

/// Events say later what is complete. Managed memory ignores destroyed handles of other kinds.
void note_event(const lane& own, const api::description& about, std::span<const std::byte> payload) {
  wire::reader from(payload);
  const auto event = from.get<std::uint64_t>();
  if (about.records != api::no_parameter) {
    const auto flow = flow_in(own, from.get<std::uint64_t>(), about.per_thread);
    own.state().memory.managed().recorded(event, flow);
  } else if (about.destroys != api::no_parameter) {
    own.state().memory.managed().forget_event(event);
  }
}

/// Not through the lane's buffers: the request at hand lies there.
template <auto Op>
CUresult ask(lane& own, std::uint64_t context, const marshal::request_of<Op>& body,
             std::vector<std::byte>& reply) {
  std::vector<std::byte> bytes;
  own.how = answered::waited;
  return own.state().connection.server()->call(written<Op>(bytes, own.id, context, body), reply);
}

CUresult show_all(lane& own, std::vector<std::uint64_t>& addresses) {
  std::sort(addresses.begin(), addresses.end());  // a table may name one block many times
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  for (const std::uint64_t address : addresses) {
    if (const CUresult code = show_pinned(own, address); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

/// Repeats until no new address is found, because memory that becomes visible may hold addresses of more.
CUresult send_changes(lane& own) {
  process& p = own.state();
  while (true) {
    if (const CUresult code = p.memory.mirrors.send(*p.connection.server(), own); code != CUDA_SUCCESS)
      return code;
    std::vector<std::uint64_t> noted;
    for (const std::uint64_t address : p.memory.mirrors.take_noted()) {
      const auto chunk = p.memory.arena.chunk_of(address);
      if (chunk && !chunk->shared && !p.memory.mirrors.find(address)) noted.push_back(address);
    }
    if (noted.empty()) return CUDA_SUCCESS;
    if (const CUresult code = show_all(own, noted); code != CUDA_SUCCESS) return code;
  }
}

}  // namespace

completion_mark take_mark(const lane& own) {
  process& p = own.state();
  return {p.memory.mirrors.work_mark(), p.memory.managed().started() ? p.memory.managed().mark() : 0};
}

void note_left(lane& own) { own.state().memory.managed().left(std::exchange(own.managed_work, 0)); }

CUresult show_block(lane& own, std::uint64_t address, std::uint64_t size, marshal::host_block kind,
                    std::uint64_t& device_address, std::byte* view) {
  process& p = own.state();
  mirror made;
  made.base = address;
  made.size = size;
  made.context = own.context_handle();
  made.memory = view;  // variables are small: no file, all of it is looked at
  std::vector<std::byte> reply;
  const CUresult code = ask<api::opcode::cuMemHostGetDevicePointer_v2>(
      own, made.context, {.address = address, .size = size, .kind = kind}, reply);
  if (code != CUDA_SUCCESS) return code;
  const auto there = read_reply<api::opcode::cuMemHostGetDevicePointer_v2>(reply);
  if (!there)
    return malformed_reply(own, static_cast<std::uint32_t>(api::opcode::cuMemHostGetDevicePointer_v2));
  made.device_address = there->address;
  if (!p.memory.mirrors.add(made)) return CUDA_ERROR_OUT_OF_MEMORY;
  device_address = made.device_address;
  return CUDA_SUCCESS;
}

CUresult show_pinned(lane& own, std::uint64_t address) {
  process& p = own.state();
  const auto chunk = p.memory.arena.chunk_of(address);
  // Freed, or never given out: a number that looks like an address. What is shared is seen anyway.
  if (!chunk || chunk->shared) return CUDA_SUCCESS;
  const std::lock_guard lock(p.memory.showing);
  if (p.memory.mirrors.find(chunk->base)) return CUDA_SUCCESS;
  std::uint64_t there = 0;
  const CUresult code = show_block(own, chunk->base, chunk->size, marshal::host_block::pinned, there);
  if (code == CUDA_ERROR_MAP_FAILED) {
    log::error("the server cannot have page-locked memory at the address of ours: kernels cannot use it");
  }
  return code;
}

void hide_block(lane& own, std::uint64_t address) {
  process& p = own.state();
  const auto gone = p.memory.mirrors.remove(address);
  std::vector<std::byte> reply;
  if (gone) (void)ask<api::opcode::cuMemFreeHost>(own, gone->context, {.handle = address}, reply);
}

void unshare(lane& own, std::uint64_t address) {
  std::vector<std::byte> reply;
  (void)ask<api::opcode::cuMemFreeHost>(own, own.context_handle(), {.handle = address}, reply);
}

CUresult before_request(lane& own, api::opcode code, std::span<const std::byte> payload,
                        std::span<const std::byte> bulk) {
  process& p = own.state();
  std::vector<std::uint64_t> noted;
  if (p.memory.arena.has_private()) {
    // Fields of a request lie at any offset; bytes of the program's at aligned ones.
    const marshal::address_watch watch{p.memory.arena.base(), p.memory.arena.size(), &noted};
    marshal::find_addresses(payload, 1, watch);
    marshal::find_addresses(bulk, sizeof(std::uint64_t), watch);
    if (const CUresult shown = show_all(own, noted); shown != CUDA_SUCCESS) return shown;
  }
  if (!p.memory.mirrors.any()) return CUDA_SUCCESS;
  const api::function_info* function = api::find_function(static_cast<std::uint32_t>(code));
  if (!function) return CUDA_SUCCESS;
  const api::description& about = function->about;
  if (p.memory.managed().started()) note_event(own, about, payload);
  if (!about.work && !learns_of_completion(about)) return CUDA_SUCCESS;
  const bool changes = about.work && !about.reads;
  const auto flow = changes ? flow_of(own, about, payload) : std::nullopt;
  if (!bulk.empty() && p.memory.managed().started()) p.memory.managed().uploaded(bulk);
  if (flow && p.memory.managed().started()) {
    const bool graph = about.flow == api::flow_place::graph_launch;
    own.managed_work = p.memory.managed().begin(*flow, payload, graph);
  }
  do {
    if (const CUresult sent = send_changes(own); sent != CUDA_SUCCESS) return after_leaving(own), sent;
  } while (p.memory.managed().started() &&
           p.memory.managed().reach(flow.value_or(work_flow{}), own.managed_work));
  if (changes) p.memory.mirrors.work_begins(own.context_handle());
  return CUDA_SUCCESS;
}

CUresult after_call(lane& own, api::opcode code, std::span<const std::byte> payload,
                    const completion_mark& mark) {
  process& p = own.state();
  if (!p.memory.mirrors.any() || !p.memory.mirrors.fetch_needed()) return CUDA_SUCCESS;
  const api::function_info* function = api::find_function(static_cast<std::uint32_t>(code));
  if (!function || !learns_of_completion(function->about)) return CUDA_SUCCESS;
  const CUresult fetched = p.memory.mirrors.fetch(*p.connection.server(), own);
  if (fetched == CUDA_SUCCESS) note_complete(own, function->about, payload, mark);
  return fetched;
}

}  // namespace outboard::frontend::cuda
