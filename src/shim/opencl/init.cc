// The one init of the OpenCL front-end library: lists the transports, hooks fork and exit. It opens no
// connection and no file, and starts no thread, before a loader asks for platforms.
#include <stdlib.h>

#include "base/log.hh"
#include "frontend/opencl/back_ends.hh"
#include "frontend/opencl/death.hh"
#include "frontend/trace.hh"
#include "shim/opencl/entries.hh"
#include "transport/list/list.hh"

/// The back-end recognises our own libraries by this symbol.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::opencl::back_ends;

__attribute__((constructor)) void start() {
  // ::secure_getenv ignores variables in a program with more privileges than its user has (setuid, setgid,
  // capabilities).
  if (const char* level = ::secure_getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  frontend::opencl::set_dispatch(opencl::dispatch_table(), &opencl::extension_function);
  frontend::opencl::on_death(frontend::opencl::tell_death);
  back_ends::instance().boot({transport::add_all, nullptr, nullptr});
  if (const char* file = ::secure_getenv("OUTBOARD_TRACE"); file && *file) frontend::trace::start(file);
}

__attribute__((destructor)) void stop() {
  back_ends::instance().shut_down();
  frontend::trace::finish(back_ends::instance().moved());
}

}  // namespace
}  // namespace outboard::shim
