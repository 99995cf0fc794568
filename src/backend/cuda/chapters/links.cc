#include <algorithm>

#include "backend/cuda/code/jit_options.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

/// Well below the largest frame.
constexpr std::uint64_t piece = 8 << 20;

/// What lives with a CUlinkState: the driver writes to the option arrays until it is destroyed.
struct link_work {
  jit_arguments options;
  const std::uint8_t* image = nullptr;  ///< the driver's, once linked
  std::size_t image_size = 0;
};

link_work* work_of(call& c, std::uint64_t state) {
  const server_object* object = c.objects().find(api::handle_kind::link_state, state);
  return object ? static_cast<link_work*>(object->extra.get()) : nullptr;
}

}  // namespace

namespace ends {

outcome cuLinkCreate_v2(call& c, const marshal::link_create_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  auto work = std::make_shared<link_work>();
  if (!work->options.take(body.options)) return outcome::malformed();
  CUlinkState native = nullptr;
  const CUresult code = call_driver(c.driver().cuLinkCreate_v2, work->options.count(),
                                    work->options.options(), work->options.values(), &native);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return c.objects().create(body.handle, native, c.as_record(), std::move(work)) ? outcome::answer(code)
                                                                                 : outcome::malformed();
}

outcome cuLinkAddData_v2(call& c, const marshal::link_add_body& body) {
  std::vector<std::byte> data = c.take_upload();
  if (data.size() != body.size) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUlinkState state = nullptr;
  if (const CUresult code = c.objects().resolve(body.state, state); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  jit_arguments jit;
  if (!jit.take(body.options)) return outcome::malformed();
  const CUresult code = call_driver(
      c.driver().cuLinkAddData_v2, state, static_cast<CUjitInputType>(body.type), data.data(), data.size(),
      body.name.empty() ? nullptr : body.name.c_str(), jit.count(), jit.options(), jit.values());
  marshal::link_reply reply;
  reply.state = work_of(c, body.state)->options.results();
  reply.options = jit.results();
  marshal::put_body(c.reply, reply);
  c.keep_outputs_on_error = true;
  return outcome::answer(code);
}

outcome cuLinkComplete(call& c, const marshal::link_complete_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUlinkState state = nullptr;
  if (const CUresult code = c.objects().resolve(body.state, state); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  link_work& work = *work_of(c, body.state);
  CUresult code = CUDA_SUCCESS;
  if (!work.image) {
    void* image = nullptr;
    std::size_t size = 0;
    code = call_driver(c.driver().cuLinkComplete, state, &image, &size);
    if (code == CUDA_SUCCESS) work.image = static_cast<const std::uint8_t*>(image), work.image_size = size;
  }
  if (body.offset > work.image_size) return outcome::malformed();
  marshal::link_complete_reply reply;
  reply.state = work.options.results();
  reply.image_size = work.image_size;
  if (work.image) {
    const std::uint64_t n = std::min(piece, work.image_size - body.offset);
    reply.piece.assign(work.image + body.offset, work.image + body.offset + n);
  }
  marshal::put_body(c.reply, reply);
  c.keep_outputs_on_error = true;
  return outcome::answer(code);
}

outcome cuLinkDestroy(call& c, const marshal::handle_body& body) {
  CUlinkState state = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, state); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  const std::shared_ptr<void> arrays = c.objects().find(api::handle_kind::link_state, body.handle)->extra;
  c.objects().erase(body.handle);
  return outcome::answer(call_driver(c.driver().cuLinkDestroy, state));
}

}  // namespace ends
}  // namespace outboard::backend
