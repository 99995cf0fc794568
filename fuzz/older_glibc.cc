// For campaigns on machines with an older C library (2.35) than the one that this was built with.
#include <sys/random.h>

#include <cstdint>

/// glibc 2.36; std::random_device asks for it.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
