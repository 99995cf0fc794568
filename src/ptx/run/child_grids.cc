#include "ptx/run/child_grids.hh"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "ptx/run/lane_call.hh"
#include "ptx/run/plain.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {
namespace {

constexpr std::uint64_t arena_bytes = 8u << 20;  // touched pages count; a GPU keeps 2048 launches by default
constexpr std::uint64_t slot_bytes = 64;
constexpr std::uint32_t most_depth = 24;                              // as on a GPU
constexpr std::uint64_t tail_stream = 3, fire_and_forget_stream = 4;  // cudaStreamTailLaunch and its brother
constexpr std::uint64_t first_stream = 1u << 16;

std::uint32_t parameter_bytes(const function_code& kernel) { return lay_out(kernel.source->parameters).size; }

bool launchable(const child_grid& g) {
  using limits = executor_limits;
  std::uint64_t threads = 1;
  for (std::size_t n = 0; n < 3; ++n) {
    if (g.grid[n] == 0 || g.grid[n] > limits::max_grid[n]) return false;
    if (g.block[n] == 0 || g.block[n] > limits::max_block[n]) return false;
    threads *= g.block[n];
  }
  return threads <= limits::max_threads &&
         std::uint64_t{g.kernel->static_shared} + 15 + g.shared <= limits::max_shared;
}

}  // namespace

child_grids::child_grids(const code& module, std::uint32_t depth) : module_(module) { made_.depth = depth; }

child_grids::~child_grids() {
  if (arena_) ::munmap(arena_, arena_bytes);
}

std::uint64_t child_grids::reserve(std::uint64_t kernel, const dimensions& grid, const dimensions& block,
                                   std::uint32_t shared) {
  const auto found = module_.by_address.find(kernel);
  if (found == module_.by_address.end() || !found->second->source->kernel) return 0;
  const std::uint64_t size =
      (std::max(parameter_bytes(*found->second), 1u) + slot_bytes - 1) / slot_bytes * slot_bytes;
  const std::lock_guard lock(mutex_);
  if (!arena_) {
    void* at = ::mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return 0;
    arena_ = static_cast<char*>(at);
  }
  if (arena_bytes - used_ < size) return 0;
  const auto address = reinterpret_cast<std::uint64_t>(arena_ + used_);
  used_ += size;
  reserved_.emplace(address, child_grid{found->second, grid, block, shared, {}});
  return address;
}

child_error child_grids::launch(std::uint64_t buffer, std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(buffer);
  if (found == reserved_.end()) return child_error::value;
  child_grid g = std::move(found->second);
  reserved_.erase(found);
  const bool known = stream <= fire_and_forget_stream || stream - first_stream < streams_;
  if (!known) return child_error::value;
  if (!launchable(g)) return child_error::configuration;
  if (made_.depth >= most_depth && stream != tail_stream) return child_error::depth;
  const auto* from = reinterpret_cast<const std::byte*>(buffer);
  g.parameters.assign(from, from + parameter_bytes(*g.kernel));
  (stream == tail_stream ? made_.tail : made_.now).push_back(std::move(g));
  return child_error::none;
}

std::uint64_t child_grids::make_stream() {
  const std::lock_guard lock(mutex_);
  return first_stream + streams_++;
}

child_error child_grids::destroy_stream(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  return stream - first_stream < streams_ ? child_error::none : child_error::value;
}

range child_grids::parameters() const {
  const std::lock_guard lock(mutex_);
  return {reinterpret_cast<std::uint64_t>(arena_), arena_ ? arena_bytes : 0};
}

child_list child_grids::take() {
  const std::lock_guard lock(mutex_);
  return std::move(made_);
}

bool child_call(warp* w, const inst* i, const call_site& site, int l) {
  const lane_call call{w, site, l};
  child_grids& grids = *w->owner->launch->children;
  std::uint32_t& last_error = w->owner->runtime_errors[w->index * warp_lanes + static_cast<std::uint32_t>(l)];
  switch (site.provided) {
    case builtin::child_parameters: {
      const std::uint64_t at = grids.reserve(call.argument<std::uint64_t>(0), call.argument<dimensions>(1),
                                             call.argument<dimensions>(2), call.argument<std::uint32_t>(3));
      if (at == 0) last_error = error_of_pending_count;
      call.give(at);
      return true;
    }
    case builtin::child_launch:
      call.give(grids.launch(call.argument<std::uint64_t>(0), call.argument<std::uint64_t>(1)));
      return true;
    case builtin::child_get_error:
      call.give(last_error);
      return true;
    case builtin::child_set_error:
      last_error = call.argument<std::uint32_t>(0);
      call.give(last_error);
      return true;
    case builtin::child_stream_create: {
      char* to = checked_memory(w, i, l, call.argument<std::uint64_t>(0), 8, 8, true);
      if (!to) return false;
      const std::uint64_t made = grids.make_stream();
      std::memcpy(to, &made, sizeof made);
      call.give(child_error::none);
      return true;
    }
    default:
      call.give(grids.destroy_stream(call.argument<std::uint64_t>(0)));
      return true;
  }
}

}  // namespace outboard::ptx
