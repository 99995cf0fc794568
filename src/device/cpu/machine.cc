#include "device/cpu/machine.hh"

#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cores.hh"
#include "base/log.hh"
#include "device/cpu/graph/capture.hh"
#include "device/cpu/ipc_event.hh"
#include "device/cpu/profile_of.hh"

namespace outboard::device::cpu {

std::atomic<machine*> current{nullptr};

namespace {

std::atomic<std::uint64_t> last_generation{0};

// Kernels of this many streams run at the same time, as many as a board runs; more wait their turn.
constexpr std::size_t most_stream_threads = 128;

std::uint64_t half_of_ram() {
  struct sysinfo about {};
  if (::sysinfo(&about) != 0) return 1ull << 30;
  return std::uint64_t{about.totalram} * about.mem_unit / 2;
}

void write_to(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return;  // nobody reads: printf has no way to say so either
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

class cpu_device final : public device {
 public:
  explicit cpu_device(std::unique_ptr<machine> m) : machine_(std::move(m)) {
    fill_device_entries(table_);
    fill_context_entries(table_);
    fill_memory_entries(table_);
    fill_virtual_memory_entries(table_);
    fill_pool_entries(table_);
    fill_managed_entries(table_);
    fill_pointer_entries(table_);
    fill_copy_entries(table_);
    fill_shaped_copy_entries(table_);
    fill_array_entries(table_);
    fill_texture_entries(table_);
    fill_texture_reference_entries(table_);
    fill_tensor_map_entries(table_);
    fill_stream_entries(table_);
    fill_stream_attribute_entries(table_);
    fill_event_entries(table_);
    fill_ipc_entries(table_);
    fill_module_entries(table_);
    fill_library_entries(table_);
    fill_function_entries(table_);
    fill_link_entries(table_);
    fill_launch_entries(table_);
    fill_capture_entries(table_);
    fill_graph_entries(table_);
    fill_graph_node_entries(table_);
    fill_graph_exec_entries(table_);
    fill_user_object_entries(table_);
    guard_entries(table_);
  }
  ~cpu_device() override {
    machine_.reset();
    current.store(nullptr, std::memory_order_release);
  }

  std::string_view kind() const override { return "cpu"; }
  int descriptor_behind(const CUipcEventHandle& handle) const override {
    return ipc_event::descriptor_of(handle);
  }
  CUipcEventHandle with_descriptor(const CUipcEventHandle& handle, int descriptor) const override {
    return ipc_event::received_with(handle, descriptor);
  }
  std::string describe() const override {
    const profile& p = machine_->facts;
    return std::string(profile::name) + ", " + std::to_string(p.cores) + " cores, " +
           std::to_string(p.memory_bytes >> 20) + " MiB, compute capability " +
           std::to_string(p.capability / 10) + "." + std::to_string(p.capability % 10);
  }
  const api::driver_table& cuda() const override { return table_; }
  work_recorder* recorder() override { return &machine_->recorder; }

 private:
  std::unique_ptr<machine> machine_;
  api::driver_table table_;
};

}  // namespace

machine::machine(const options& o, profile p, std::unique_ptr<memory> m)
    : how(o),
      facts(std::move(p)),
      generation(last_generation.fetch_add(1) + 1),
      store(std::move(m)),
      pools(*store),
      executor(facts.cores),
      kernels(o.kernel_timeout),
      work(most_stream_threads) {
  primary = make_context(true, 0);
  primary->active = false;
}

machine::~machine() {
  kernels.close();
  // What is queued is dropped, what runs ends within 100 ms.
  const auto all = contexts.all();
  for (const auto& [handle, c] : all) c->group->error.store(CUDA_ERROR_DEINITIALIZED);
  for (const auto& [handle, c] : all) work.synchronize(c->group);
  // Graphs find their nodes' handles here, so they go first.
  captures.clear();
  for (const auto& [handle, e] : graph_execs.all()) graph_execs.remove(handle);
  for (const auto& [handle, g] : graphs.all()) {
    if (!g->owned) graphs.remove(handle);
  }
  graph_blocks.clear();
}

context_ptr machine::make_context(bool is_primary, unsigned flags) {
  auto c = std::make_shared<context>();
  c->id = next_id.fetch_add(1);
  c->primary = is_primary;
  c->flags = flags;
  c->fresh();
  c->handle = contexts.insert(c);
  return c;
}

void machine::end_context(const context_ptr& c) {
  c->active.store(false, std::memory_order_release);
  work.synchronize(c->group);
  for (const auto& [handle, s] : streams.all()) {
    if (s->owner == c) streams.remove(handle);
  }
  for (const auto& [handle, e] : events.all()) {
    if (e->owner == c) events.remove(handle);
  }
  for (const auto& [handle, f] : functions.all()) {
    if (f->owner == c) functions.remove(handle);
  }
  for (const auto& [handle, m] : modules.all()) {
    if (m->owner == c) modules.remove(handle);
  }
  for (const auto& [handle, l] : libraries.all()) {
    std::lock_guard lock(l->mutex);
    l->instances.erase(c->id);
    l->modules.erase(c->id);
  }
  for (const auto& [handle, k] : kernel_handles.all()) {
    std::lock_guard lock(k->mutex);
    k->functions.erase(c->id);
  }
  // Pools belong to the device: they outlive created contexts, and end with the primary one.
  if (c->primary) pools.release_all();
  textures.remove_owned(c);
  for (const auto& [handle, a] : arrays.all()) {
    if (a->owner == c) arrays.remove(handle);
  }
  for (const auto& [handle, m] : mipmapped_arrays.all()) {
    if (m->owner == c) mipmapped_arrays.remove(handle);
  }
  store->release_owned(c->id);
  c->fresh();
}

profile profile_of(const options& how) {
  const std::uint64_t bytes = how.memory_bytes != 0 ? how.memory_bytes : half_of_ram();
  return make_profile(how.capability, how.cores != 0 ? how.cores : static_cast<unsigned>(usable_cores()),
                      bytes / memory::granularity * memory::granularity, how.kernel_timeout.count() > 0);
}

result<std::unique_ptr<device>> open(const options& how) {
  if (how.capability < 50 || how.capability > 129) {
    return failure("compute capability " + std::to_string(how.capability) + " is not within 50 and 129");
  }
  options used = how;
  if (!used.print) used.print = [](std::string_view text) { write_to(STDOUT_FILENO, text); };
  if (!used.print_error) used.print_error = [](std::string_view text) { write_to(STDERR_FILENO, text); };
  if (!used.tell) used.tell = [](std::string_view line) { log::error(line); };
  profile p = profile_of(how);
  if (p.cores > 4096) return failure(std::to_string(p.cores) + " cores are more than 4096");
  if (p.memory_bytes < memory::granularity || p.memory_bytes > std::uint64_t{1} << 45) {
    return failure("device memory of " + std::to_string(how.memory_bytes) +
                   " bytes is not within 2 MiB and 32 TiB");
  }
  auto store = memory::create(p.memory_bytes);
  if (!store) return store.error();
  static std::mutex opening;
  std::lock_guard lock(opening);
  if (current.load() != nullptr) return failure("another cpu device is open in this process");
  auto m = std::make_unique<machine>(used, std::move(p), std::move(*store));
  current.store(m.get(), std::memory_order_release);
  return std::unique_ptr<device>(std::make_unique<cpu_device>(std::move(m)));
}

}  // namespace outboard::device::cpu
