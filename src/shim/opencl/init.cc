// The one init of the OpenCL front-end library: lists the transports, hooks fork and exit. No thread, no
// connection and no file before a loader asks for platforms.
#include <stdlib.h>

#include "base/log.hh"
#include "frontend/opencl/death.hh"
#include "frontend/opencl/link.hh"
#include "frontend/trace.hh"
#include "shim/opencl/entries.hh"
#include "transport/list/list.hh"

/// By this the back-end recognises our own libraries.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::opencl::link;

__attribute__((constructor)) void start() {
  // A program with privileges that its user has not (setuid) obeys no variable: ::secure_getenv.
  if (const char* level = ::secure_getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  frontend::opencl::set_dispatch(opencl::dispatch_table(), &opencl::extension_function);
  frontend::opencl::on_death(frontend::opencl::tell_death);
  link::instance().boot({transport::add_all, nullptr, nullptr});
  if (const char* file = ::secure_getenv("OUTBOARD_TRACE"); file && *file) frontend::trace::start(file);
}

__attribute__((destructor)) void stop() {
  link::instance().shut_down();
  frontend::trace::finish(link::instance().moved());
}

}  // namespace
}  // namespace outboard::shim
