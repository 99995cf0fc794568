#include <cstring>

#include "backend/cuda/ends.hh"
#include "backend/cuda/launch_decoding.hh"
#include "backend/cuda/session.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

template <class Event>
void translate(Event& event, object_tables& objects, CUresult& code) {
  CUevent native = nullptr;
  const CUresult found = objects.resolve(reinterpret_cast<std::uint64_t>(event), native);
  if (found != CUDA_SUCCESS && code == CUDA_SUCCESS) code = found;
  event = native;
}

CUlaunchConfig configuration(arrived_launch& l, CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = l.grid[0], config.gridDimY = l.grid[1], config.gridDimZ = l.grid[2];
  config.blockDimX = l.block[0], config.blockDimY = l.block[1], config.blockDimZ = l.block[2];
  config.sharedMemBytes = l.shared;
  config.hStream = stream;
  config.attrs = l.attributes.data();
  config.numAttrs = l.attributes.count();
  return config;
}

CUresult launch(const api::driver_table& driver, arrived_launch& l, CUfunction function, CUstream stream) {
  std::size_t size = l.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(l.parameters.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void** packed = size ? extra : nullptr;
  if (l.extended || l.cooperative) {
    // The cooperative entry takes parameters one by one only; as an attribute they may be packed.
    if (l.cooperative) l.attributes.add_cooperative();
    const auto entry = l.per_thread ? driver.cuLaunchKernelEx_ptsz : driver.cuLaunchKernelEx;
    if (!entry) return CUDA_ERROR_NOT_SUPPORTED;
    const CUlaunchConfig config = configuration(l, stream);
    return entry(&config, function, nullptr, packed);
  }
  const auto entry = l.per_thread ? driver.cuLaunchKernel_ptsz : driver.cuLaunchKernel;
  if (!entry) return CUDA_ERROR_NOT_SUPPORTED;
  return entry(function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared,
               stream, nullptr, packed);
}

}  // namespace

bool is_plain_attribute(std::uint32_t id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // an address of the device, as a hint
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return true;
    default:
      return false;
  }
}

CUresult refusal_of_attribute(std::uint32_t id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool hide_handles(std::uint32_t id, CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return value.programmaticEvent.event = nullptr, true;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return value.launchCompletionEvent.event = nullptr, true;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return value.deviceUpdatableKernelNode.devNode = nullptr, true;
    default:
      return is_plain_attribute(id);
  }
}

bool native_attributes::take(wire::reader& from, object_tables& objects, CUresult& code) {
  const auto n = from.get<std::uint64_t>();
  if (n > marshal::max_launch_attributes) return false;
  count_ = static_cast<unsigned>(n);
  for (unsigned i = 0; i < count_; ++i) {
    CUlaunchAttribute& a = values_[i];
    std::memset(&a, 0, sizeof a);
    const auto [id, padding, value] = from.get<marshal::launch_attribute>();
    if (!from.ok()) return false;
    a.id = static_cast<CUlaunchAttributeID>(id);
    static_assert(sizeof a.value == sizeof value);
    std::memcpy(&a.value, value.data(), sizeof a.value);
    switch (id) {
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        translate(a.value.programmaticEvent.event, objects, code);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        translate(a.value.launchCompletionEvent.event, objects, code);
        break;
      // The driver would write a node through a pointer of the peer's.
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (a.value.deviceUpdatableKernelNode.deviceUpdatable) code = CUDA_ERROR_NOT_SUPPORTED;
        a.value.deviceUpdatableKernelNode.devNode = nullptr;
        break;
      default:
        if (is_plain_attribute(id)) break;
        log::debug("launch attribute ", id, " is not known: its launch is refused");
        std::memset(&a, 0, sizeof a);
        code = refusal_of_attribute(id);
        break;
    }
  }
  return true;
}

void native_attributes::add_cooperative() {
  for (unsigned i = 0; i < count_; ++i) {
    if (values_[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return;
  }
  CUlaunchAttribute& a = values_[count_++];
  std::memset(&a, 0, sizeof a);
  a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a.value.cooperative = 1;
}

bool arrived_launch::take(wire::reader& from, object_tables& objects, CUresult& code) {
  static_cast<marshal::launch_head&>(*this) = marshal::take_body<marshal::launch_head>(from);
  if (!attributes.take(from, objects, code)) return false;
  parameters = from.sized(marshal::max_parameter_bytes);
  return from.finished();
}

std::optional<CUresult> make_launch(const api::driver_table& driver, object_tables& objects,
                                    wire::reader& from, CUresult refused, launch_place& where) {
  arrived_launch l;
  CUresult code = refused;
  if (!l.take(from, objects, code)) return std::nullopt;
  CUfunction function = nullptr;
  if (code == CUDA_SUCCESS) code = objects.resolve(l.kernel, function);
  if (code == CUDA_SUCCESS) code = objects.resolve_stream(l.stream, where.stream);
  where.per_thread = l.per_thread;
  where.kernel = l.kernel;
  return code == CUDA_SUCCESS ? launch(driver, l, function, where.stream) : code;
}

namespace ends {

outcome cuLaunchKernel(call& c) {
  launch_place where;
  const auto code = make_launch(c.driver(), c.objects(), c.body, c.refused, where);
  if (!code) return outcome::malformed();
  c.works_on(where.stream, where.per_thread);
  c.session.unseen().launched(c.header.context);
  if (*code == CUDA_SUCCESS) c.session.uses().of_kernel(c.objects(), where.kernel, c.header);
  return outcome::answer(*code);
}

outcome cuLaunchKernelEx(call& c) { return cuLaunchKernel(c); }

}  // namespace ends
}  // namespace outboard::backend
