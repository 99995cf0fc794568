// Chapter memory, copies. To the device: posted with their bytes, so the source may be reused at once. To the
// host: a call, unless the destination is page-locked and the copy is asynchronous; then the bytes arrive
// before whatever call tells the program that it is complete.
#include <algorithm>
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/copying/later_copy.hh"
#include "frontend/cuda/copying/other_device.hh"
#include "frontend/cuda/copying/staged_copy.hh"
#include "frontend/cuda/copying/streamed_copy.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

using marshal::flavour;

/// Bytes of one frame; larger copies are cut. What is received is copied once more: it should still be in the
/// cache then (tcp with one connection, H200: 2.7 GB/s; with 16 MiB 2.0).
constexpr std::uint64_t piece = 1u << 20;

/// The default stream of the calling thread's kind.
CUresult wait_for_default_stream(bool per_thread) {
  return per_thread ? remote<api::opcode::cuStreamSynchronize_ptsz>(CUstream{})
                    : remote<api::opcode::cuStreamSynchronize>(CUstream{});
}

/// A copy whose two ends the server has. The synchronous kinds wait there.
CUresult on_server(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  lane& own = this_lane();
  address_table& addresses = own.state().memory.addresses;
  const bool host_to = mirror_of(own, to).has_value(), host_from = mirror_of(own, from).has_value();
  // An address that is not in the books may be wrong: then the driver's answer is waited for.
  const bool known = (host_to || addresses.covers(to, size)) && (host_from || addresses.covers(from, size));
  // With page-locked memory a synchronous copy is one on the default stream that is waited for, and the
  // server can look whether a stream is done before it lets others go on: no thread waits for another if it
  // is soon.
  const bool in_two = known && !marshal::on_stream(how) && host_to != host_from && !any_capture_open() &&
                      !of_another_device(own, host_to ? from : to);
  const bool per_thread = marshal::per_thread(how);
  if (in_two) how = per_thread ? flavour::stream_per_thread : flavour::stream;
  request r(typed<api::opcode::cuMemcpyAsync>, own,
            marshal::copy_across_body{
                .to = to, .from = from, .size = size, .stream = value_of(stream), .how = how});
  const CUresult code = marshal::on_stream(how) && known ? r.post() : r.call();
  return code == CUDA_SUCCESS && in_two ? wait_for_default_stream(per_thread) : code;
}

/// The question about the stream in which the copy takes its place.
idle_question question_of_stream(const lane& own, CUstream stream, flavour how) {
  return idle_question::of(own, marshal::on_stream(how) ? stream : CUstream{}, marshal::per_thread(how));
}

/// Short copies to pageable memory, where memory is shared: the device writes where this thread can read,
/// without another thread in between. Empty: nothing was done.
std::optional<CUresult> land(lane& own, void* to, CUdeviceptr from, size_t size, flavour how) {
  if (!may_pass_shared(own) || own.state().connection.server()->callbacks_expected()) return std::nullopt;
  landing_block& block = own.owner()->landing;
  const std::unique_lock lock(block.use, std::try_to_lock);
  if (!lock) return std::nullopt;
  if (block.base && !is_shared_still(own, block.base)) {
    release_shared(own, block.base, landing_block::size);
    block.base = 0;
  }
  if (!block.base) {
    if (++block.copies % landing_block::worth_preparing) return std::nullopt;
    if (allocate_shared(own, landing_block::size, block.base) != CUDA_SUCCESS)
      return block.base = 0, std::nullopt;
  }
  const CUresult code = on_server(block.base, from, size, nullptr, how);
  if (code == CUDA_SUCCESS) std::memcpy(to, reinterpret_cast<const void*>(block.base), size);
  return code;
}

/// A host function that runs before the copy may write there: the copy must find what it has written.
CUresult mirror_page_locked(lane& own, std::uint64_t source, std::uint64_t size) {
  if (mirror_of(own, source) || !page_locked(own, source, size)) return CUDA_SUCCESS;
  const auto block = own.state().memory.addresses.find(source);
  std::uint64_t there = 0;
  return block ? device_pointer_of(own, *block, source, there) : CUDA_SUCCESS;
}

