// The one init of libnvidia-ml.so.1: lists the transports, hooks fork and exit. It opens no connection and no
// file, and starts no thread, before the program's nvmlInit.
#include <cstdlib>
#include <memory>

#include "base/log.hh"
#include "frontend/nvml/client.hh"
#include "transport/list/list.hh"

/// The back-end recognises our own library by this symbol, and refuses it when it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::nvml::client;

__attribute__((constructor)) void start() {
  if (const char* level = std::getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  client::instance().boot(transport::add_all);
}

__attribute__((destructor)) void stop() { client::instance().shut_down(); }

}  // namespace
}  // namespace outboard::shim
