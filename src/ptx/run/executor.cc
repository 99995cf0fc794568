#include "ptx/run/executor.hh"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <tuple>

#include "ptx/run/child_grids.hh"
#include "ptx/run/code.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {

loaded_module::loaded_module(module_ptr source, std::unique_ptr<const code> decoded,
                             std::vector<void*> addresses)
    : source_(std::move(source)), code_(std::move(decoded)), addresses_(std::move(addresses)) {}
loaded_module::~loaded_module() = default;

void* loaded_module::address(std::string_view variable) const {
  const auto* info = source_->find_variable(variable);
  return info ? addresses_[static_cast<std::size_t>(info - source_->variables().data())] : nullptr;
}

namespace {

/// Writes what the text gives; the rest of the variable is zero.
/// Module variables that have memory of their own.
bool is_placed(const variable& v) {
  return (v.where == space::global || v.where == space::constant) && v.link != linkage::external;
}

status initialise(const variable& v, void* memory, const code& functions, const program& p,
                  const variable_addresses& addresses) {
  auto* bytes = static_cast<char*>(memory);
  std::memset(bytes, 0, v.size);
  std::memcpy(bytes, v.initial.data(), std::min<std::uint64_t>(v.initial.size(), v.size));
  for (const auto& r : v.relocations) {
    std::uint64_t value = 0;
    const variable* target = p.find_variable(r.symbol);
    if (const auto known = addresses.find(target); target && known != addresses.end()) {
      value = known->second;
    } else if (const auto f = functions.by_name.find(r.symbol); f != functions.by_name.end()) {
      value = reinterpret_cast<std::uint64_t>(f->second);
    } else {
      return failure("line " + std::to_string(v.line) + ": initial value of " + std::string(v.name) +
                     " names the unresolved symbol " + std::string(r.symbol));
    }
    value = (value + static_cast<std::uint64_t>(r.addend)) >> r.shift;
    if (r.offset + r.size <= v.size) std::memcpy(bytes + r.offset, &value, r.size);
  }
  return {};
}

}  // namespace

status check_part(const module& part) {
  variable_addresses addresses;
  for (const auto& v : part.tree().variables) {
    if (is_placed(v)) addresses[&v] = 0;  // any address will do
  }
  const auto decoded = decode(part.tree(), addresses, 20, true);
  if (!decoded) return decoded.error();
  return {};
}

result<loaded_module_ptr> instantiate(module_ptr source, const place_variable& place) {
  const program& p = source->tree();
  variable_addresses addresses;
  std::vector<const variable*> placed;
  for (const auto& v : p.variables) {
    // Decoding comes before placing, so that what is refused takes no memory: any address will do for it.
    if (is_placed(v)) {
      addresses[&v] = 0;
      placed.push_back(&v);
    }
  }
  if (!placed.empty()) {
    const auto trial = decode(p, addresses);
    if (!trial) return trial.error();
  }
  std::vector<void*> memory;
  for (std::size_t n = 0; n < placed.size(); ++n) {
    auto at = place(source->variables()[n]);
    if (!at) return std::move(at).error();
    memory.push_back(*at);
    addresses[placed[n]] = reinterpret_cast<std::uint64_t>(*at);
  }
  auto decoded = decode(p, addresses);
  if (!decoded) return std::move(decoded).error();
  for (std::size_t n = 0; n < placed.size(); ++n) {
    OUTBOARD_TRY(initialise(*placed[n], memory[n], **decoded, p, addresses));
  }
  return loaded_module_ptr(
      std::make_shared<loaded_module>(std::move(source), *std::move(decoded), std::move(memory)));
}