CUresult to_device(CUdeviceptr to, const void* from, size_t size, CUstream stream, flavour how) {
  lane& own = this_lane();
  process& p = own.state();
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (!from || !to) return CUDA_ERROR_INVALID_VALUE;
  const auto source = reinterpret_cast<std::uint64_t>(from);
  if (leaves_its_block(own, to, size) || leaves_its_block(own, source, size)) return CUDA_ERROR_INVALID_VALUE;
  if (!on_device(own, source) && marshal::on_stream(how) &&
      stream_captures(own, stream, marshal::per_thread(how)))
    return capture_copy(own, {to, const_cast<void*>(from), size, stream, false, marshal::per_thread(how)});
  if (context_state* there = context_on_other_device(own, to); there && !any_capture_open())
    return in_other_context(own, *there, stream, how,
                            [&](CUstream side) { return to_device(to, from, size, side, how); });
  if (marshal::on_stream(how) && p.connection.server()->callbacks_expected()) {
    if (const CUresult code = mirror_page_locked(own, source, size); code != CUDA_SUCCESS) return code;
  }
  if (const auto host = mirror_of(own, source)) {
    const std::uint64_t offset = source - host->base;
    if (size <= host->size - offset) return on_server(to, host->device_address + offset, size, stream, how);
  }
  if (const CUresult code = settle(own, from, size); code != CUDA_SUCCESS) return code;
  if (of_device_alone(own, reinterpret_cast<std::uint64_t>(from))) {
    return of_device_alone(own, to) ? on_server(to, reinterpret_cast<std::uint64_t>(from), size, stream, how)
                                    : CUDA_ERROR_INVALID_VALUE;
  }
  // While streams may wait for host functions, posted copies would pile up at the server beyond what it can
  // keep.
  const bool known = p.memory.addresses.covers(to, size) && !p.connection.server()->callbacks_expected() &&
                     may_run_behind(own, how) && !(default_stream(stream) && any_capture_open()) &&
                     !of_another_device(own, to);
  std::uint64_t done = 0;
  if (known && size >= least_staged && !mirror_of(own, to)) {
    auto* host = static_cast<std::byte*>(const_cast<void*>(from));
    // Asynchronous copies from page-locked memory must not wait for the stream.
    const bool goes_on = marshal::on_stream(how) && p.memory.addresses.find(source);
    const auto code = stage_in(own, {to, host, size, stream, how}, goes_on ? &done : nullptr);
    if (code && (*code != CUDA_SUCCESS || !goes_on || done == size)) return *code;
  }
  if (known && done == 0 && size >= least_streamed && !mirror_of(own, to)) {
    auto* host = static_cast<std::byte*>(const_cast<void*>(from));
    if (const auto code = stream_in(own, {to, host, size, stream, how})) return *code;
  }
  const auto* bytes = static_cast<const std::byte*>(from);
  while (done < size) {
    const std::uint64_t n = std::min(piece, size - done);
    request r(typed<api::opcode::cuMemcpyHtoD_v2>, own,
              marshal::copy_in_body{.to = to + done, .stream = value_of(stream), .how = how});
    const std::span<const std::byte> part(bytes + done, n);
    const CUresult code = known ? r.post(part) : r.call(part);
    if (code != CUDA_SUCCESS) return code;
    done += n;
  }
  return mirror_of(own, to) ? finish(own, how) : CUDA_SUCCESS;
}

