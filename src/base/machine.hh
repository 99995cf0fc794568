// What this machine is, for pages of measurements and for who asks a server. Any thread.
#pragma once

#include <string>

namespace outboard {

struct machine_facts {
  std::string host;          ///< its own name for itself
  std::string cpu;           ///< "Intel(R) Xeon(R) ..."; where the kernel does not tell: the architecture
  std::string kernel;        ///< "Linux 6.1.0-18-amd64"
  std::string architecture;  ///< "x86_64"
  int cores = 1;             ///< that this process may use
  double load = 0;           ///< programs that want to run: the average of the last minute
};

machine_facts look_at_machine();

}  // namespace outboard