namespace {

// How long a block runs before another may have the worker; blocks of cooperative launches spin on each
// other.
constexpr std::int64_t slice_ns = 2000000, cooperative_slice_ns = 100000;
// Blocks in progress at once in a launch that is not cooperative: enough that a grid-wide spin of a careless
// program ends, few enough that their memory does not matter.
constexpr std::size_t max_open_blocks = 64;
// Blocks often wait for those before them (scans in one pass do), so a block that was begun goes before a new
// one: so many slices of suspended blocks come first.
constexpr std::size_t slices_before_start = 4;
constexpr std::size_t max_batch = 64;
constexpr std::uint64_t resident_memory = 1u << 30;
// A GPU passes most arguments in registers, here they lie on the stack: room for as deep a recursion as
// there.
constexpr std::uint64_t stack_factor = 8;

/// One launch in the works. Members below `mutex` of the scheduler unless said otherwise.
struct job {
  launch_state launch;
  bool cooperative = false;
  std::uint64_t next = 0, total = 0, ended = 0;
  std::size_t open = 0;  // blocks started and not ended
  std::size_t batch = 1;
  std::size_t helpers = 0;  // threads inside work()
  std::deque<std::unique_ptr<block>> suspended, spare;
  std::size_t slices = 0;  // of suspended blocks since the last start
  bool oldest_first = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> returned;  // parts of batches not yet started
  std::atomic<bool> stop{false};                                  // read by blocks without the lock
  launch_result result;
  std::mutex print_lock;
  std::function<void(std::string_view)> print;
  alignas(64) std::uint64_t workspace[8] = {};

  bool has_work() const {
    if (stop.load(std::memory_order_relaxed)) return false;
    return !suspended.empty() || can_start();
  }
  bool can_start() const {
    return (next < total || !returned.empty()) &&
           (cooperative || suspended.empty() ||
            (open < max_open_blocks && slices >= std::min(open, slices_before_start)));
  }
  /// In turns the first of the grid, which waits for no other, and the one that has waited longest.
  std::unique_ptr<block> take_suspended() {
    oldest_first = !oldest_first;
    auto chosen = suspended.begin();
    if (oldest_first && !cooperative) {
      chosen = std::min_element(suspended.begin(), suspended.end(),
                                [](const auto& a, const auto& b) { return a->number < b->number; });
    }
    auto taken = std::move(*chosen);
    suspended.erase(chosen);
    ++slices;
    return taken;
  }
  bool finished() const { return helpers == 0 && (stop.load(std::memory_order_relaxed) || ended == total); }
};

}  // namespace

