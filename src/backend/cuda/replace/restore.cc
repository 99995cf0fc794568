// A CUDA session goes on in this worker: everything that the other one told is made again, at its addresses.
#include "backend/cuda/code/code.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"
#include "backend/cuda/replace/preparation.hh"
#include "backend/cuda/sharing.hh"

namespace outboard::backend {
namespace {

status map_device_memory(call& c, session_image& image, const std::vector<device_part>& all) {
  for (const device_part& p : all) {
    mapping wanted{p.address, p.size, 0, p.device, p.context, p.ticket};
    wanted.piece = std::make_shared<const unique_fd>(image.take(p.descriptor));
    CUresult code = call_driver(c.driver().cuMemImportFromShareableHandle, &wanted.memory,
                                as_handle(*wanted.piece), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (code == CUDA_SUCCESS) code = c.session.memory().adopt(wanted);
    if (code != CUDA_SUCCESS) return failure(failed_for("memory of the device cannot be had here", code));
  }
  return {};
}

status map_host_memory(call& c, session_image& image, const std::vector<host_part>& all) {
  for (const host_part& p : all) {
    CUresult code = c.session.enter_context(c.own, p.context);
    if (code == CUDA_SUCCESS)
      code = c.session.mirrors().share_again({p.address, p.size}, p.context, image.take(p.descriptor));
    if (code != CUDA_SUCCESS) return failure(failed_for("page-locked memory cannot be had here", code));
  }
  return {};
}

/// A kernel's code, and the variables with it, are placed when it is loaded: at the same time as before.
CUresult use_again(call& c, const first_use& use) {
  CUresult code = c.session.enter_context(c.own, use.context);
  if (code != CUDA_SUCCESS) return code;
  if (!use.variable.empty()) {
    CUdeviceptr address = 0;
    std::size_t size = 0;
    code = address_of_variable(c, use.id, use.variable, address, size);
    c.session.uses().of_variable(c.objects(), use);
    return code;
  }
  CUfunction function = nullptr;
  code = c.objects().resolve(use.id, function);
  if (wire::handle{use.id}.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel) &&
      code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuKernelGetFunction, &function, reinterpret_cast<CUkernel>(function));
  // An older driver loads all of a module's code with the first of it.
  if (code == CUDA_SUCCESS && c.driver().cuFuncLoad) code = call_driver(c.driver().cuFuncLoad, function);
  wire::frame_header asked;
  asked.ticket = use.ticket, asked.context = use.context;
  c.session.uses().of_kernel(c.objects(), use.id, asked);
  return code;
}

/// Both by tickets.
status carry_out_again(call& c, const std::vector<marshal::record_body>& all,
                       const std::vector<first_use>& uses) {
  auto next = uses.begin();
  const auto use_until = [&](std::uint64_t ticket) -> status {
    for (; next != uses.end() && next->ticket < ticket; ++next) {
      const CUresult code = use_again(c, *next);
      if (code != CUDA_SUCCESS) return failure(failed_for("code of it cannot be loaded here", code));
    }
    return {};
  };
  for (const marshal::record_body& r : all) {
    OUTBOARD_TRY(use_until(r.ticket));
    const CUresult code = replay_record(c, r);
    if (code == CUDA_SUCCESS) continue;
    const api::function_info* const function = api::find_function(r.opcode);
    return failure(failed_for(std::string(function ? function->name : "a request") + " fails here", code));
  }
  return use_until(~std::uint64_t{0});
}

}  // namespace

std::optional<fresh_code> cuda_session::take_loaded(std::uint64_t id) {
  return terms_.ahead ? terms_.ahead->take(id) : std::nullopt;
}

status cuda_session::restore(session_image& image, wire::reader& from) {
  if (const auto facts = begin(); !facts.ok()) return facts.error();
  auto all = marshal::take_body<cuda_part>(from);
  if (!from.finished()) return failure("the session came malformed");
  if (all.own_addresses != facts_.own_addresses) return failure("its addresses cannot be had here");
  call_of_our_own ours(*this, core_);
  call& c = ours.it;
  OUTBOARD_TRY(map_device_memory(c, image, all.device));
  OUTBOARD_TRY(carry_out_again(c, all.contexts, {}));
  OUTBOARD_TRY(map_host_memory(c, image, all.host));
  OUTBOARD_TRY(carry_out_again(c, all.rest, all.uses));
  OUTBOARD_TRY(fill_variables(c, all.variables));
  if (terms_.ahead) terms_.ahead->drop_rest();
  quota_.settle();
  for (const tombstone_part& t : all.tombstones) {
    if (!objects_.fail(t.id, t.code)) return failure("the session came malformed");
  }
  for (const lane_part& l : all.lanes) {
    auto* const again = static_cast<cuda_lane*>(core_.lane_again(l.lane));
    if (!again) return failure("the session came malformed");
    again->deferred = l.deferred;
  }
  return {};
}

}  // namespace outboard::backend
