#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"

namespace outboard::backend {
namespace {

/// Attributes asked for at once: all that CUDA 13 has, with room for what a newer driver may add.
constexpr int attributes_asked = 24;
/// More parameters than any kernel has (each takes a byte of at most 32,764).
constexpr std::size_t most_parameters = 1 << 15;

/// Asks `get(&value, attribute)` for every attribute.
template <class Get>
outcome answer_attributes(call& c, Get&& get) {
  marshal::kernel_query_reply reply;
  for (int i = 0; i < attributes_asked; ++i) {
    marshal::attribute_pair& pair = reply.attributes.emplace_back();
    pair.result = get(&pair.value, static_cast<CUfunction_attribute>(i));
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

/// The function, which is worked with from now on.
CUresult function_of(call& c, std::uint64_t handle, CUfunction& function) {
  const CUresult code = c.objects().resolve(handle, function);
  if (code == CUDA_SUCCESS) c.session.uses().of_kernel(c.objects(), handle, c.header);
  return code;
}

}  // namespace

namespace ends {

outcome cuFuncGetAttribute(call& c, const marshal::kernel_query_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.kernel, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return answer_attributes(c, [&](int* value, CUfunction_attribute attribute) {
    return call_driver(c.driver().cuFuncGetAttribute, value, attribute, function);
  });
}

outcome cuKernelGetAttribute(call& c, const marshal::kernel_query_body& body) {
  CUkernel kernel = nullptr;
  if (const CUresult code = c.objects().resolve(body.kernel, kernel); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return answer_attributes(c, [&](int* value, CUfunction_attribute attribute) {
    return call_driver(c.driver().cuKernelGetAttribute, value, attribute, kernel, body.device);
  });
}

namespace {

/// What a kernel was set to is part of its records.
outcome changed(call& c, const marshal::kernel_set_body& body, CUresult code) {
  if (code == CUDA_SUCCESS) c.objects().amend(body.kernel, c.as_record());
  return outcome::answer(code);
}

}  // namespace

outcome cuFuncSetAttribute(call& c, const marshal::kernel_set_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.kernel, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const auto attribute = static_cast<CUfunction_attribute>(body.attribute);
  return changed(c, body, call_driver(c.driver().cuFuncSetAttribute, function, attribute, body.value));
}

outcome cuKernelSetAttribute(call& c, const marshal::kernel_set_body& body) {
  CUkernel kernel = nullptr;
  if (const CUresult code = c.objects().resolve(body.kernel, kernel); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const auto attribute = static_cast<CUfunction_attribute>(body.attribute);
  return changed(c, body,
                 call_driver(c.driver().cuKernelSetAttribute, attribute, body.value, kernel, body.device));
}

outcome cuFuncSetCacheConfig(call& c, const marshal::kernel_set_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.kernel, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return outcome::answer(
      call_driver(c.driver().cuFuncSetCacheConfig, function, static_cast<CUfunc_cache>(body.value)));
}

outcome cuKernelSetCacheConfig(call& c, const marshal::kernel_set_body& body) {
  CUkernel kernel = nullptr;
  if (const CUresult code = c.objects().resolve(body.kernel, kernel); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return outcome::answer(call_driver(c.driver().cuKernelSetCacheConfig, kernel,
                                     static_cast<CUfunc_cache>(body.value), body.device));
}

outcome cuFuncSetSharedMemConfig(call& c, const marshal::kernel_set_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.kernel, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return outcome::answer(
      call_driver(c.driver().cuFuncSetSharedMemConfig, function, static_cast<CUsharedconfig>(body.value)));
}

outcome cuFuncGetParamInfo(call& c, const marshal::handle_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.handle, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  marshal::layout_reply reply;
  for (std::size_t i = 0; i < most_parameters; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult code = call_driver(c.driver().cuFuncGetParamInfo, function, i, &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE) break;  // beyond the last
    if (code != CUDA_SUCCESS) return outcome::answer(code);
    reply.offsets_and_sizes.push_back(offset);
    reply.offsets_and_sizes.push_back(size);
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

outcome cuFuncLoad(call& c, const marshal::handle_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body.handle, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  return outcome::answer(call_driver(c.driver().cuFuncLoad, function));
}

outcome cuFuncIsLoaded(call& c, const marshal::handle_body& body) {
  CUfunction function = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  CUfunctionLoadingState state{};
  const CUresult code = call_driver(c.driver().cuFuncIsLoaded, &state, function);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(state)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
