#include "base/machine.hh"

#include <stdlib.h>
#include <sys/utsname.h>

#include <fstream>

#include "base/cores.hh"

namespace outboard {
namespace {

std::string cpu_name(const std::string& otherwise) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return otherwise;
}

}  // namespace

machine_facts look_at_machine() {
  utsname names{};
  ::uname(&names);
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;
  return {names.nodename, cpu_name(names.machine), std::string(names.sysname) + " " + names.release,
          names.machine,  usable_cores(),          load};
}

}  // namespace outboard
