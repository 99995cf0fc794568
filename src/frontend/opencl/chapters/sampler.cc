#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

bool known_addressing(cl_addressing_mode mode) {
  return mode >= CL_ADDRESS_NONE && mode <= CL_ADDRESS_MIRRORED_REPEAT;
}
bool known_filter(cl_filter_mode mode) { return mode == CL_FILTER_NEAREST || mode == CL_FILTER_LINEAR; }

/// Devices without images have no samplers either.
bool has_images(const context_info& context) {
  return std::any_of(context.devices.begin(), context.devices.end(), [](cl_device_id device) {
    return find<device_info>(device)->number<cl_bool>(CL_DEVICE_IMAGE_SUPPORT) != CL_FALSE;
  });
}

cl_sampler make_sampler(cl_context context, std::unique_ptr<sampler_info> info, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (!known_addressing(info->addressing) || !known_filter(info->filter) ||
      (info->normalised != CL_TRUE && info->normalised != CL_FALSE))
    return fail(errcode_ret, CL_INVALID_VALUE);
  if (!has_images(*in)) return fail(errcode_ret, CL_INVALID_OPERATION);
  info->context = needed(context);
  const sampler_info& made = *info;
  return create<cl_sampler>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    return remote<opcode::clCreateSampler>(id, context, made.normalised, made.addressing, made.filter,
                                           static_cast<cl_int*>(nullptr));
  });
}

}  // namespace

cl_sampler clCreateSampler(cl_context context, cl_bool normalised, cl_addressing_mode addressing,
                           cl_filter_mode filter, cl_int* errcode_ret) {
  auto info = std::make_unique<sampler_info>();
  info->normalised = normalised, info->addressing = addressing, info->filter = filter;
  return make_sampler(context, std::move(info), errcode_ret);
}

cl_sampler clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties* properties,
                                         cl_int* errcode_ret) {
  auto info = std::make_unique<sampler_info>();
  for (const auto* p = properties; p && *p; p += 2) {
    info->properties.insert(info->properties.end(), {p[0], p[1]});
    if (p[0] == CL_SAMPLER_NORMALIZED_COORDS) {
      info->normalised = static_cast<cl_bool>(p[1]);
    } else if (p[0] == CL_SAMPLER_ADDRESSING_MODE) {
      info->addressing = static_cast<cl_addressing_mode>(p[1]);
    } else if (p[0] == CL_SAMPLER_FILTER_MODE) {
      info->filter = static_cast<cl_filter_mode>(p[1]);
    } else {
      return fail(errcode_ret, CL_INVALID_VALUE);
    }
  }
  if (properties) info->properties.push_back(0);
  return make_sampler(context, std::move(info), errcode_ret);
}

cl_int clRetainSampler(cl_sampler sampler) { return retain(sampler); }
cl_int clReleaseSampler(cl_sampler sampler) { return release(sampler); }

cl_int clGetSamplerInfo(cl_sampler sampler, cl_sampler_info name, std::size_t size, void* value,
                        std::size_t* wanted) {
  const auto* const info = find<sampler_info>(sampler);
  if (!info) return CL_INVALID_SAMPLER;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_SAMPLER_REFERENCE_COUNT:
      return to.one(references(sampler));
    case CL_SAMPLER_CONTEXT:
      return to.one(info->context.get());
    case CL_SAMPLER_NORMALIZED_COORDS:
      return to.one(info->normalised);
    case CL_SAMPLER_ADDRESSING_MODE:
      return to.one(info->addressing);
    case CL_SAMPLER_FILTER_MODE:
      return to.one(info->filter);
    case CL_SAMPLER_PROPERTIES:
      return to.list(info->properties);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace outboard::frontend::opencl::ends
