// The one init of libnvidia-ml.so.1: lists the transports, hooks fork and exit. No thread, no connection and
// no file before the program's nvmlInit.
#include <cstdlib>
#include <memory>

#include "base/log.hh"
#include "frontend/nvml/monitor.hh"
#include "transport/list/list.hh"

/// By this the back-end recognises, and refuses, our own library where it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::nvml::monitor;

__attribute__((constructor)) void start() {
  if (const char* level = std::getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  monitor::instance().boot(transport::add_all);
}

__attribute__((destructor)) void stop() { monitor::instance().shut_down(); }

}  // namespace
}  // namespace outboard::shim
