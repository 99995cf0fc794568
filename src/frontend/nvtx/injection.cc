#include "frontend/nvtx/injection.hh"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/log.hh"
#include "frontend/nvtx/headers.hh"
#include "frontend/nvtx/ranges.hh"
#include "frontend/nvtx/text.hh"
#include "frontend/profile/profile.hh"

namespace outboard::frontend::nvtx {
namespace {

/// The null handle is the domain of annotations that name none.
annotation_domain& domain_of(nvtxDomainHandle_t handle) {
  return handle ? *reinterpret_cast<annotation_domain*>(handle) : annotation_domain::unnamed();
}

template <class Character>
reader plain(const Character* message) {
  return [message] {
    annotation a;
    a.text = text_of(message);
    return a;
  };
}

reader attributed(const nvtxEventAttributes_t* attributes) {
  return [attributes] { return read(attributes, annotation_domain::unnamed()); };
}

template <class Character>
void name_text(named_thing what, std::uint64_t handle, const Character* text) {
  name(what, handle, [text] { return text_of(text); });
}

template <class Handle>
std::uint64_t number(Handle* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

/// What a handle points to is never destroyed. It is known here, so that who looks for leaks finds none.
template <class T>
T* kept(T* made) {
  struct node {
    T* what;
    node* older;
  };
  static constinit std::atomic<node*> newest{nullptr};
  auto* const fresh = new node{made, newest.load(std::memory_order_relaxed)};
  while (!newest.compare_exchange_weak(fresh->older, fresh, std::memory_order_release)) {
  }
  return made;
}

template <class Character>
nvtxStringHandle_t register_string(const Character* text) {
  return reinterpret_cast<nvtxStringHandle_t>(kept(new std::string(text_of(text)))->data());
}
template <class Character>
nvtxDomainHandle_t create_domain(const Character* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(kept(new annotation_domain(text_of(name))));
}

// NVTX numbers a class and a kind in it; those of these two classes stand in headers that want all of CUDA's.
constexpr std::int32_t cuda_resource(std::int32_t kind) { return 4 << 16 | kind; }
constexpr std::int32_t runtime_resource(std::int32_t kind) { return 5 << 16 | kind; }

/// A resource of a kind that stands in profiles gets its name there.
void name_resource(const nvtxResourceAttributes_t& about) {
  const auto text = [&] { return message(about.messageType, about.message.ascii); };
  const std::uint64_t handle = about.identifier.ullValue;
  switch (about.identifierType) {
    case NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE:
      return name(named_thing::thread, handle, text);
    case cuda_resource(1):
    case runtime_resource(0):
      return name(named_thing::device, static_cast<std::uint32_t>(handle), text);
    case cuda_resource(2):
      return name(named_thing::context, handle, text);
    case cuda_resource(3):
    case runtime_resource(1):
      return name(named_thing::stream, handle, text);
    default:
      return;
  }
}

/// Each does what NVTX's header says of the function of its name.
namespace ends {

void nvtxMarkEx(const nvtxEventAttributes_t* a) { mark(annotation_domain::unnamed(), attributed(a)); }
void nvtxMarkA(const char* text) { mark(annotation_domain::unnamed(), plain(text)); }
void nvtxMarkW(const wchar_t* text) { mark(annotation_domain::unnamed(), plain(text)); }

nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t* a) {
  return start(annotation_domain::unnamed(), attributed(a));
}
nvtxRangeId_t nvtxRangeStartA(const char* text) { return start(annotation_domain::unnamed(), plain(text)); }
nvtxRangeId_t nvtxRangeStartW(const wchar_t* text) {
  return start(annotation_domain::unnamed(), plain(text));
}
void nvtxRangeEnd(nvtxRangeId_t id) { end(id); }

int nvtxRangePushEx(const nvtxEventAttributes_t* a) {
  return push(annotation_domain::unnamed(), attributed(a));
}
int nvtxRangePushA(const char* text) { return push(annotation_domain::unnamed(), plain(text)); }
int nvtxRangePushW(const wchar_t* text) { return push(annotation_domain::unnamed(), plain(text)); }
int nvtxRangePop() { return pop(annotation_domain::unnamed()); }

void nvtxNameCategoryA(std::uint32_t category, const char* text) {
  annotation_domain::unnamed().name_category(category, text_of(text));
}
void nvtxNameCategoryW(std::uint32_t category, const wchar_t* text) {
  annotation_domain::unnamed().name_category(category, text_of(text));
}
void nvtxNameOsThreadA(std::uint32_t thread, const char* text) {
  name_text(named_thing::thread, thread, text);
}
void nvtxNameOsThreadW(std::uint32_t thread, const wchar_t* text) {
  name_text(named_thing::thread, thread, text);
}

void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  mark(domain_of(domain), attributed(a));
}
nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return start(domain_of(domain), attributed(a));
}
void nvtxDomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  return push(domain_of(domain), attributed(a));
}
int nvtxDomainRangePop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }

nvtxResourceHandle_t nvtxDomainResourceCreate(nvtxDomainHandle_t, nvtxResourceAttributes_t* about) {
  if (!about) return nullptr;
  if (about->size >= sizeof(nvtxResourceAttributes_t)) name_resource(*about);
  // A name holds as long as the process, so there is nothing to keep; programs take null for a failure.
  static std::byte any;
  return reinterpret_cast<nvtxResourceHandle_t>(&any);
}
void nvtxDomainResourceDestroy(nvtxResourceHandle_t) {}

