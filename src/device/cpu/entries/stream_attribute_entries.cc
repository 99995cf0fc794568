// Entries of the chapter stream about attributes. Here they are hints that change nothing; what the program
// sets it reads back.
#include <algorithm>
#include <cstring>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

using attribute_list = decltype(stream_attributes::set);

bool of_streams(CUstreamAttrID id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return true;
    default:
      return false;
  }
}

bool makes_sense(CUstreamAttrID id, const CUstreamAttrValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
      const CUaccessPolicyWindow& window = value.accessPolicyWindow;
      return window.hitRatio >= 0 && window.hitRatio <= 1 && window.hitProp >= CU_ACCESS_PROPERTY_NORMAL &&
             window.hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
             window.missProp >= CU_ACCESS_PROPERTY_NORMAL && window.missProp <= CU_ACCESS_PROPERTY_STREAMING;
    }
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return value.memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    default:
      return true;
  }
}

CUstreamAttrValue usual(CUstreamAttrID id) {
  CUstreamAttrValue value;
  std::memset(&value, 0, sizeof value);
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  return value;
}

template <class Body>
CUresult on_stream(CUstream handle, bool per_thread, Body&& body) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_to_ask(c, handle, per_thread, s); r != CUDA_SUCCESS) return r;
    return body(c, *s);
  });
}

template <bool PerThread>
CUresult get(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* out) {
  return on_stream(handle, PerThread, [&](const context_ptr&, stream& s) -> CUresult {
    if (out == nullptr || !of_streams(id)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(s.attributes.mutex);
    const auto found = s.attributes.set.find(id);
    return *out = found != s.attributes.set.end() ? found->second : usual(id), CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult set(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return on_stream(handle, PerThread, [&](const context_ptr&, stream& s) -> CUresult {
    if (value == nullptr || !of_streams(id) || !makes_sense(id, *value)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(s.attributes.mutex);
    // Priorities are clamped to the range, which is one value here.
    return s.attributes.set[id] = id == CU_LAUNCH_ATTRIBUTE_PRIORITY ? usual(id) : *value, CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult copy(CUstream to, CUstream from) {
  return on_stream(to, PerThread, [&](const context_ptr& c, stream& target) -> CUresult {
    stream_ptr source;
    if (const CUresult r = stream_to_ask(c, from, PerThread, source); r != CUDA_SUCCESS) return r;
    attribute_list taken;
    {
      const std::lock_guard lock(source->attributes.mutex);
      taken = source->attributes.set;
    }
    const std::lock_guard lock(target.attributes.mutex);
    return target.attributes.set = std::move(taken), CUDA_SUCCESS;
  });
}

}  // namespace

void fill_stream_attribute_entries(api::driver_table& t) {
  t.cuStreamGetAttribute = get<false>;
  t.cuStreamGetAttribute_ptsz = get<true>;
  t.cuStreamSetAttribute = set<false>;
  t.cuStreamSetAttribute_ptsz = set<true>;
  t.cuStreamCopyAttributes = copy<false>;
  t.cuStreamCopyAttributes_ptsz = copy<true>;
}

}  // namespace outboard::device::cpu