class scheduler {
 public:
  explicit scheduler(unsigned threads) : threads_(std::max(threads, 1u)) {
    for (unsigned n = 1; n < threads_; ++n) helpers_.emplace_back([this] { help(); });
  }
  ~scheduler() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (auto& t : helpers_) t.join();
  }

  unsigned threads() const { return threads_; }

  launch_result run(job& j, const cancel_token* cancel) {
    std::unique_lock lock(mutex_);
    j.launch.id = ++launches_;
    jobs_.push_back(&j);
    const std::uint64_t useful = std::min<std::uint64_t>(j.total - 1, helpers_.size());
    for (std::uint64_t n = 0; n < useful; ++n) wake_.notify_one();
    while (!j.finished()) {
      if (cancel && cancel->cancelled() && !j.stop.load(std::memory_order_relaxed)) {
        stop(j, {outcome::cancelled, "kernel " + j.launch.kernel->name + ": cancelled", 0, {}, {}, 0});
      }
      if (j.has_work()) {
        work(j, lock);
      } else {
        j_done_.wait_for(lock, std::chrono::milliseconds(cancel ? 10 : 1000));
      }
    }
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &j));
    return std::move(j.result);
  }

 private:
  static void stop(job& j, launch_result why) {
    if (j.result.kind == outcome::ok) j.result = std::move(why);
    j.stop.store(true, std::memory_order_relaxed);
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      job* chosen = nullptr;
      for (std::size_t n = 0; n < jobs_.size() && !chosen; ++n) {
        job* candidate = jobs_[(turn_ + n) % jobs_.size()];
        if (candidate->has_work()) chosen = candidate, turn_ = (turn_ + n + 1) % jobs_.size();
      }
      if (chosen) {
        work(*chosen, lock);
      } else {
        wake_.wait(lock);
      }
    }
  }

  /// What becomes of a block after its slice, or of its launch where it failed.
  static void settle(job& j, std::unique_ptr<block> b, bool memory, block_progress progress) {
    if (!memory) {
      stop(j, {outcome::out_of_resources,
               "kernel " + j.launch.kernel->name + ": no memory for its blocks",
               0,
               {},
               {},
               0});
    } else if (progress == block_progress::failed) {
      stop(j, std::move(b->failed));
    } else if (progress == block_progress::waiting) {
      j.suspended.push_back(std::move(b));
      j.batch = 1;
    } else if (j.cooperative || !j.has_work()) {
      j.spare.push_back(std::move(b));
    } else {
      j.spare.push_front(std::move(b));  // still in this core's cache
    }
  }

  /// Runs a batch of new blocks, or a suspended one, for a slice.
  void work(job& j, std::unique_lock<std::mutex>& lock) {
    ++j.helpers;
    std::unique_ptr<block> b;
    std::uint64_t first = 0, end = 0;
    const bool fresh = j.can_start();
    if (fresh) {
      if (!j.returned.empty()) {
        std::tie(first, end) = j.returned.back();
        j.returned.pop_back();
      } else {
        first = j.next;
        j.next = end = std::min(j.total, first + (j.cooperative ? 1 : j.batch));
      }
      j.open += end - first;
      j.slices = 0;
      if (!j.spare.empty()) b = std::move(j.spare.front()), j.spare.pop_front();
    } else {
      b = j.take_suspended();
    }
    lock.unlock();
    if (!b) b = std::make_unique<block>();
    const std::int64_t slice = j.cooperative ? cooperative_slice_ns : slice_ns;
    std::uint64_t ended = 0;
    auto progress = block_progress::finished;
    bool memory = true;
    if (fresh) {
      while (first < end && progress == block_progress::finished && !j.stop.load(std::memory_order_relaxed)) {
        memory = block_start(*b, j.launch, first);
        if (!memory) break;
        ++first;
        progress = block_run(*b, steady_now() + slice, j.stop);
        if (progress == block_progress::finished) ++ended;
      }
    } else {
      progress = block_run(*b, steady_now() + slice, j.stop);
      ended = progress == block_progress::finished;
    }
    lock.lock();
    --j.helpers;
    j.ended += ended;
    j.open -= ended;
    if (first < end) {  // a batch is of short blocks; this was none
      j.returned.emplace_back(first, end);
      j.open -= end - first;
      j.batch = 1;
    }
    settle(j, std::move(b), memory, progress);
    if (j.finished() || j.has_work()) j_done_.notify_all();
  }

  const unsigned threads_;
  std::mutex mutex_;
  std::condition_variable wake_, j_done_;
  std::vector<job*> jobs_;
  std::size_t turn_ = 0;
  std::uint64_t launches_ = 0;
  bool ending_ = false;
  std::vector<std::thread> helpers_;
};

executor::executor(unsigned threads) : scheduler_(std::make_unique<scheduler>(threads)) {}
executor::~executor() = default;
unsigned executor::threads() const { return scheduler_->threads(); }

std::uint32_t executor::resident_blocks(const kernel_info& kernel, std::uint32_t block_threads,
                                        std::uint32_t dynamic_shared) const {
  const std::uint64_t bytes = std::uint64_t{block_threads} * (kernel.local_bytes + kernel.registers * 8u) +
                              kernel.static_shared_bytes + dynamic_shared + 4096;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(resident_memory / bytes, 1, 1024));
}

