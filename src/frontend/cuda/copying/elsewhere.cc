#include "frontend/cuda/copying/elsewhere.hh"

#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/remote.hh"
#include "marshal/cuda/peer_access.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using enum api::opcode;

/// A context current for the length of a scope.
class visit {
 public:
  visit(lane& own, context_state& there) : own_(own) { own_.contexts.push_back(&there); }
  ~visit() { own_.contexts.pop_back(); }
  visit(const visit&) = delete;

 private:
  lane& own_;
};

/// An event of the current context, recorded at once; destroyed with the scope, wherever that ends.
class mark {
 public:
  CUresult record(CUstream stream) {
    const CUresult code = remote<cuEventCreate>(&event_, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
    return code == CUDA_SUCCESS ? remote<cuEventRecord>(event_, stream) : code;
  }
  CUresult hold_back(CUstream stream) const { return remote<cuStreamWaitEvent>(stream, event_, 0u); }
  mark() = default;
  mark(const mark&) = delete;
  ~mark() {
    if (event_) (void)remote<cuEventDestroy_v2>(event_);
  }

 private:
  CUevent event_ = nullptr;
};

CUresult on_a_stream_of_its_own(mark& before, mark& after, const std::function<CUresult(CUstream)>& copy) {
  CUstream side = nullptr;
  CUresult code = remote<cuStreamCreate>(&side, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  if (code != CUDA_SUCCESS) return code;
  code = before.hold_back(side);
  if (code == CUDA_SUCCESS) code = copy(side);
  if (code == CUDA_SUCCESS) code = after.record(side);
  const CUresult ended = remote<cuStreamDestroy_v2>(side);  // it ends when its work has
  return code == CUDA_SUCCESS ? ended : code;
}

CUresult copy_within(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream,
                     marshal::flavour how) {
  return marshal::on_stream(how)    ? remote<cuMemcpyDtoDAsync_v2>(to, from, size, stream)
         : marshal::per_thread(how) ? remote<cuMemcpyDtoD_v2_ptds>(to, from, size)
                                    : remote<cuMemcpyDtoD_v2>(to, from, size);
}

CUresult copy_across(CUdeviceptr to, const context_state& there, CUdeviceptr from,
                     const context_state& whence, std::size_t size, CUstream stream, marshal::flavour how) {
  const auto at = reinterpret_cast<CUcontext>(there.handle), of = reinterpret_cast<CUcontext>(whence.handle);
  const bool own = marshal::per_thread(how);
  if (marshal::on_stream(how)) {
    return own ? remote<cuMemcpyPeerAsync_ptsz>(to, at, from, of, size, stream)
               : remote<cuMemcpyPeerAsync>(to, at, from, of, size, stream);
  }
  return own ? remote<cuMemcpyPeer_ptds>(to, at, from, of, size)
             : remote<cuMemcpyPeer>(to, at, from, of, size);
}

}  // namespace

bool of_another_device(const lane& own, std::uint64_t address) {
  process& p = process::instance();
  if (p.facts().devices.size() < 2 || !own.current()) return false;
  const auto block = p.memory().addresses().find(address);
  return block && !names_host(block->kind) && block->kind != memory_kind::managed &&
         block->device != own.current()->device;
}

context_state* owner_elsewhere(const lane& own, std::uint64_t address) {
  process& p = process::instance();
  if (!of_another_device(own, address)) return nullptr;
  const auto block = p.memory().addresses().find(address);
  if (!block || block->kind != memory_kind::device) return nullptr;
  context_state* context = p.objects().find_context(block->context);
  return context && context->active.load(std::memory_order_acquire) ? context : nullptr;
}

void reach(lane& own, std::uint64_t address) {
  const context_state* there = owner_elsewhere(own, address);
  if (!there) return;
  request_of<api::opcode::cuCtxEnablePeerAccess> r(
      own, marshal::peer_body{there->handle, there->device, marshal::peer_access_for_copies});
  (void)r.call();
}

CUresult over_there(lane& own, context_state& there, CUstream stream, marshal::flavour how,
                    const std::function<CUresult(CUstream)>& copy) {
  const CUstream standard = marshal::per_thread(how) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  const CUstream here = stream ? stream : standard;
  mark before, after;
  CUresult code = before.record(here);
  if (code != CUDA_SUCCESS) return code;
  {
    const visit there_now(own, there);
    if (marshal::on_stream(how)) {
      code = on_a_stream_of_its_own(before, after, copy);
    } else {
      code = before.hold_back(standard);
      if (code == CUDA_SUCCESS) code = copy(nullptr);
      if (code == CUDA_SUCCESS) code = after.record(standard);  // within a device it may not be over yet
    }
  }
  return code == CUDA_SUCCESS ? after.hold_back(here) : code;
}

std::optional<CUresult> copy_elsewhere(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream,
                                       marshal::flavour how) {
  lane& own = this_lane();
  context_state *there = owner_elsewhere(own, to), *whence = owner_elsewhere(own, from);
  if ((!there && !whence) || size == 0 || !may_go_elsewhere(how)) return std::nullopt;
  if (marshal::on_stream(how) && stream_captures(own, stream, marshal::per_thread(how)))
    return reach(own, there ? to : from), std::nullopt;
  if (leaves_its_block(to, size) || leaves_its_block(from, size)) return CUDA_ERROR_INVALID_VALUE;
  if (there && whence && there->device == whence->device) {
    return over_there(own, *there, stream, how,
                      [&](CUstream side) { return copy_within(to, from, size, side, how); });
  }
  const context_state& here = *own.owner();
  return copy_across(to, there ? *there : here, from, whence ? *whence : here, size, stream, how);
}

}  // namespace outboard::frontend::cuda
