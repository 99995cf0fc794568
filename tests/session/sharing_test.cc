// A session that has opened another session's memory, event and pool loses its worker: the records open them
// again at the same addresses as long as the other session lives. If it has ended, rebuilding fails.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/process.hh"
#include "frontend/cuda/remote.hh"
#include "server.hh"

namespace outboard::tests {
namespace {

using api::opcode;
namespace cuda = frontend::cuda;
namespace ends = frontend::cuda::ends;
using frontend::process;

constexpr std::size_t bytes = 3 << 20;

struct gift {
  CUipcMemHandle memory;
  CUipcEventHandle event;
};

void begin(const server& s) {
  boot(s);
  CUcontext context = nullptr;
  ASSERT_EQ(ends::cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuCtxSetCurrent(context), CUDA_SUCCESS);
}

/// The other process. It begins on request, so that its session is the second, and shares its memory until it
/// is killed.
class giver {
 public:
  explicit giver(const server& s) {
    EXPECT_EQ(::pipe(tell_), 0);
    EXPECT_EQ(::pipe(hear_), 0);
    process_ = ::fork();
    if (process_ != 0) return;
    char now;
    if (::read(tell_[0], &now, 1) != 1) ::_exit(1);
    begin(s);
    CUdeviceptr data = 0;
    CUevent event = nullptr;
    gift g{};
    const bool made =
        ends::cuMemAlloc_v2(&data, bytes) == CUDA_SUCCESS &&
        cuda::remote<opcode::cuMemsetD32_v2>(data, 99u, bytes / 4) == CUDA_SUCCESS &&
        cuda::remote<opcode::cuEventCreate>(
            &event, unsigned{CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS}) == CUDA_SUCCESS &&
        ends::cuIpcGetMemHandle(&g.memory, data) == CUDA_SUCCESS &&
        ends::cuIpcGetEventHandle(&g.event, event) == CUDA_SUCCESS &&
        ends::cuCtxSynchronize() == CUDA_SUCCESS;
    if (!made || ::write(hear_[1], &g, sizeof g) != sizeof g) ::_exit(1);
    ::pause();
  }
  ~giver() { end(); }
  gift take() {
    gift g{};
    EXPECT_EQ(::write(tell_[1], "x", 1), 1);
    EXPECT_EQ(::read(hear_[0], &g, sizeof g), static_cast<ssize_t>(sizeof g));
    return g;
  }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  int tell_[2], hear_[2];
  pid_t process_ = -1;
};

unsigned word_at(CUdeviceptr at) {
  unsigned value = 0;
  EXPECT_EQ(ends::cuMemcpyDtoH_v2(&value, at, sizeof value), CUDA_SUCCESS);
  return value;
}

void opened_again(const server& s, bool giver_lives) {
  giver other(s);
  begin(s);
  const gift g = other.take();
  CUdeviceptr data = 0;
  CUevent event = nullptr;
  ASSERT_EQ(ends::cuIpcOpenMemHandle_v2(&data, g.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuIpcOpenEventHandle(&event, g.event), CUDA_SUCCESS);
  EXPECT_EQ(word_at(data + bytes - 4), 99u);
  std::vector<std::byte> records;
  ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
  ASSERT_TRUE(s.kill_worker());
  if (!giver_lives) {
    other.end();
    ASSERT_TRUE(s.has_no_session_left());
    EXPECT_NE(process::instance().connection.rebuild(records), CUDA_SUCCESS)
        << "nobody has that memory any more";
    return;
  }
  ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);
  EXPECT_EQ(word_at(data), 99u);
  EXPECT_EQ(cuda::remote<opcode::cuEventQuery>(event), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuIpcCloseMemHandle(data), CUDA_SUCCESS);
}

/// Memory of other sessions does not count as this session's.
void not_in_the_ledger(const server& s) {
  giver other(s);
  begin(s);
  const gift g = other.take();
  marshal::ledger_reply before, after;
  ASSERT_EQ(process::instance().connection.ledger(before), CUDA_SUCCESS);
  CUdeviceptr data = 0;
  ASSERT_EQ(ends::cuIpcOpenMemHandle_v2(&data, g.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  ASSERT_EQ(process::instance().connection.ledger(after), CUDA_SUCCESS);
  EXPECT_EQ(after.device(), before.device());
  ASSERT_EQ(ends::cuIpcCloseMemHandle(data), CUDA_SUCCESS);
  ASSERT_EQ(process::instance().connection.ledger(after), CUDA_SUCCESS);
  EXPECT_EQ(after.device(), before.device());
}

TEST(sharing, imported_memory_and_events_are_opened_again_by_a_rebuild) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] { opened_again(s, true); }));
}

TEST(sharing, a_rebuild_fails_with_a_code_if_the_other_session_is_gone) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] { opened_again(s, false); }));
}

TEST(sharing, imported_memory_is_not_in_the_importers_ledger) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] { not_in_the_ledger(s); }));
}

}  // namespace
}  // namespace outboard::tests
