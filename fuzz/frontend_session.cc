// A whole client against a hostile server: the front-end as a program uses it, from the greeting to the end,
// while the server's frames are changed, lost, held back and invented (hostile_server.hh). Input: {how,
// steps, steps of the program (2 bytes each), script of the server}. The front-end is one in a process, so
// each input has one of its own.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "device/mock/mock.hh"
#include "forked_run.hh"
#include "frontend/process.hh"
#include "hostile_program.hh"
#include "hostile_server.hh"

extern "C" void __sanitizer_set_report_fd(void* descriptor);

using namespace outboard;

namespace {

device::mock::mock_device& the_mock() {
  static const std::unique_ptr<device::mock::mock_device> mock = [] {
    auto opened = device::mock::open();
    CHECK(opened.ok());
    (*opened)->cuda().cuInit(0);
    (*opened)->set_total_memory(256u << 20);
    return std::move(*opened);
  }();
  return *mock;
}

fuzz::script* server_script = nullptr;
bool shares = false;

void boot() {
  frontend::boot_options options;
  options.add_transports = [](transport::registry& to,
                              const std::vector<std::pair<std::string, std::string>>&) {
    to.add(fuzz::make_hostile(*server_script, the_mock(), shares));
    return status();
  };
  options.find_export = [](std::string_view) -> void* { return nullptr; };
  frontend::process::instance().boot(options);
}

int report = 2;  ///< where sanitizers write

void run(std::span<const std::byte> input) {
  // A client's log has what the server says. Sanitizers close a parent's file unless it is named again.
  const int silent = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(silent, 1), ::dup2(silent, 2);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<std::intptr_t>(report)));
  static fuzz::script all(input);
  const auto how = all.byte();
  shares = (how & 1) != 0;
  ::setenv("OUTBOARD_SYNC", how & 2 ? "1" : "0", 1);
  ::setenv("OUTBOARD_CONCURRENT_MANAGED", how & 4 ? "1" : "0", 1);
  const auto steps = all.take(2u * (1u + all.byte() % 32u));
  server_script = &all;
  boot();
  fuzz::program program;
  program.start();
  for (std::size_t i = 0; i + 1 < steps.size(); i += 2)
    program.step(std::to_integer<std::uint8_t>(steps[i]), std::to_integer<std::uint8_t>(steps[i + 1]));
  frontend::process::instance().shut_down();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  report = ::fcntl(2, F_DUPFD_CLOEXEC, 10);
  ::setenv("OUTBOARD_SERVER", "hostile:it", 1);
  (void)the_mock();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  fuzz::run_forked([&] { run(std::as_bytes(std::span(data, size))); });
  return 0;
}
