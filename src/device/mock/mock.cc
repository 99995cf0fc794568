#include "device/mock/mock.hh"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "device/mock/state.hh"

namespace outboard::device::mock {

std::atomic<state*> current{nullptr};

namespace {

api::opcode code_of(std::string_view name) {
  const api::function_info* found = api::find_function(name);
  CHECK(found != nullptr);  // a typing error in a test
  return found->code;
}

class owner final : public mock_device {
 public:
  explicit owner(std::unique_ptr<state> s) : state_(std::move(s)) { fill_entries(table_); }
  ~owner() override {
    state_->calls.release_all();
    current.store(nullptr, std::memory_order_release);
  }

  std::string_view kind() const override { return "mock"; }
  std::string describe() const override { return "mock device expanded from the tables, CUDA 13.0"; }
  const api::driver_table& cuda() const override { return table_; }

  std::uint64_t calls(std::string_view name) const override { return state_->calls.calls(code_of(name)); }
  std::uint64_t all_calls() const override { return state_->calls.all_calls(); }
  void fail(std::string_view name, CUresult code, std::uint64_t times) override {
    state_->calls.fail(code_of(name), code, times);
  }
  void block(std::string_view name) override { state_->calls.block(code_of(name), true); }
  void release(std::string_view name) override { state_->calls.block(code_of(name), false); }
  bool wait_blocked(std::string_view name, std::size_t count,
                    std::chrono::milliseconds limit) const override {
    return state_->calls.wait_blocked(code_of(name), count, limit);
  }
  std::vector<call_record> log() const override { return state_->calls.log(); }
  void clear_log() override { state_->calls.clear_log(); }

  void set_parameters(std::vector<parameter_layout> layout) override {
    std::lock_guard lock(state_->mutex);
    state_->parameters = std::move(layout);
  }
  void set_attribute(CUdevice_attribute id, int value) override {
    std::lock_guard lock(state_->mutex);
    state_->attributes.at(id) = value;
  }
  void set_total_memory(std::uint64_t bytes) override {
    std::lock_guard lock(state_->mutex);
    state_->total_memory = bytes;
  }
  std::uint64_t used_memory() const override {
    std::lock_guard lock(state_->mutex);
    return state_->used_memory;
  }

 private:
  std::unique_ptr<state> state_;
  api::driver_table table_;
};

}  // namespace

state::~state() {
  for (const auto& [address, size] : allocations) std::free(reinterpret_cast<void*>(address));
  for (const auto& [address, size] : host_blocks) std::free(reinterpret_cast<void*>(address));
  for (const auto& [key, address] : globals) std::free(reinterpret_cast<void*>(address));
  for (const auto& [address, size] : reservations) ::munmap(reinterpret_cast<void*>(address), size);
  for (const auto& [handle, block] : physicals) ::close(block.fd);
}

const api::driver_table& behaviours() {
  static const api::driver_table all = [] {
    api::driver_table table;
    set_fact_behaviours(table);
    set_context_behaviours(table);
    set_memory_behaviours(table);
    set_virtual_memory_behaviours(table);
    set_array_behaviours(table);
    set_multicast_behaviours(table);
    set_green_context_behaviours(table);
    return table;
  }();
  return all;
}

result<std::unique_ptr<mock_device>> open() {
  auto fresh = std::make_unique<state>();
  set_default_attributes(*fresh);
  state* none = nullptr;
  if (!current.compare_exchange_strong(none, fresh.get())) {
    return failure("another mock device is open in this process");
  }
  return std::unique_ptr<mock_device>(std::make_unique<owner>(std::move(fresh)));
}

}  // namespace outboard::device::mock
