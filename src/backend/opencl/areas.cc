// Handlers of transfer areas.
#include "backend/opencl/ends.hh"
#include "backend/opencl/short_wait.hh"
#include "backend/session/session_core.hh"

namespace outboard::backend::opencl::ends {

using namespace marshal::opencl;

outcome open_area(call& c) {
  area_body body;
  if (!take_all(c, body) || body.number == 0 || body.size == 0) return outcome::malformed();
  if (body.block && (body.size % body.block || body.size / body.block > transfer_area::most_blocks))
    return outcome::malformed();
  if (!c.core.passes_descriptors()) return outcome::answer(CL_INVALID_OPERATION);
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code != CL_SUCCESS) return outcome::answer(code);
  if (const auto file = own(c).areas().open(body, context, code))
    c.core.send_descriptor(c.header.ticket, *file);
  return outcome::answer(code);
}

/// Perhaps of one that could not be had.
outcome close_area(call& c) {
  close_area_body body;
  if (!take_all(c, body)) return outcome::malformed();
  return outcome::answer(own(c).areas().close(body.number) ? CL_SUCCESS : CL_INVALID_VALUE);
}

/// What the block's command came to; the client has its bytes then. Posts before this request have been
/// carried out, whatever lane they came over.
outcome await_area(call& c) {
  await_area_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto area = own(c).areas().find(body.number);
  if (!area) return outcome::malformed();
  auto [done, code] = area->last_use(body.block);
  if (done) {
    const api::opencl::function_table& table = own(c).table();
    if (!complete_soon(c, {&done, 1})) {
      c.give_up_turn();
      if (!body.patient) complete_in_a_moment(table, done);
    }
    if (body.patient) code = table.clWaitForEvents(1, &done);
    table.clReleaseEvent(done);
  }
  marshal::put_body(c.reply, area->busy());
  return outcome::answer(code);
}

}  // namespace outboard::backend::opencl::ends
