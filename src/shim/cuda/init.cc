// The one init of the front-end library: lists the transports, connects the export tables to the front-end,
// hooks fork and exit. No thread, no connection and no file before the program's first CUDA call.
#include <dlfcn.h>
#include <stdlib.h>
#include <strings.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "base/log.hh"
#include "base/version.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/tables/board_layout.hh"
#include "frontend/cuda/tables/cls.hh"
#include "frontend/cuda/tables/export_tables.hh"
#ifdef OUTBOARD_HAS_CUPTI
#include "frontend/cupti/entries.hh"
#endif
#ifdef OUTBOARD_HAS_NVTX
#include "frontend/nvtx/injection.hh"
#endif
#include "frontend/process.hh"
#include "frontend/trace.hh"
#include "shim/cuda/exports.hh"
#include "transport/list/list.hh"

/// By this the back-end recognises, and refuses, our own library where it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::process;

frontend::cuda::device_identity identity_of(std::size_t ordinal) {
  const marshal::device_facts& facts = process::instance().facts().devices[ordinal];
  const auto attribute = [&](CUdevice_attribute id) {
    return facts.attributes[static_cast<std::size_t>(id)].value;
  };
  frontend::cuda::device_identity identity;
  static_assert(sizeof identity.uuid == sizeof facts.uuid);
  std::memcpy(&identity.uuid, facts.uuid.data(), sizeof identity.uuid);
  identity.pci_domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  identity.pci_bus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  identity.pci_device = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  return identity;
}

frontend::cuda::export_hooks hooks() {
  frontend::cuda::export_hooks h{};
  h.driver_version = [] { return process::instance().facts().driver_version; };
  h.device_count = [] { return process::instance().facts().devices.size(); };
  h.device = identity_of;
  h.primary_handle = [](CUdevice device) {
    const frontend::context_state* context = process::instance().objects().primary(device);
    return context ? reinterpret_cast<CUcontext>(context->handle) : nullptr;
  };
  h.current_context = [] { return reinterpret_cast<CUcontext>(frontend::this_lane().context_handle()); };
  h.create_context = [](CUcontext* out, unsigned flags, CUdevice device) {
    return frontend::cuda::ends::cuCtxCreate_v2(out, flags, device);
  };
  h.load_module = [](CUmodule* out, const void* image) {
    return frontend::cuda::ends::cuModuleLoadData(out, image);
  };
  h.board_layout = frontend::cuda::board_layout;
  h.module_functions = frontend::cuda::for_each_function;
  h.log = [](const char* line) { log::warn(line); };
  h.complain = [](const char* line) { log::error(line); };
  return h;
}

#ifdef OUTBOARD_HAS_CUPTI
/// What our libcupti asks for.
void* find_tool(const char* name, int major) {
#ifdef OUTBOARD_HAS_NVTX
  if (std::strcmp(name, "InitializeInjectionNvtx2") == 0)
    return reinterpret_cast<void*>(&frontend::nvtx::attach);
#endif
  return frontend::cupti::find_entry(name, major);
}
#endif

__attribute__((constructor)) void start() {
  // A program with privileges that its user has not (setuid) obeys no variable: ::secure_getenv.
  if (const char* level = ::secure_getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  frontend::cuda::set_export_hooks(hooks());
#ifdef OUTBOARD_HAS_CUPTI
  static constexpr frontend::cuda::tool_interface tools{sizeof tools, find_tool};
  frontend::cuda::set_tool_interface(&tools);
#endif
  process::instance().boot({transport::add_all, find_export, frontend::cuda::cls_forked});
  // Before the first call; a trace that only a configuration file asks for begins at the connection.
  if (const char* file = ::secure_getenv("OUTBOARD_TRACE"); file && *file) frontend::trace::start(file);
}

__attribute__((destructor)) void stop() {
  process::instance().shut_down();
  const frontend::session* const server = process::instance().server();
  frontend::trace::finish(server ? server->moved() : frontend::traffic{});
}

}  // namespace
}  // namespace outboard::shim