CUresult to_host(void* to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  lane& own = this_lane();
  process& p = own.state();
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  if (leaves_its_block(own, from, size) || leaves_its_block(own, reinterpret_cast<std::uint64_t>(to), size))
    return CUDA_ERROR_INVALID_VALUE;
  // Memory that the server has too is copied there, also by a graph: its pages may be closed here meanwhile.
  const bool there_too = on_device(own, reinterpret_cast<std::uint64_t>(to));
  if (!there_too && marshal::on_stream(how) && stream_captures(own, stream, marshal::per_thread(how)))
    return capture_copy(own, {from, to, size, stream, true, marshal::per_thread(how)});
  if (context_state* there = context_on_other_device(own, from); there && !any_capture_open())
    return in_other_context(own, *there, stream, how,
                            [&](CUstream side) { return to_host(to, from, size, side, how); });
  if (const auto host = mirror_of(own, reinterpret_cast<std::uint64_t>(to))) {
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(to) - host->base;
    if (size <= host->size - offset) return on_server(host->device_address + offset, from, size, stream, how);
  }
  if (of_device_alone(own, reinterpret_cast<std::uint64_t>(to))) {
    return of_device_alone(own, from)
               ? on_server(reinterpret_cast<std::uint64_t>(to), from, size, stream, how)
               : CUDA_ERROR_INVALID_VALUE;
  }
  const auto block = p.memory.addresses.find(reinterpret_cast<std::uint64_t>(to));
  const bool page_locked = block && is_host(block->kind);
  const bool known = p.memory.addresses.covers(from, size) && !of_another_device(own, from);
  const bool later = page_locked && marshal::on_stream(how) && known;
  const bool is_short = size >= landing_block::least && size <= landing_block::size;
  if (known && is_short && !marshal::on_stream(how) && !mirror_of(own, from)) {
    if (const auto code = land(own, to, from, size, how)) return *code;
  }
  if (known && !later && size >= least_staged && !mirror_of(own, from)) {
    if (const auto code = stage_out(own, {from, static_cast<std::byte*>(to), size, stream, how}))
      return *code;
  }
  if (known && !later && size >= least_streamed && !mirror_of(own, from)) {
    if (const auto code = stream_out(own, {from, static_cast<std::byte*>(to), size, stream, how}))
      return *code;
  }
  staged_copy copy{from, static_cast<std::byte*>(to), size, stream, how};
  if (later && size >= least_streamed) stream_later(own, copy);
  if (later && !mirror_of(own, from) && !p.connection.server()->copies_pending_by_frames({copy.host, size})) {
    const drained got = drain_later(own, copy);
    if (got.code != CUDA_SUCCESS || got.done == size) return got.code;
    copy.host += got.done, copy.device += got.done, copy.size -= got.done;
  }
  request r(
      typed<api::opcode::cuMemcpyDtoH_v2>, own,
      marshal::copy_out_body{.from = copy.device, .size = copy.size, .stream = value_of(stream), .how = how});
  const landing land{copy.host, copy.size};
  if (later) return r.post(land);
  const idle_question stream_of_copy = question_of_stream(own, stream, how);
  const CUresult code = r.call(land);
  // Programs wait for the stream behind such a copy, though it has waited already. (What kernels wrote to
  // memory of the program's comes with waits alone.)
  if (code == CUDA_SUCCESS && !p.memory.mirrors.any()) stream_of_copy.idle_after_request();
  return code;
}

CUresult on_host(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  lane& own = this_lane();
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (marshal::on_stream(how) && stream_captures(own, stream, marshal::per_thread(how))) {
    CUDA_MEMCPY3D copy{};  // as drivers describe it when asked for the node
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = from, copy.dstDevice = to;
    copy.WidthInBytes = size, copy.Height = copy.Depth = 1;
    return capture_box(own, copy, stream, marshal::per_thread(how));
  }
  if (const CUresult code = call<api::opcode::cuCtxSynchronize>(own); code != CUDA_SUCCESS) return code;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  return CUDA_SUCCESS;
}

template <class Between>
CUresult unified(const lane& own, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how,
                 Between&& between) {
  if (on_device(own, to)) {
    if (on_device(own, from)) return between();
    return to_device(to, reinterpret_cast<const void*>(from), size, stream, how);
  }
  if (on_device(own, from)) return to_host(reinterpret_cast<void*>(to), from, size, stream, how);
  return on_host(to, from, size, stream, how);
}

}  // namespace

std::optional<mirror> mirror_of(const lane& own, std::uint64_t address) {
  process& p = own.state();
  if (p.memory.arena.in_use() && p.memory.arena.holds(address)) {
    if (const auto chunk = p.memory.arena.chunk_of(address); chunk && chunk->shared) {
      mirror same;
      same.base = same.device_address = chunk->base;
      same.size = chunk->size;
      return same;
    }
  }
  return p.memory.mirrors.any() ? p.memory.mirrors.find(address) : std::nullopt;
}

