// A client that breaks the protocol names managed memory that has gone: its module was unloaded, its context
// ended, a pool took it back. The worker, here with the cpu device, whose memory is the worker's own,
// refuses.
#include <condition_variable>

#include "device/cpu/cpu.hh"
#include "loopback_session.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::tests {
namespace {

/// The cpu device, whose module's unload can be held up, and whose pools give out managed memory.
class held_device : public ::outboard::device::device {
 public:
  explicit held_device(const ::outboard::device::device& inner) : inner_(inner), table_(inner.cuda()) {
    driver_ = inner.cuda();
    table_.cuModuleUnload = [](CUmodule module) {
      std::unique_lock lock(mutex_);
      inside_ = true;
      moved_.notify_all();
      moved_.wait(lock, [] { return !held_; });
      return driver_.cuModuleUnload(module);
    };
    table_.cuMemAllocAsync = [](CUdeviceptr* out, std::size_t size, CUstream) {
      return driver_.cuMemAllocManaged(out, size, CU_MEM_ATTACH_GLOBAL);
    };
    table_.cuMemFreeAsync = [](CUdeviceptr address, CUstream) { return driver_.cuMemFree_v2(address); };
  }
  std::string_view kind() const override { return inner_.kind(); }
  std::string describe() const override { return inner_.describe(); }
  const api::driver_table& cuda() const override { return table_; }

  static void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held, inside_ = false;
    moved_.notify_all();
  }
  static void await_unload() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [] { return inside_; });
  }
  static const api::driver_table& driver() { return driver_; }

 private:
  static inline std::mutex mutex_;
  static inline std::condition_variable moved_;
  static inline bool held_ = false, inside_ = false;
  static inline api::driver_table driver_;
  const ::outboard::device::device& inner_;
  api::driver_table table_;
};

class gone_memory : public loopback_session {
 protected:
  gone_memory() {
    auto opened = device::cpu::open({.memory_bytes = 256u << 20, .cores = 2});
    EXPECT_TRUE(opened.ok());
    cpu_ = std::move(*opened);
    EXPECT_EQ(cpu_->cuda().cuInit(0), CUDA_SUCCESS);
    held_ = std::make_unique<held_device>(*cpu_);
    held_device::hold(false);
  }
  device::device& used() override { return *held_; }
  void SetUp() override {
    loopback_session::SetUp();
    start_client();
  }

  CUresult mirror(std::uint64_t address, std::uint64_t context = context_handle) {
    std::vector<std::byte> reply;
    const auto body = encoded(marshal::host_map_body{address, 4096, 0, marshal::host_block::managed});
    return session_->call(request(1, opcode::cuMemHostGetDevicePointer_v2, body, context), reply);
  }
  std::uint64_t variable_of(std::uint64_t parent, opcode how) {
    std::vector<std::byte> reply;
    EXPECT_EQ(call(1, how, encoded(marshal::lookup_body{parent, "shared"}), &reply), CUDA_SUCCESS);
    wire::reader from(reply);
    return marshal::take_body<marshal::lookup_reply>(from).address;
  }
  /// The address of the module's managed variable, which the session then mirrors.
  std::uint64_t mirrored_variable(std::uint64_t context = context_handle) {
    load(".visible .global .attribute(.managed) .align 8 .b8 shared[4096];\n.visible .entry k() { ret; }\n");
    const std::uint64_t address = variable_of(module_handle, opcode::cuModuleGetGlobal_v2);
    EXPECT_EQ(mirror(address, context), CUDA_SUCCESS);
    EXPECT_EQ(store(address), CUDA_SUCCESS);
    return address;
  }
  /// What a client says of a byte that its program has changed.
  CUresult store(std::uint64_t block, std::uint32_t lane = 1, std::uint64_t context = context_handle) {
    std::vector<std::byte> memory(4096), shadow(4096), changes;
    memory[8] = std::byte{5};
    marshal::find_changes(block, memory, shadow, 0, 8192, ~0ull >> 1, changes);
    const auto code = static_cast<std::uint32_t>(marshal::service::memory_update);
    frontend::outgoing update{code, lane, context, {}, {}};
    update.bulk = changes;
    EXPECT_EQ(session_->post(update), CUDA_SUCCESS);
    std::vector<std::byte> reply;
    return session_->call(request(lane, opcode::cuCtxSynchronize, {}, context), reply);
  }
  std::uint64_t address_from(opcode how, std::span<const std::byte> body) {
    std::vector<std::byte> reply;
    EXPECT_EQ(call(1, how, body, &reply), CUDA_SUCCESS);
    wire::reader from(reply);
    return marshal::take_body<marshal::address_reply>(from).address;
  }
  std::uint64_t pooled() {
    return address_from(opcode::cuMemAllocAsync, encoded(marshal::pool_body{4096, 0, 0, 0, false}));
  }
  CUresult free_pooled(std::uint64_t address) {
    return call(1, opcode::cuMemFreeAsync, encoded(marshal::pool_body{0, address, 0, 0, false}));
  }
  CUresult free(std::uint64_t address) {
    return call(1, opcode::cuMemFree_v2, encoded(marshal::unmap_body{address, 4096}));
  }
  CUresult unload() { return call(1, opcode::cuModuleUnload, encoded(marshal::handle_body{module_handle})); }

