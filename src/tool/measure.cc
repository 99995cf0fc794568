// Hidden, the program that `outboard bench` runs natively and under `outboard run`: it calls the driver
// library that the loader finds, as any program does, and prints one object of JSON.
#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "bench/program.hh"
#include "device/vendor/vendor.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

/// The path of this machine's own driver, wherever LD_LIBRARY_PATH points.
result<std::string> find_own_driver() {
  const auto own = device::vendor::open();
  if (!own.ok()) return own.error();
  Dl_info about{};
  if (::dladdr(reinterpret_cast<void*>((*own)->cuda().cuInit), &about) == 0 || about.dli_fname == nullptr)
    return failure("the loader does not tell where the driver is");
  return std::string(about.dli_fname);
}

}  // namespace

int verb_measure(const measure_flags& flags) {
  bench::program_options options{"libcuda.so.1", flags.seconds, flags.bulk};
  if (flags.native) {
    auto own = find_own_driver();
    if (!own.ok()) return complain(exit_failed, own.error().message);
    options.library = std::move(*own);
  }
  const auto ran = bench::run_program(options);
  if (!ran.ok()) return complain(exit_failed, ran.error().message);
  const nlohmann::json j{{"library", ran->library},         {"ours", ran->ours},
                         {"device", ran->device},           {"driver_version", ran->driver_version},
                         {"free_memory", ran->free_memory}, {"values", ran->values},
                         {"missing", ran->missing}};
  return print(json_text(j, -1, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace outboard::tool
