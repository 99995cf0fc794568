#include "backend/cuda/chapters/launch.hh"

#include <cstring>

#include "backend/cuda/cuda_session.hh"
#include "backend/cuda/ends.hh"
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

CUlaunchConfig configuration(const marshal::launch_head& head, native_attributes& attributes,
                             CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = head.grid[0], config.gridDimY = head.grid[1], config.gridDimZ = head.grid[2];
  config.blockDimX = head.block[0], config.blockDimY = head.block[1], config.blockDimZ = head.block[2];
  config.sharedMemBytes = head.shared;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = attributes.count();
  return config;
}

CUresult launch(const api::driver_table& driver, const marshal::launch_body& l, native_attributes& attributes,
                CUfunction function, CUstream stream) {
  const marshal::launch_head& head = l.head;
  const std::span<const std::byte> parameters = l.parameters.shown();
  std::size_t size = parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(parameters.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void** packed = size ? extra : nullptr;
  if (head.extended || head.cooperative) {
    // The cooperative entry takes parameters one by one only; as an attribute they may be packed.
    if (head.cooperative) attributes.add_cooperative();
    const auto entry = head.per_thread ? driver.cuLaunchKernelEx_ptsz : driver.cuLaunchKernelEx;
    if (!entry) return CUDA_ERROR_NOT_SUPPORTED;
    const CUlaunchConfig config = configuration(head, attributes, stream);
    return entry(&config, function, nullptr, packed);
  }
  const auto entry = head.per_thread ? driver.cuLaunchKernel_ptsz : driver.cuLaunchKernel;
  if (!entry) return CUDA_ERROR_NOT_SUPPORTED;
  return entry(function, head.grid[0], head.grid[1], head.grid[2], head.block[0], head.block[1],
               head.block[2], head.shared, stream, nullptr, packed);
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
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult native_attributes::take(const marshal::launch_attributes& arrived, object_tables& objects) {
  CUresult code = CUDA_SUCCESS;
  count_ = static_cast<unsigned>(arrived.size());
  for (unsigned i = 0; i < count_; ++i) {
    const marshal::launch_attribute one = arrived[i];
    CUlaunchAttribute& a = values_[i];
    std::memset(&a, 0, sizeof a);
    a.id = static_cast<CUlaunchAttributeID>(one.id);
    static_assert(sizeof a.value == sizeof one.value);
    std::memcpy(&a.value, one.value.data(), sizeof a.value);
    switch (one.id) {
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
        if (is_plain_attribute(one.id)) break;
        log::debug("launch attribute ", one.id, " is not known: its launch is refused");
        std::memset(&a, 0, sizeof a);
        code = refusal_of_attribute(one.id);
        break;
    }
  }
  return code;
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

CUresult make_launch(const api::driver_table& driver, object_tables& objects, const marshal::launch_body& l,
                     CUresult refused, launch_place& where) {
  native_attributes attributes;
  CUresult code = attributes.take(l.attributes, objects);
  if (refused != CUDA_SUCCESS) code = refused;
  CUfunction function = nullptr;
  if (code == CUDA_SUCCESS) code = objects.resolve(l.head.kernel, function);
  if (code == CUDA_SUCCESS) code = objects.resolve_stream(l.head.stream, where.stream);
  where.per_thread = l.head.per_thread;
  return code == CUDA_SUCCESS ? launch(driver, l, attributes, function, where.stream) : code;
}

namespace ends {

outcome cuLaunchKernel(call& c, const marshal::launch_body& body) {
  launch_place where;
  const CUresult code = make_launch(c.driver(), c.objects(), body, c.refused, where);
  c.works_on(where.stream, where.per_thread);
  c.session.unseen().launched(c.header.context);
  return outcome::answer(code);
}

outcome cuLaunchKernelEx(call& c, const marshal::launch_body& body) { return cuLaunchKernel(c, body); }

}  // namespace ends
}  // namespace outboard::backend