  std::unique_ptr<device::device> cpu_;
  std::unique_ptr<held_device> held_;
};

TEST_F(gone_memory, a_variable_is_not_written_from_the_unload_of_its_module_on) {
  const std::uint64_t variable = mirrored_variable();
  held_device::hold(true);
  std::thread unloading([&] { EXPECT_EQ(unload(), CUDA_SUCCESS); });
  held_device::await_unload();
  EXPECT_EQ(store(variable, 2), CUDA_ERROR_INVALID_VALUE) << "the driver may be freeing it";
  held_device::hold(false);
  unloading.join();
}

TEST_F(gone_memory, a_variable_is_not_read_after_its_module) {
  const std::uint64_t variable = mirrored_variable();
  ASSERT_EQ(unload(), CUDA_SUCCESS);
  std::vector<std::byte> changes;
  const auto body = encoded(marshal::fetch_body{.address = variable});
  frontend::outgoing ask{static_cast<std::uint32_t>(marshal::service::memory_fetch), 1, 0, body, {}};
  ASSERT_EQ(session_->call(ask, changes), CUDA_SUCCESS);
  wire::reader from(changes);
  (void)marshal::take_body<marshal::fetch_body>(from);
  EXPECT_TRUE(from.finished()) << "no block is left to have changes";
  EXPECT_EQ(call(1, opcode::cuMemFreeHost, encoded(marshal::handle_body{variable})), CUDA_ERROR_INVALID_VALUE)
      << "the session has forgotten it";
}

TEST_F(gone_memory, a_variable_is_not_written_after_its_context_whatever_context_mirrored_it) {
  const std::uint64_t other = wire::handle::make(1, 1, 1).value;
  ASSERT_EQ(call(1, opcode::cuCtxCreate_v2, encoded(marshal::context_body{other, 0, 0})), CUDA_SUCCESS);
  const std::uint64_t variable = mirrored_variable(other);
  ASSERT_EQ(call(1, opcode::cuDevicePrimaryCtxReset_v2, encoded(marshal::context_body{context_handle, 0, 0})),
            CUDA_SUCCESS);
  EXPECT_EQ(store(variable, 1, other), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(gone_memory, managed_memory_of_a_pool_is_not_written_after_its_free) {
  const std::uint64_t first = pooled();
  ASSERT_EQ(mirror(first), CUDA_SUCCESS);
  EXPECT_EQ(store(first), CUDA_SUCCESS);
  EXPECT_EQ(free_pooled(first), CUDA_SUCCESS);
  EXPECT_EQ(store(first), CUDA_ERROR_INVALID_VALUE);
  const std::uint64_t second = pooled();
  ASSERT_EQ(mirror(second), CUDA_SUCCESS);
  EXPECT_EQ(free(second), CUDA_SUCCESS);
  EXPECT_EQ(store(second), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(gone_memory, managed_memory_is_freed_by_its_mirror_alone) {
  const auto managed = encoded(marshal::managed_body{4096, 0, CU_MEM_ATTACH_GLOBAL});
  const std::uint64_t block = address_from(opcode::cuMemAllocManaged, managed);
  EXPECT_EQ(free_pooled(block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(store(block), CUDA_SUCCESS) << "it is still there";
  EXPECT_EQ(free(block), CUDA_SUCCESS);
  // What a pool had there went without a word to the ledger.
  const std::uint64_t lost = pooled();
  ASSERT_EQ(held_device::driver().cuMemFree_v2(lost), CUDA_SUCCESS);
  const std::uint64_t again = address_from(opcode::cuMemAllocManaged, managed);
  ASSERT_EQ(again, lost) << "the test needs the same address";
  EXPECT_EQ(free(again), CUDA_SUCCESS);
  EXPECT_EQ(store(again), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace outboard::tests
