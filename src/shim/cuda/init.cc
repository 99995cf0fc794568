// The one init of the front-end library: lists the transports, connects the export tables to the front-end,
// hooks fork and exit. It opens no connection and no file, and starts no thread, before the program's first
// CUDA call.
#include <dlfcn.h>
#include <stdlib.h>
#include <strings.h>

#include <atomic>
#include <memory>

#include "base/log.hh"
#include "base/version.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/process.hh"
#include "frontend/cuda/tables/board_layout.hh"
#include "frontend/cuda/tables/cls.hh"
#include "frontend/cuda/tables/export_tables.hh"
#include "frontend/cuda/tables/table_calls.hh"
#include "frontend/trace.hh"
#include "shim/cuda/exports.hh"
#include "transport/list/list.hh"

/// The back-end recognises our own library by this symbol, and refuses it when it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::process;

/// This library's state, for the hooks that the C ABI calls without a lane.
process& state() { return process::instance(); }

frontend::cuda::device_identity identity_of(std::size_t ordinal) {
  const marshal::device_facts& facts = state().devices.facts().devices[ordinal];
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
  h.driver_version = [] { return state().devices.facts().driver_version; };
  h.device_count = [] { return state().devices.count(); };
  h.device = identity_of;
  h.primary_handle = [](CUdevice device) {
    const frontend::context_state* context = state().devices.primary(device);
    return context ? reinterpret_cast<CUcontext>(context->handle) : nullptr;
  };
  h.current_context = [] { return reinterpret_cast<CUcontext>(frontend::this_lane().context_handle()); };
  h.create_context = frontend::cuda::create_context_by_table;
  h.load_module = frontend::cuda::load_module_by_table;
  h.board_layout = frontend::cuda::board_layout;
  h.module_functions = frontend::cuda::for_each_function;
  h.log = [](const char* line) { log::warn(line); };
  return h;
}

__attribute__((constructor)) void start() {
  // ::secure_getenv ignores variables in a program with more privileges than its user has (setuid, setgid,
  // capabilities).
  if (const char* level = ::secure_getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  frontend::cuda::set_export_hooks(hooks());
  state().connection.boot({transport::add_all, find_export, frontend::cuda::cls_forked});
  // The trace begins before the first call; one that only a configuration file asks for begins with the
  // connection.
  if (const char* file = ::secure_getenv("OUTBOARD_TRACE"); file && *file) frontend::trace::start(file);
}

__attribute__((destructor)) void stop() {
  state().connection.shut_down();
  const frontend::session* const server = state().connection.server();
  frontend::trace::finish(server ? server->moved() : frontend::traffic{});
}

}  // namespace
}  // namespace outboard::shim
