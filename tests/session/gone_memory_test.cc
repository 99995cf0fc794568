// A client that breaks the protocol names memory that has gone: its module was unloaded, its allocation was
// freed. The worker, here with the cpu device, whose memory is the worker's own, refuses.
#include "device/cpu/cpu.hh"
#include "loopback_session.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::tests {
namespace {

class gone_memory : public loopback_session {
 protected:
  gone_memory() {
    auto opened = device::cpu::open({.memory_bytes = 256u << 20, .cores = 2});
    EXPECT_TRUE(opened.ok());
    cpu_ = std::move(*opened);
    EXPECT_EQ(cpu_->cuda().cuInit(0), CUDA_SUCCESS);
  }
  device::device& used() override { return *cpu_; }

  /// The address of the module's managed variable, which the session then mirrors.
  std::uint64_t mirrored_variable() {
    load(".visible .global .attribute(.managed) .align 8 .b8 shared[4096];\n.visible .entry k() { ret; }\n");
    std::vector<std::byte> reply;
    EXPECT_EQ(
        call(1, opcode::cuModuleGetGlobal_v2, encoded(marshal::lookup_body{module_handle, "shared"}), &reply),
        CUDA_SUCCESS);
    wire::reader from(reply);
    const std::uint64_t address = marshal::take_body<marshal::lookup_reply>(from).address;
    EXPECT_EQ(call(1, opcode::cuMemHostGetDevicePointer_v2,
                   encoded(marshal::host_map_body{address, 4096, 0, marshal::host_block::managed})),
              CUDA_SUCCESS);
    return address;
  }
  /// What a client says of a byte that its program has changed.
  CUresult store(std::uint64_t block) {
    std::vector<std::byte> memory(4096), shadow(4096), changes;
    memory[8] = std::byte{5};
    marshal::find_changes(block, memory, shadow, 0, 8192, ~0ull >> 1, changes);
    frontend::outgoing update{
        static_cast<std::uint32_t>(marshal::service::memory_update), 1, context_handle, {}, {}};
    update.bulk = changes;
    EXPECT_EQ(session_->post(update), CUDA_SUCCESS);
    return synchronize(1);
  }

  std::unique_ptr<device::device> cpu_;
};

TEST_F(gone_memory, a_variable_is_not_written_after_its_module) {
  start_client();
  const std::uint64_t variable = mirrored_variable();
  EXPECT_EQ(store(variable), CUDA_SUCCESS);
  ASSERT_EQ(call(1, opcode::cuModuleUnload, encoded(marshal::handle_body{module_handle})), CUDA_SUCCESS);
  EXPECT_EQ(store(variable), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(gone_memory, a_variable_is_not_read_after_its_module) {
  start_client();
  const std::uint64_t variable = mirrored_variable();
  ASSERT_EQ(call(1, opcode::cuModuleUnload, encoded(marshal::handle_body{module_handle})), CUDA_SUCCESS);
  // The memory is another block's by now; what the client gets must not show it.
  marshal::map_body wanted{.size = 64 << 10};
  std::vector<std::byte> reply;
  ASSERT_EQ(call(1, opcode::cuMemAlloc_v2, encoded(wanted), &reply), CUDA_SUCCESS);
  std::vector<std::byte> changes;
  frontend::outgoing ask = request(1, opcode::cuCtxSynchronize, {}, 0);
  const auto body = encoded(marshal::fetch_body{.address = variable});
  ask.opcode = static_cast<std::uint32_t>(marshal::service::memory_fetch);
  ask.payload = body;
  ASSERT_EQ(session_->call(ask, changes), CUDA_SUCCESS);
  wire::reader from(changes);
  (void)marshal::take_body<marshal::fetch_body>(from);
  EXPECT_TRUE(from.finished()) << "no block is left to have changes";
  EXPECT_EQ(call(1, opcode::cuMemFreeHost, encoded(marshal::handle_body{variable})), CUDA_ERROR_INVALID_VALUE)
      << "the session has forgotten it";
}

}  // namespace
}  // namespace outboard::tests