namespace {

launch_result refuse(outcome kind, std::string text) { return {kind, std::move(text), 0, {}, {}, 0}; }

/// Checks a request against the kernel and the limits; fills what blocks need to know.
launch_result prepare(const launch_request& r, job& j) {
  using limits = executor_limits;
  if (!r.module) return refuse(outcome::invalid_request, "no module");
  const auto* info = r.module->source().find_kernel(r.kernel);
  const code& module = r.module->decoded();
  const auto found = module.by_name.find(r.kernel);
  if (!info || found == module.by_name.end())
    return refuse(outcome::invalid_request, "no kernel " + std::string(r.kernel));
  const std::string name = "kernel " + info->name + ": ";
  std::uint64_t threads = 1;
  for (std::size_t n = 0; n < 3; ++n) {
    if (r.grid[n] == 0 || r.grid[n] > limits::max_grid[n] || r.block[n] == 0 ||
        r.block[n] > limits::max_block[n]) {
      return refuse(outcome::invalid_request, name + "grid or block dimension out of range");
    }
    threads *= r.block[n];
  }
  if (threads > limits::max_threads) {
    return refuse(outcome::invalid_request,
                  name + std::to_string(threads) + " threads in a block, the limit is 1024");
  }
  if (threads > info->max_threads) {
    return refuse(outcome::out_of_resources, name + std::to_string(threads) +
                                                 " threads in a block, it was compiled for " +
                                                 std::to_string(info->max_threads));
  }
  if (r.parameters.size() < info->parameter_bytes) {
    return refuse(outcome::invalid_request, name + std::to_string(r.parameters.size()) +
                                                " bytes of parameters, it takes " +
                                                std::to_string(info->parameter_bytes));
  }
  // Dynamic shared memory starts at the strictest alignment an extern array may ask for.
  const std::uint64_t base = (std::uint64_t{info->static_shared_bytes} + 15) & ~std::uint64_t{15};
  if (base + r.dynamic_shared > limits::max_shared) {
    return refuse(outcome::invalid_request, name + std::to_string(base + r.dynamic_shared) +
                                                " bytes of shared memory, the limit is " +
                                                std::to_string(limits::max_shared));
  }
  auto& l = j.launch;
  l.kernel = found->second;
  l.module = &module;
  l.memory = r.memory;
  l.heap = r.heap;
  l.textures = r.textures;
  l.grid = r.grid, l.block = r.block;
  l.threads = static_cast<std::uint32_t>(threads);
  l.warps = (l.threads + warp_lanes - 1) / warp_lanes;
  l.dynamic_base = static_cast<std::uint32_t>(base);
  l.shared_bytes = static_cast<std::uint32_t>(base + r.dynamic_shared);
  l.local_bytes =
      (l.kernel->stack + (l.kernel->open_ended ? std::uint64_t{r.stack_bytes} * stack_factor : 0) + 15) &
      ~std::uint64_t{15};
  const auto* parameters = reinterpret_cast<const char*>(r.parameters.data());
  l.parameters.assign(parameters, parameters + info->parameter_bytes);
  j.cooperative = r.cooperative;
  if (r.cooperative) l.grid_workspace = j.workspace;
  j.total = std::uint64_t{r.grid[0]} * r.grid[1] * r.grid[2];
  return {};
}

}  // namespace

launch_result executor::run_grid(const launch_request& request, const cancel_token* cancel,
                                 child_list& children) {
  job j;
  if (auto refused = prepare(request, j); !refused.ok()) return refused;
  const auto* info = request.module->source().find_kernel(request.kernel);
  if (request.cooperative && j.total > resident_blocks(*info, j.launch.threads, request.dynamic_shared)) {
    return refuse(outcome::out_of_resources, "kernel " + info->name + ": " + std::to_string(j.total) +
                                                 " cooperative blocks cannot be resident at once");
  }
  if (request.print) {
    j.print = [&](std::string_view text) {
      const std::lock_guard lock(j.print_lock);
      request.print(text);
    };
    j.launch.print = &j.print;
  }
  if (request.set_conditional) j.launch.set_conditional = &request.set_conditional;
  j.batch = std::clamp<std::uint64_t>(j.total / (std::uint64_t{threads()} * 8), 1, max_batch);
  child_grids made(*j.launch.module, children.depth);
  j.launch.children = &made;
  launch_result done = scheduler_->run(j, cancel);
  children = made.take();
  return done;
}

launch_result executor::run(const launch_request& request, const cancel_token* cancel) {
  child_list made;
  launch_result done = run_grid(request, cancel, made);
  if (made.empty()) return done;
  // Depth first: what follows a grid in its stream waits for those that it launched. A list, not recursion:
  // grids may launch a successor for ever.
  std::vector<child_list> open;
  launch_request next = request;
  next.cooperative = false;
  while (done.ok()) {
    if (!made.empty()) open.push_back(std::move(made));
    if (open.empty()) break;
    child_list& of = open.back();
    auto& from = of.now.empty() ? of.tail : of.now;
    const child_grid grid = std::move(from.front());
    from.pop_front();
    made = {};
    made.depth = of.depth + (&from == &of.now ? 1 : 0);
    if (of.empty()) open.pop_back();
    next.kernel = grid.kernel->name;
    next.grid = grid.grid, next.block = grid.block;
    next.dynamic_shared = grid.shared;
    next.parameters = grid.parameters;
    done = run_grid(next, cancel, made);
  }
  return done;
}

}  // namespace outboard::ptx
