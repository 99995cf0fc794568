// PTX text through parser, decoder and interpreter: whatever loads is run with a small memory and a short
// time.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "ptx/run/executor.hh"

namespace {

using namespace outboard;

/// One block of memory, and what the module's variables took.
class small_memory : public ptx::address_space {
 public:
  bool find(std::uint64_t address, ptx::memory_range& out) const override {
    for (const auto& b : blocks) {
      const auto begin = reinterpret_cast<std::uint64_t>(b.data());
      if (address - begin < b.size() * 8) return out = {begin, b.size() * 8, true}, true;
    }
    return false;
  }
  std::vector<std::vector<std::uint64_t>> blocks;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ptx::executor executor(1);
  const auto parsed = ptx::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  small_memory memory;
  std::uint64_t left = 1u << 20;
  const auto loaded = ptx::instantiate(*parsed, [&](const ptx::variable_info& v) -> result<void*> {
    if (v.size + v.align > left) return failure("too large");
    left -= v.size + v.align;
    auto& block = memory.blocks.emplace_back((v.size + v.align) / 8 + 1);
    const auto at = reinterpret_cast<std::uint64_t>(block.data());
    return reinterpret_cast<void*>((at + v.align - 1) & ~std::uint64_t{v.align - 1});
  });
  if (!loaded || (*parsed)->kernels().empty()) return 0;
  const auto& kernel = (*parsed)->kernels()[0];
  if (kernel.local_bytes > (64u << 10)) return 0;
  memory.blocks.emplace_back(512);
  std::vector<std::uint64_t> parameters(kernel.parameter_bytes / 8 + 1,
                                        reinterpret_cast<std::uint64_t>(memory.blocks.back().data()));
  ptx::launch_request request;
  request.module = *loaded, request.kernel = kernel.name, request.memory = &memory;
  request.grid = {2, 1, 1}, request.block = {40, 1, 1}, request.dynamic_shared = 256;
  request.parameters = std::as_bytes(std::span(parameters));
  request.print = [](std::string_view) {};
  ptx::cancel_token cancel;
  std::atomic<bool> done{false};
  std::thread timer([&] {
    for (int n = 0; n < 50 && !done; ++n) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancel.cancel();
  });
  (void)executor.run(request, &cancel);
  done = true;
  timer.join();
  return 0;
}
