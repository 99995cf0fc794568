// Random chains of ordered work against a model of CUDA's order.
// usage: chains [--seed N] [--count N] [--devices N] [--gpu] [--first N] [--print] [--failures N]
//        [--seconds N]
//        [--without KIND]...
//   --seed N      which chains (default 1); chain number i of a seed is always the same
//   --count N     how many (default 1000)
//   --first N     the number of the first
//   --devices N   1 or 2
//   --without K   no operation of this kind (see the last lines of a run), as often as wished
//   --gpu         sizes to 16 MiB and longer kernels; without, mostly below 64 KiB
//   --print       prints the chains as programs, and runs none
//   --failures N  stop after so many that differ (default 1)
//   --seconds N   stop then, whatever the count
// What differs is shrunk and printed. Exits with 1 when any did.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine.hh"
#include "make.hh"
#include "shrink.hh"

namespace {

using namespace chains;

struct wishes {
  std::uint64_t seed = 1, count = 1000, first = 0, failures = 1, seconds = 0;
  bool print = false;
  limits within;
};

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "usage: chains [--seed N] [--count N] [--first N] [--devices N] [--gpu] [--print] [--failures N] "
      "[--seconds N]\n");
  std::exit(2);
}

wishes read(int count, char** arguments) {
  wishes w;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--gpu") {
      w.within.gpu = true;
      continue;
    }
    if (name == "--print") {
      w.print = true;
      continue;
    }
    if (i + 1 == count) usage();
    if (name == "--without") {
      const auto* found = std::find(std::begin(names), std::end(names), std::string_view(arguments[++i]));
      if (found == std::end(names)) usage();
      w.within.without.push_back(static_cast<verb>(found - std::begin(names)));
      continue;
    }
    const std::uint64_t value = std::strtoull(arguments[++i], nullptr, 10);
    if (name == "--seed")
      w.seed = value;
    else if (name == "--count")
      w.count = value;
    else if (name == "--first")
      w.first = value;
    else if (name == "--devices")
      w.within.devices = static_cast<int>(value);
    else if (name == "--failures")
      w.failures = value;
    else if (name == "--seconds")
      w.seconds = value;
    else
      usage();
  }
  if (w.within.devices < 1 || w.within.devices > most_devices) usage();
  return w;
}

void tell(machine& on, const chain& failing, std::uint64_t number, const std::string& what) {
  std::printf("DIFFERS chain %llu: %s\n", static_cast<unsigned long long>(number), what.c_str());
  std::fflush(stdout);
  // Not each run fails: what depends on time gets several tries.
  const auto fails = [&](const chain& c) {
    for (int i = 0; i < 8; ++i) {
      if (on.run(c)) return true;
    }
    return false;
  };
  const chain small = shrink(failing, fails);
  std::printf("%s", program(small).c_str());
  if (const auto again = on.run(small)) std::printf("// %s\n", again->c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const wishes w = read(count, arguments);
  for (std::uint64_t i = w.first; w.print && i < w.first + w.count; ++i)
    std::printf("// chain %llu\n%s", static_cast<unsigned long long>(i),
                program(make_chain(w.seed * 1000003 + i, w.within)).c_str());
  if (w.print) return 0;
  machine on(w.within.devices);
  counts all;
  std::uint64_t differ = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (std::uint64_t i = w.first; i < w.first + w.count && differ < w.failures; ++i) {
    if (w.seconds && seconds() > static_cast<double>(w.seconds)) break;
    const chain c = make_chain(w.seed * 1000003 + i, w.within);
    if (const auto wrong = on.run(c, &all)) {
      ++differ;
      tell(on, c, i, *wrong);
    }
  }
  std::printf("%llu chains of seed %llu in %.1f s, %llu bytes;", static_cast<unsigned long long>(all.chains),
              static_cast<unsigned long long>(w.seed), seconds(), static_cast<unsigned long long>(all.bytes));
  for (std::size_t v = 0; v < all.operations.size(); ++v)
    std::printf(" %s %llu", std::string(names[v]).c_str(),
                static_cast<unsigned long long>(all.operations[v]));
  std::printf("\n%s: %llu differ\n", differ ? "FAIL" : "PASS", static_cast<unsigned long long>(differ));
  return differ ? 1 : 0;
}
