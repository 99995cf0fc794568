#include "frontend/cupti/functions.hh"

#include "api/cuda/cupti_headers.hh"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "api/cuda/functions.hh"
#include "api/cuda/work_calls.hh"
#include "api/cupti/names.hh"

namespace outboard::frontend::cupti {
namespace {

/// Of this CUPTI itself tells nothing (observed).
constexpr std::string_view untold = "cuGetExportTable";

std::uint8_t synchronizes(std::string_view name) {
  if (name.starts_with("cuEventSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  if (name.starts_with("cuStreamWaitEvent")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  if (name.starts_with("cuStreamSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  if (name.starts_with("cuCtxSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  return 0;
}

/// What a call that succeeds has made.
std::uint8_t begins(std::string_view name) {
  if (name == "cuInit") return CUPTI_CBID_RESOURCE_CU_INIT_FINISHED;
  if (name.starts_with("cuStreamCreate")) return CUPTI_CBID_RESOURCE_STREAM_CREATED;
  return 0;
}

/// What a call is about to destroy.
std::uint8_t ends(std::string_view name) {
  if (name.starts_with("cuCtxDestroy")) return CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
  if (name.starts_with("cuStreamDestroy")) return CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
  return 0;
}

// Addresses of CUDA's first version had 32 bits: `narrow` are its functions, which no program of 64 bits
// calls.
std::vector<function_traits> make_table() {
  std::vector<function_traits> table;
  for (const api::function_info& f : api::functions()) {
    const auto code = static_cast<std::size_t>(f.code);
    if (code >= table.size()) table.resize(code + 1);
    const auto starts = [&](std::string_view with) { return f.name.starts_with(with); };
    function_traits& t = table[code];
    if (f.name != untold) t.callback = api::cupti::callback_of(api::cupti::domain::driver, f.name);
    t.leaves_work = api::leaves_work(f.name);
    t.launches_graph = starts("cuGraphLaunch");
    t.one_copy = starts("cuMemcpy") && !starts("cuMemcpyBatch") && !starts("cuMemcpy3DBatch");
    if (starts("cuMemcpyHtoD")) t.host_argument = 2;
    if (starts("cuMemcpyDtoH")) t.host_argument = 1;
    t.async = f.name.find("Async") != f.name.npos;
    const bool narrow = f.name == "cuMemAlloc" || f.name == "cuMemAllocPitch" || f.name == "cuMemFree";
    t.allocates = !narrow && (starts("cuMemAlloc") || starts("cuMemHostAlloc"));
    t.releases = !narrow && starts("cuMemFree");
    t.begins = begins(f.name);
    t.ends = ends(f.name);
    t.synchronizes = synchronizes(f.name);
  }
  return table;
}

}  // namespace

const function_traits& traits_of(std::uint32_t function) {
  static const std::vector<function_traits>* const table = new std::vector(make_table());
  static const function_traits none;
  return function < table->size() ? (*table)[function] : none;
}

}  // namespace outboard::frontend::cupti
