// Chapter memory, copies. To the device: posted with their bytes, so the source may be reused at once. To the
// host: a call, unless the destination is page-locked and the copy is asynchronous; then the bytes arrive
// before whatever call tells the program that it is complete.
#include <algorithm>
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/copying/elsewhere.hh"
#include "frontend/cuda/copying/later_copy.hh"
#include "frontend/cuda/copying/staged_copy.hh"
#include "frontend/cuda/copying/streamed_copy.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"
#include "frontend/memory/live_memory.hh"

namespace outboard::frontend::cuda {
namespace {

using marshal::flavour;

/// Bytes of one frame; larger copies are cut. What is received is copied once more: it should still be in the
/// cache then (tcp with one connection, H200: 2.7 GB/s; with 16 MiB 2.0).
constexpr std::uint64_t piece = 1u << 20;

/// A copy of which the server has both ends. The synchronous kinds wait there.
CUresult on_server(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  address_table& addresses = process::instance().memory().addresses();
  const auto shown_to = shown(to), shown_from = shown(from);
  const bool host_to = shown_to.has_value(), host_from = shown_from.has_value();
  const auto in_range = [](const auto& block) { return block && block->how == shown_block::kept::in_range; };
  // An address that is not in the books may be wrong: then the program hears of it now.
  const bool known = (host_to || addresses.covers(to, size)) && (host_from || addresses.covers(from, size)) &&
                     !any_capture_open() && !in_range(shown_to) && !in_range(shown_from);
  // With page-locked memory a synchronous copy is one on the default stream that is waited for, and the
  // server can look whether a stream is done before it lets others go on: no thread waits for another if it
  // is soon.
  lane& own = this_lane();
  const bool in_two = known && !marshal::on_stream(how) && host_to != host_from && !any_capture_open() &&
                      !of_another_device(own, host_to ? from : to);
  const bool per_thread = marshal::per_thread(how);
  if (in_two) how = per_thread ? flavour::stream_per_thread : flavour::stream;
  request_of<api::opcode::cuMemcpyAsync> r(
      own, marshal::copy_across_body{to, from, size, value_of(stream), how, 0, 0});
  r.names_copies_alone().copies_to(to, stream, how);
  const CUresult code = marshal::on_stream(how) && known ? r.post() : r.call();
  return code == CUDA_SUCCESS && in_two ? wait_in_stream(nullptr, how) : code;
}

/// Of the stream in which the copy takes its place.
idle_question question_of_stream(const lane& own, CUstream stream, flavour how) {
  return idle_question::of(own, marshal::on_stream(how) ? stream : CUstream{}, marshal::per_thread(how));
}

/// Short copies to pageable memory, where memory is shared: the device writes where this thread can read,
/// with no hand in between. Empty: nothing was done.
std::optional<CUresult> land(lane& own, void* to, CUdeviceptr from, size_t size, flavour how) {
  if (!may_pass_shared() || process::instance().server()->callbacks_expected()) return std::nullopt;
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

/// A copy that a graph will repeat, without this process where the server can have the program's memory.
CUresult copy_under_capture(lane& own, const captured_copy& copy, flavour how) {
  reach(own, copy.device);
  const server_place there = make_place_on_server(own, reinterpret_cast<std::uint64_t>(copy.host), copy.size);
  if (there.code != CUDA_SUCCESS) return there.code;
  if (!there.address) return capture_copy(own, copy);
  return copy.to_host ? on_server(there.address, copy.device, copy.size, copy.stream, how)
                      : on_server(copy.device, there.address, copy.size, copy.stream, how);
}

CUresult give_to_device(CUdeviceptr to, const void* from, size_t size, CUstream stream, flavour how) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (!from || !to) return CUDA_ERROR_INVALID_VALUE;
  const auto source = reinterpret_cast<std::uint64_t>(from);
  if (leaves_its_block(to, size) || leaves_its_block(source, size)) return CUDA_ERROR_INVALID_VALUE;
  if (!on_device(source) && marshal::on_stream(how) &&
      stream_captures(own, stream, marshal::per_thread(how))) {
    return copy_under_capture(
        own, {to, const_cast<void*>(from), size, stream, false, marshal::per_thread(how)}, how);
  }
  if (context_state* there = owner_elsewhere(own, to); there && may_go_elsewhere(how))
    return over_there(own, *there, stream, how,
                      [&](CUstream side) { return give_to_device(to, from, size, side, how); });
  const server_place there = place_behind_functions(own, source, size);
  if (there.code != CUDA_SUCCESS) return there.code;
  if (there.address) return on_server(to, there.address, size, stream, how);
  if (const CUresult code = settle(own, from, size); code != CUDA_SUCCESS) return code;
  if (of_device_alone(reinterpret_cast<std::uint64_t>(from))) {
    return of_device_alone(to) ? on_server(to, reinterpret_cast<std::uint64_t>(from), size, stream, how)
                               : CUDA_ERROR_INVALID_VALUE;
  }
  // While streams may wait for host functions of ours the server must not be left with more than it can keep.
  const bool known = p.memory().addresses().covers(to, size) && !p.server()->callbacks_expected() &&
                     may_run_behind(how) && !(default_stream(stream) && any_capture_open()) &&
                     !of_another_device(own, to);
  const bool on_device_alone = size >= least_staged && !shown(to);
  std::uint64_t done = 0;
  if (known && on_device_alone) {
    auto* host = static_cast<std::byte*>(const_cast<void*>(from));
    // Asynchronous copies from page-locked memory must not wait for the stream.
    const bool goes_on = marshal::on_stream(how) && p.memory().addresses().find(source);
    const auto code = stage_in(own, {to, host, size, stream, how}, goes_on ? &done : nullptr);
    if (code && (*code != CUDA_SUCCESS || !goes_on || done == size)) return *code;
  }
  if (known && on_device_alone && done == 0 && size >= least_streamed) {
    auto* host = static_cast<std::byte*>(const_cast<void*>(from));
    if (const auto code = stream_in(own, {to, host, size, stream, how})) return *code;
  }
  const auto* bytes = static_cast<const std::byte*>(from);
  while (done < size) {
    const std::uint64_t n = std::min(piece, size - done);
    request_of<api::opcode::cuMemcpyHtoD_v2> r(own, marshal::copy_in_body{to + done, value_of(stream), how});
    r.copies_to(to + done, stream, how);
    const std::span<const std::byte> part(bytes + done, n);
    const CUresult code = known ? r.post(part) : r.call(part);
    if (code != CUDA_SUCCESS) return code;
    done += n;
  }
  // It may have come to be shown by the requests above, which name it.
  const auto there_too = shown(to);
  return there_too && there_too->how == shown_block::kept::twice ? finish(own, how) : CUDA_SUCCESS;
}

CUresult to_device(CUdeviceptr to, const void* from, size_t size, CUstream stream, flavour how) {
  const earlier_results earlier(this_lane());
  const CUresult code = give_to_device(to, from, size, stream, how);
  return code == CUDA_SUCCESS && size != 0 ? earlier.bring(how) : code;
}

/// To the host while the program waits, by what is faster than frames of the session. Empty: nothing was
/// done, the copy must go the ordinary way.
std::optional<CUresult> copy_out_without_frames(lane& own, const staged_copy& copy) {
  static_assert(landing_block::least < least_staged && least_staged <= least_streamed);
  if (copy.size < landing_block::least || shown(copy.device)) return std::nullopt;
  if (copy.size <= landing_block::size && !marshal::on_stream(copy.how)) {
    if (const auto code = land(own, copy.host, copy.device, copy.size, copy.how)) return code;
  }
  if (copy.size >= least_staged) {
    if (const auto code = stage_out(own, copy)) return code;
  }
  if (copy.size >= least_streamed) {
    if (const auto code = stream_out(own, copy)) return code;
  }
  return std::nullopt;
}

CUresult to_host(void* to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  if (leaves_its_block(from, size) || leaves_its_block(reinterpret_cast<std::uint64_t>(to), size))
    return CUDA_ERROR_INVALID_VALUE;
  // What the server has too is copied there, also by a graph: here it may be closed while that runs.
  const bool there_too = on_device(reinterpret_cast<std::uint64_t>(to));
  const auto target = reinterpret_cast<std::uint64_t>(to);
  if (!there_too && marshal::on_stream(how) && stream_captures(own, stream, marshal::per_thread(how))) {
    return copy_under_capture(own, {from, to, size, stream, true, marshal::per_thread(how)}, how);
  }
  if (context_state* there = owner_elsewhere(own, from); there && may_go_elsewhere(how))
    return over_there(own, *there, stream, how,
                      [&](CUstream side) { return to_host(to, from, size, side, how); });
  const server_place there = place_on_server(own, target, size);
  if (there.code != CUDA_SUCCESS) return there.code;
  if (there.address) return on_server(there.address, from, size, stream, how);
  if (of_device_alone(reinterpret_cast<std::uint64_t>(to))) {
    return of_device_alone(from) ? on_server(reinterpret_cast<std::uint64_t>(to), from, size, stream, how)
                                 : CUDA_ERROR_INVALID_VALUE;
  }
  const auto block = p.memory().addresses().find(reinterpret_cast<std::uint64_t>(to));
  const bool page_locked = block && is_host(block->kind);
  const bool known = p.memory().addresses().covers(from, size) && !of_another_device(own, from);
  const bool later = page_locked && marshal::on_stream(how) && known;
  // What does not come in frames would come before those of an earlier copy to the same place.
  if (page_locked && !later) {
    if (const CUresult code = settle(own, to, size); code != CUDA_SUCCESS) return code;
  }
  staged_copy copy{from, static_cast<std::byte*>(to), size, stream, how};
  if (known && !later) {
    if (const auto code = copy_out_without_frames(own, copy)) return *code;
  }
  if (later && size >= least_streamed) stream_later(own, copy);
  // What comes by frames for a graph's copy to the same place may come later than it was carried out.
  const bool behind_graph =
      later && p.server()->callbacks_expected() && p.functions().in_a_box({copy.host, size});
  if (later && !behind_graph && !shown(from) && !p.server()->copies_pending_by_frames({copy.host, size})) {
    const drained got = drain_later(own, copy);
    if (got.code != CUDA_SUCCESS || got.done == size) return got.code;
    copy.host += got.done, copy.device += got.done, copy.size -= got.done;
  }
  request_of<api::opcode::cuMemcpyDtoH_v2> r(
      own, marshal::copy_out_body{copy.device, copy.size, value_of(stream), how});
  const landing land{copy.host, copy.size};
  if (later) return r.post({}, &land);
  const idle_question stream_of_copy = question_of_stream(own, stream, how);
  const CUresult code = r.call({}, &land);
  // Programs wait for the stream behind such a copy, though it has waited already. (What kernels wrote to
  // memory of the program's comes with waits alone.)
  if (code == CUDA_SUCCESS && !p.memory().mirrors().any()) stream_of_copy.idle_after_request();
  return code;
}

CUresult on_host(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (size == 0) return CUDA_SUCCESS;
  if (marshal::on_stream(how) && any_capture_open()) {
    CUDA_MEMCPY3D copy{};  // as drivers describe it when asked for the node
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = from, copy.dstDevice = to;
    copy.WidthInBytes = size, copy.Height = copy.Depth = 1;
    const bool per_thread = marshal::per_thread(how);
    return stream_captures(own, stream, per_thread) ? capture_box(own, copy, stream, per_thread)
                                                    : copy_beside_capture(own, copy, stream, per_thread);
  }
  if (const CUresult code = wait_in_stream(stream, how); code != CUDA_SUCCESS) return code;
  for (const CUdeviceptr end : {from, to}) {
    const CUresult code = settle(own, reinterpret_cast<const void*>(end), size);
    if (code != CUDA_SUCCESS) return code;
  }
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  return CUDA_SUCCESS;
}

template <class Between>
CUresult unified(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, flavour how,
                 Between&& between) {
  if (on_device(to)) {
    if (on_device(from)) return between();
    return to_device(to, reinterpret_cast<const void*>(from), size, stream, how);
  }
  if (on_device(from)) return to_host(reinterpret_cast<void*>(to), from, size, stream, how);
  return on_host(to, from, size, stream, how);
}

}  // namespace

CUresult earlier_results::bring(flavour how) const {
  process& p = process::instance();
  // The server says what a capture makes of the copy.
  if (marshal::on_stream(how) || !p.server() || any_capture_open()) return CUDA_SUCCESS;
  const results_seen now{own_.running_context(), mark_, marshal::per_thread(how)};
  const bool may_change = p.memory().arena().in_use() || p.memory().virtual_memory().has_host() ||
                          (p.memory().mirrors().any() && p.memory().mirrors().fetch_needed());
  const bool changes = mark_ != 0 && may_change && own_.results != now;
  if (!changes && !p.server()->copies_pending()) return CUDA_SUCCESS;
  const CUresult code = wait_in_stream(nullptr, how);
  if (code == CUDA_SUCCESS) own_.results = now;
  return code;
}

CUresult finish(lane& own, flavour how) {
  if (marshal::on_stream(how)) return CUDA_SUCCESS;
  // For its stream alone: another one may be at work for ever, or be captured.
  using enum api::opcode;
  request r(marshal::per_thread(how) ? cuStreamSynchronize_ptsz : cuStreamSynchronize, own);
  marshal::put_body(r.body(), marshal::handle_body{});
  return r.call();  // also where it is known to be idle: what the copy wrote comes with the reply
}

CUresult wait_in_stream(CUstream stream, flavour how) {
  const bool per_thread = marshal::per_thread(how);
  if (!marshal::on_stream(how)) {
    // In a capture the server says what it makes of the copy.
    if (any_capture_open()) return request_of<api::opcode::cuCtxSynchronize>(this_lane()).call();
    stream = nullptr;
  }
  return per_thread ? remote<api::opcode::cuStreamSynchronize_ptsz>(stream)
                    : remote<api::opcode::cuStreamSynchronize>(stream);
}

bool of_device_alone(std::uint64_t address) {
  const auto block = process::instance().memory().addresses().find(address);
  return block && !is_host(block->kind) && block->kind != memory_kind::managed;
}

bool on_device(std::uint64_t address) {
  const auto block = process::instance().memory().addresses().find(address);
  return block && !is_host(block->kind);
}

bool leaves_its_block(std::uint64_t address, std::uint64_t size) {
  address_table& addresses = process::instance().memory().addresses();
  const auto block = addresses.find(address);
  if (!block || size <= block->base + block->size - address) return false;
  if (!is_host(block->kind)) return !addresses.covers(address, size);
  if (block->kind == memory_kind::registered)
    return false;  // not measured: it may be part of something larger
  const auto next = addresses.find(block->base + block->size);
  return !next || !is_host(next->kind);
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
  return unified(dst, src, ByteCount, nullptr, flavour::sync,
                 [&] { return remote<api::opcode::cuMemcpyDtoD_v2>(dst, src, ByteCount); });
}
CUresult ends::cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return unified(dst, src, ByteCount, nullptr, flavour::sync_per_thread,
                 [&] { return remote<api::opcode::cuMemcpyDtoD_v2_ptds>(dst, src, ByteCount); });
}
CUresult ends::cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return unified(dst, src, ByteCount, hStream, flavour::stream,
                 [&] { return remote<api::opcode::cuMemcpyDtoDAsync_v2>(dst, src, ByteCount, hStream); });
}
CUresult ends::cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return unified(dst, src, ByteCount, hStream, flavour::stream_per_thread, [&] {
    return remote<api::opcode::cuMemcpyDtoDAsync_v2_ptsz>(dst, src, ByteCount, hStream);
  });
}

}  // namespace outboard::frontend::cuda
