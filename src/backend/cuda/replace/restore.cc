// A CUDA session goes on in this worker: everything that the other one told is made again, at its addresses.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"
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

status carry_out_again(call& c, std::vector<marshal::record_body>& all) {
  for (marshal::record_body& r : all) {
    wire::frame_header header;
    header.kind = wire::frame_kind::call;
    header.opcode = r.opcode;
    header.ticket = r.ticket;
    header.context = r.context;
    c.take_upload();
    if (!c.session.reserve_upload(r.image.size())) return failure("its images are too large");
    const auto bytes = [](const std::vector<std::uint8_t>& from) {
      const auto all_of = std::as_bytes(std::span(from));
      return std::vector<std::byte>(all_of.begin(), all_of.end());
    };
    c.own.upload = bytes(r.image);
    const CUresult code = c.session.replay(c.own, header, bytes(r.payload));
    if (code == CUDA_SUCCESS) continue;
    const api::function_info* const function = api::find_function(r.opcode);
    return failure(failed_for(std::string(function ? function->name : "a request") + " fails here", code));
  }
  return {};
}

/// Pointers to a variable may be anywhere: it has to lie where it did.
status fill_variables(call& c, const std::vector<variable_part>& all) {
  const auto here = variables_of(c, false);
  if (!here.ok()) return here.error();
  if (here->size() != all.size()) return failure("its modules have other variables here");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const variable_part &then = all[i], &now = (*here)[i];
    if (then.code != now.code || then.context != now.context || then.name != now.name ||
        then.address != now.address)
      return failure("the driver places the variable " + then.name + " elsewhere here (" +
                     std::to_string(now.address) + ", not " + std::to_string(then.address) + ")");
    CUresult code = c.session.enter_context(c.own, then.context);
    if (code == CUDA_SUCCESS)
      code = call_driver(c.driver().cuMemcpyHtoD_v2, then.address, then.content.data(), then.content.size());
    if (code != CUDA_SUCCESS)
      return failure(failed_for("the variable " + then.name + " cannot be written", code));
  }
  return {};
}

}  // namespace

status cuda_session::restore(session_image& image, wire::reader& from) {
  if (const auto facts = begin(); !facts.ok()) return facts.error();
  auto all = marshal::take_body<cuda_part>(from);
  if (!from.finished()) return failure("the session came malformed");
  if (all.own_addresses != facts_.own_addresses) return failure("its addresses cannot be had here");
  call_of_our_own ours(*this, core_);
  call& c = ours.it;
  OUTBOARD_TRY(map_device_memory(c, image, all.device));
  OUTBOARD_TRY(carry_out_again(c, all.contexts));
  OUTBOARD_TRY(map_host_memory(c, image, all.host));
  OUTBOARD_TRY(carry_out_again(c, all.rest));
  OUTBOARD_TRY(fill_variables(c, all.variables));
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