void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, std::uint32_t category, const char* text) {
  domain_of(domain).name_category(category, text_of(text));
}
void nvtxDomainNameCategoryW(nvtxDomainHandle_t domain, std::uint32_t category, const wchar_t* text) {
  domain_of(domain).name_category(category, text_of(text));
}
nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return register_string(text);
}
nvtxStringHandle_t nvtxDomainRegisterStringW(nvtxDomainHandle_t, const wchar_t* text) {
  return register_string(text);
}
nvtxDomainHandle_t nvtxDomainCreateA(const char* text) { return create_domain(text); }
nvtxDomainHandle_t nvtxDomainCreateW(const wchar_t* text) { return create_domain(text); }
// Annotations of it may wait to be written.
void nvtxDomainDestroy(nvtxDomainHandle_t) {}
void nvtxInitialize(const void*) {}

void nvtxNameCuDeviceA(nvtx_CUdevice device, const char* text) {
  name_text(named_thing::device, static_cast<std::uint32_t>(device), text);
}
void nvtxNameCuDeviceW(nvtx_CUdevice device, const wchar_t* text) {
  name_text(named_thing::device, static_cast<std::uint32_t>(device), text);
}
void nvtxNameCuContextA(nvtx_CUcontext context, const char* text) {
  name_text(named_thing::context, number(context), text);
}
void nvtxNameCuContextW(nvtx_CUcontext context, const wchar_t* text) {
  name_text(named_thing::context, number(context), text);
}
void nvtxNameCuStreamA(nvtx_CUstream stream, const char* text) {
  name_text(named_thing::stream, number(stream), text);
}
void nvtxNameCuStreamW(nvtx_CUstream stream, const wchar_t* text) {
  name_text(named_thing::stream, number(stream), text);
}
void nvtxNameCudaDeviceA(int device, const char* text) { nvtxNameCuDeviceA(device, text); }
void nvtxNameCudaDeviceW(int device, const wchar_t* text) { nvtxNameCuDeviceW(device, text); }
void nvtxNameCudaStreamA(nvtx_cudaStream_t stream, const char* text) { nvtxNameCuStreamA(stream, text); }
void nvtxNameCudaStreamW(nvtx_cudaStream_t stream, const wchar_t* text) { nvtxNameCuStreamW(stream, text); }

}  // namespace ends

void tell(const char* name, const void* parameters, const void* result) {
  annotation_observer* const tool = annotation_tool.load(std::memory_order_acquire);
  if (tool && tool->wants_annotation_calls()) tool->annotation_called({name, parameters, result});
}

/// What stands in NVTX's table: `Of::end`, of which the profiler in the program is told.
template <class Of, class F>
struct entry;
template <class Of, class R, class... A>
struct entry<Of, R (*const)(A...)> {
  static R call(A... arguments) {
    // As CUPTI's structs of arguments lie: each in eight bytes.
    std::array<std::uint64_t, sizeof...(A) + 1> parameters{};
    std::size_t at = 0;
    (std::memcpy(&parameters[at++], &arguments, sizeof arguments), ...);
    if constexpr (std::is_void_v<R>) {
      Of::end(arguments...);
      tell(Of::name, parameters.data(), nullptr);
    } else {
      const R result = Of::end(arguments...);
      tell(Of::name, parameters.data(), &result);
      return result;
    }
  }
};

#define TYPE_OF_CORE(function) function##_impl_fntype
#define TYPE_OF_CORE2(function) function##_impl_fntype
#define TYPE_OF_CUDA(function) function##_fakeimpl_fntype
#define TYPE_OF_CUDART(function) function##_fakeimpl_fntype
#define ANNOTATES(module, function)                                                                \
  static_assert(std::is_same_v<decltype(&ends::nvtx##function), TYPE_OF_##module(nvtx##function)>, \
                "nvtx" #function " is not as NVTX declares it");                                   \
  struct of_##function {                                                                           \
    static constexpr const char* name = "nvtx" #function;                                          \
    static constexpr auto end = &ends::nvtx##function;                                             \
  };
#include "frontend/nvtx/functions.def"

struct place {
  NvtxCallbackModule module;
  unsigned number;
  NvtxFunctionPointer function;
};

#define ANNOTATES(module, function)                          \
  {NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##function, \
   reinterpret_cast<NvtxFunctionPointer>(&entry<of_##function, decltype(of_##function::end)>::call)},
const place places[] = {
#include "frontend/nvtx/functions.def"
};

}  // namespace

int attach(const void* (*tables)(std::uint32_t id)) {
  const auto* const callbacks =
      tables ? static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS)) : nullptr;
  if (!callbacks || callbacks->struct_size < sizeof *callbacks || !callbacks->GetModuleFunctionTable) {
    log::warn("NVTX: the program's has not the tables that its header describes; its ranges are not shown");
    return 0;
  }
  profile::expect_annotations(open_ranges);
  NvtxCallbackModule module = NVTX_CB_MODULE_INVALID;
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  for (const place& p : places) {
    if (p.module != module) {
      module = p.module;
      if (!callbacks->GetModuleFunctionTable(module, &table, &size)) table = nullptr, size = 0;
    }
    if (table && p.number < size && table[p.number]) *table[p.number] = p.function;
  }
  return 1;
}

}  // namespace outboard::frontend::nvtx
