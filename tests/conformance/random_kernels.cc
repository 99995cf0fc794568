// Random kernels on the interpreter and on the reference machine: memory must end up the same.
//   random_kernels [--count N] [--seed S]   N kernels from seed S on; prints the first that differs, with its
//   text random_kernels --print S                the text of one
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ptx/reference/random_kernel.hh"
#include "ptx/run/executor.hh"

namespace {

using namespace outboard;
using words = std::vector<std::uint64_t>;

class listed_memory : public ptx::address_space {
 public:
  bool find(std::uint64_t address, ptx::memory_range& out) const override {
    for (const auto& r : ranges) {
      if (address - r.begin < r.size) return out = r, true;
    }
    return false;
  }
  void add(const words& w) {
    ranges.push_back({reinterpret_cast<std::uint64_t>(w.data()), w.size() * 8, true});
  }
  std::vector<ptx::memory_range> ranges;
};

struct memories {
  words in, out, sums;
};

memories memories_of(const ptx::reference::random_kernel& k, std::uint64_t seed) {
  using shape = ptx::reference::random_kernel;
  memories m{words(k.threads() * shape::in_bytes / 8), words(k.threads() * shape::out_bytes / 8),
             words(shape::sums_bytes / 8)};
  std::uint64_t state = seed ^ 0x9e3779b97f4a7c15;
  for (auto& w : m.in) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    w = state ^ state >> 29;
    // Every second word holds numbers of everyday size, as two floats.
    if (state >> 62 == 1) w = (w & 0x807fffff807fffff) | 0x3f80000040000000;
  }
  return m;
}

words arguments_of(const memories& m) {
  const auto address = [](const words& w) { return reinterpret_cast<std::uint64_t>(w.data()); };
  return {address(m.in), address(m.out), address(m.sums)};
}

std::string run_on_interpreter(const ptx::module_ptr& module, const ptx::reference::random_kernel& k,
                               memories& m) {
  static ptx::executor executor(1);
  const auto loaded = ptx::instantiate(
      module, [](const ptx::variable_info&) -> result<void*> { return failure("no variables here"); });
  if (!loaded) return loaded.error().message;
  listed_memory memory;
  memory.add(m.in), memory.add(m.out), memory.add(m.sums);
  const words arguments = arguments_of(m);
  ptx::launch_request request;
  request.module = *loaded, request.kernel = "k", request.memory = &memory;
  request.grid = k.grid, request.block = k.block;
  request.parameters = std::as_bytes(std::span(arguments));
  const auto done = executor.run(request);
  return done.ok() ? "" : done.text;
}

std::string run_on_reference(const ptx::module_ptr& module, const ptx::reference::random_kernel& k,
                             memories& m) {
  const words arguments = arguments_of(m);
  ptx::reference::launch l;
  l.code = &module->tree(), l.kernel = "k", l.grid = k.grid, l.block = k.block;
  l.parameters = std::as_bytes(std::span(arguments));
  const auto done = ptx::reference::run(l);
  return done ? "" : done.error().message;
}

std::string first_difference(const char* what, const words& interpreter, const words& reference,
                             std::size_t of_thread) {
  for (std::size_t n = 0; n < interpreter.size(); ++n) {
    if (interpreter[n] == reference[n]) continue;
    char text[200];
    std::snprintf(text, sizeof text, "%s: thread %zu, byte %zu: interpreter %016llx, reference %016llx", what,
                  n / of_thread, n % of_thread * 8, static_cast<unsigned long long>(interpreter[n]),
                  static_cast<unsigned long long>(reference[n]));
    return text;
  }
  return "";
}

/// Empty when both machines agree.
std::string check(std::uint64_t seed) {
  using shape = ptx::reference::random_kernel;
  const auto k = ptx::reference::random_kernel_of(seed);
  const auto module = ptx::parse(k.text);
  if (!module) return "does not parse: " + module.error().message;
  memories mine = memories_of(k, seed), theirs = mine;
  if (const auto why = run_on_interpreter(*module, k, mine); !why.empty()) return "interpreter: " + why;
  if (const auto why = run_on_reference(*module, k, theirs); !why.empty()) return "reference: " + why;
  if (auto why = first_difference("results", mine.out, theirs.out, shape::out_bytes / 8); !why.empty())
    return why;
  if (auto why = first_difference("sums", mine.sums, theirs.sums, shape::sums_bytes / 8); !why.empty())
    return why;
  return mine.in == theirs.in ? "" : "the input was changed";
}

int write_texts(const std::string& folder) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::ofstream file(folder + "/random" + std::to_string(seed) + ".ptx");
    if (!(file << ptx::reference::random_kernel_of(seed).text)) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  std::uint64_t first = 1, kernels = 2000;
  for (int n = 1; n + 1 < count; n += 2) {
    const std::uint64_t value = std::strtoull(values[n + 1], nullptr, 10);
    if (std::strcmp(values[n], "--seed") == 0) first = value;
    if (std::strcmp(values[n], "--count") == 0) kernels = value;
    if (std::strcmp(values[n], "--print") == 0)
      return std::puts(ptx::reference::random_kernel_of(value).text.c_str()) < 0;
  }
  if (count == 3 && std::strcmp(values[1], "--write") == 0) return write_texts(values[2]);
  std::uint64_t bad = 0;
  for (std::uint64_t seed = first; seed < first + kernels && bad < 10; ++seed) {
    const std::string why = check(seed);
    if (why.empty()) continue;
    ++bad;
    std::printf("FAIL seed %llu: %s\n  again: random_kernels --seed %llu --count 1; its text: --print %llu\n",
                static_cast<unsigned long long>(seed), why.c_str(), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(seed));
  }
  if (bad == 0)
    std::printf("%llu random kernels: the interpreter and the reference agree\n",
                static_cast<unsigned long long>(kernels));
  return bad != 0;
}