CUresult finish(lane& own, flavour how) {
  if (marshal::on_stream(how)) return CUDA_SUCCESS;
  return call<api::opcode::cuCtxSynchronize>(own);
}

CUresult settle(lane& own, const void* source, std::uint64_t size) {
  process& p = own.state();
  if (!p.connection.server()->copies_pending()) return CUDA_SUCCESS;
  const auto block = p.memory.addresses.find(reinterpret_cast<std::uint64_t>(source));
  if (!block || !is_host(block->kind)) return CUDA_SUCCESS;
  if (!p.connection.server()->copies_pending_to({static_cast<const std::byte*>(source), size}))
    return CUDA_SUCCESS;
  return call<api::opcode::cuCtxSynchronize>(own);
}

bool of_device_alone(const lane& own, std::uint64_t address) {
  const auto block = own.state().memory.addresses.find(address);
  return block && !is_host(block->kind) && block->kind != memory_kind::managed;
}

bool on_device(const lane& own, std::uint64_t address) {
  const auto block = own.state().memory.addresses.find(address);
  return block && !is_host(block->kind);
}

bool leaves_its_block(const lane& own, std::uint64_t address, std::uint64_t size) {
  address_table& addresses = own.state().memory.addresses;
  const auto block = addresses.find(address);
  if (!block || size <= block->base + block->size - address) return false;
  if (!is_host(block->kind)) return !addresses.covers(address, size);
  if (block->kind == memory_kind::registered)
    return false;  // not measured: it may be part of something larger
  const auto next = addresses.find(block->base + block->size);
  return !next || !is_host(next->kind);
}

bool page_locked(const lane& own, std::uint64_t address, std::uint64_t size) {
  const auto block = own.state().memory.addresses.find(address);
  return block && is_host(block->kind) && size <= block->base + block->size - address;
}

CUresult ends::cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return to_device(dstDevice, srcHost, ByteCount, nullptr, flavour::sync);
}
CUresult ends::cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return to_device(dstDevice, srcHost, ByteCount, nullptr, flavour::sync_per_thread);
}
CUresult ends::cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                    CUstream hStream) {
  return to_device(dstDevice, srcHost, ByteCount, hStream, flavour::stream);
}
CUresult ends::cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                         CUstream hStream) {
  return to_device(dstDevice, srcHost, ByteCount, hStream, flavour::stream_per_thread);
}
CUresult ends::cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return to_host(dstHost, srcDevice, ByteCount, nullptr, flavour::sync);
}
CUresult ends::cuMemcpyDtoH_v2_ptds(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return to_host(dstHost, srcDevice, ByteCount, nullptr, flavour::sync_per_thread);
}
CUresult ends::cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                    CUstream hStream) {
  return to_host(dstHost, srcDevice, ByteCount, hStream, flavour::stream);
}
CUresult ends::cuMemcpyDtoHAsync_v2_ptsz(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
  return to_host(dstHost, srcDevice, ByteCount, hStream, flavour::stream_per_thread);
}

CUresult ends::cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  lane& own = this_lane();
  return unified(own, dst, src, ByteCount, nullptr, flavour::sync,
                 [&] { return remote<api::opcode::cuMemcpyDtoD_v2>(dst, src, ByteCount); });
}
CUresult ends::cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  lane& own = this_lane();
  return unified(own, dst, src, ByteCount, nullptr, flavour::sync_per_thread,
                 [&] { return remote<api::opcode::cuMemcpyDtoD_v2_ptds>(dst, src, ByteCount); });
}
CUresult ends::cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  lane& own = this_lane();
  return unified(own, dst, src, ByteCount, hStream, flavour::stream,
                 [&] { return remote<api::opcode::cuMemcpyDtoDAsync_v2>(dst, src, ByteCount, hStream); });
}
CUresult ends::cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  lane& own = this_lane();
  return unified(own, dst, src, ByteCount, hStream, flavour::stream_per_thread, [&] {
    return remote<api::opcode::cuMemcpyDtoDAsync_v2_ptsz>(dst, src, ByteCount, hStream);
  });
}

}  // namespace outboard::frontend::cuda
