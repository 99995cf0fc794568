// Fine-grained shared virtual memory: host and kernels use the same bytes without maps, one after the other
// and at the same time, atomics of both on one word. usage: opencl_fine_memory [any|wait]
//   any: on a device without, with maps instead and nothing at the same time
//   wait: a block is there, `ready`; after a line on stdin it is used again, whatever has become of the
//   server
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "codes.hh"
#include "node_list.hh"

static const char* const source = R"(
__kernel void count(volatile __global int* counter, int times) {
  for (int i = 0; i < times; ++i) atomic_inc(counter);
}
__kernel void answer(volatile __global int* turn, volatile __global int* word, int rounds) {
  for (int i = 1; i <= rounds; ++i) {
    while (atomic_add(turn, 0) != 2 * i - 1) {}
    *word = *word * 2 + 1;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_xchg(turn, 2 * i);
  }
}
__kernel void twice(__global int* v) { size_t i = get_global_id(0); v[i] *= 2; }
__kernel void behind(__global ulong* where) { *(__global int*)(*where) = 77; }
)";

static bool fine = true;

template <class T>
static T* shared(const machine& m, std::size_t count, cl_svm_mem_flags more = 0, cl_uint alignment = 0) {
  const cl_svm_mem_flags grain = fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER | more : 0;
  auto* const made =
      static_cast<T*>(clSVMAlloc(m.context, CL_MEM_READ_WRITE | grain, count * sizeof(T), alignment));
  REQUIRE(made != nullptr);
  REQUIRE(alignment == 0 || reinterpret_cast<std::uintptr_t>(made) % alignment == 0);
  return made;
}

/// What coarse-grained memory needs, and fine-grained does not.
static void begin(const machine& m, void* at, std::size_t size) {
  if (!fine)
    CHECK_CL(clEnqueueSVMMap(m.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, size, 0, nullptr, nullptr));
}
static void end(const machine& m, void* at) {
  if (!fine) CHECK_CL(clEnqueueSVMUnmap(m.queue, at, 0, nullptr, nullptr));
}

/// `group`: how many items work together; what it is not told, PoCL chooses by the number of items, and
/// compiles the kernel once more for each size that it chose.
static void run(const machine& m, cl_kernel kernel, std::size_t items, const std::size_t* group = nullptr) {
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, kernel, 1, nullptr, &items, group, 0, nullptr, nullptr));
}

static void list(const machine& m, cl_program program) {
  walk_list(
      m, program, CL_MEM_READ_WRITE | (fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0),
      [&](void* at, std::size_t size) {
        if (fine) CHECK_CL(clFinish(m.queue));
        begin(m, at, size);
      },
      [&](void* at) { end(m, at); });
}

/// Both add to one word while the other does.
static void counters(const machine& m, cl_program program) {
  const int items = 64, times = 2000, own = 100000;
  int* const counter = shared<int>(m, 1, CL_MEM_SVM_ATOMICS);
  begin(m, counter, sizeof *counter);
  *counter = 0;
  end(m, counter);
  cl_kernel count = m.kernel(program, "count");
  CHECK_CL(clSetKernelArgSVMPointer(count, 0, counter));
  CHECK_CL(clSetKernelArg(count, 1, sizeof times, &times));
  run(m, count, items);
  CHECK_CL(clFlush(m.queue));
  if (fine) {
    std::thread other([=] {
      for (int i = 0; i < own; ++i) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
    });
    other.join();
  }
  CHECK_CL(clFinish(m.queue));
  begin(m, counter, sizeof *counter);
  std::printf("counted %d\n", *counter + (fine ? 0 : own));
  end(m, counter);
  CHECK_CL(clFinish(m.queue));
  clSVMFree(m.context, counter);
  CHECK_CL(clReleaseKernel(count));
}

/// A kernel that is told what to do while it runs: each side spins until the other has had its turn.
static void turns(const machine& m, cl_program program) {
  const int rounds = 20;
  int word = 1;
  if (fine) {
    // On pages of their own, so that what is seen is not the luck of one page.
    int* const turn = shared<int>(m, 1, CL_MEM_SVM_ATOMICS);
    int* const said = shared<int>(m, 1, CL_MEM_SVM_ATOMICS);
    *turn = 0, *said = 1;
    cl_kernel answer = m.kernel(program, "answer");
    CHECK_CL(clSetKernelArgSVMPointer(answer, 0, turn));
    CHECK_CL(clSetKernelArgSVMPointer(answer, 1, said));
    CHECK_CL(clSetKernelArg(answer, 2, sizeof rounds, &rounds));
    run(m, answer, 1);
    CHECK_CL(clFlush(m.queue));
    for (int i = 1; i <= rounds; ++i) {
      *said ^= 5;
      __atomic_store_n(turn, 2 * i - 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != 2 * i) sched_yield();
    }
    word = *said;
    CHECK_CL(clFinish(m.queue));
    clSVMFree(m.context, turn);
    clSVMFree(m.context, said);
    CHECK_CL(clReleaseKernel(answer));
  } else {
    for (int i = 1; i <= rounds; ++i) word = (word ^ 5) * 2 + 1;
  }
  std::printf("after %d rounds: %d\n", rounds, word);
}

/// Commands on such memory: copies, fills, maps, buffers that stand for it.
static void commands(const machine& m, cl_program program) {
  const std::size_t n = 1u << 20;
  int *const a = shared<int>(m, n), *const b = shared<int>(m, n, 0, 128);
  std::vector<int> host(n);
  for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<int>(i * 3);
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_FALSE, a, host.data(), n * sizeof(int), 0, nullptr, nullptr));
  cl_kernel twice = m.kernel(program, "twice");
  CHECK_CL(clSetKernelArgSVMPointer(twice, 0, a));
  run(m, twice, n);
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_FALSE, b, a, n * sizeof(int), 0, nullptr, nullptr));
  const int pattern[2] = {5, 6};
  CHECK_CL(
      clEnqueueSVMMemFill(m.queue, b + 2, pattern, sizeof pattern, 4 * sizeof(int), 0, nullptr, nullptr));
  cl_event mapped = nullptr;
  CHECK_CL(clEnqueueSVMMap(m.queue, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, b, n * sizeof(int), 0, nullptr,
                           &mapped));
  cl_command_type type = 0;
  CHECK_CL(clGetEventInfo(mapped, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  REQUIRE(type == CL_COMMAND_SVM_MAP);
  CHECK_CL(clWaitForEvents(1, &mapped));
  for (std::size_t i = 0; i < n; ++i) REQUIRE(b[i] == (i >= 2 && i < 6 ? pattern[i % 2] : 2 * host[i]));
  b[7] = 70;
  cl_event unmapped = nullptr;
  CHECK_CL(clEnqueueSVMUnmap(m.queue, b, 1, &mapped, &unmapped));
  CHECK_CL(clGetEventInfo(unmapped, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  REQUIRE(type == CL_COMMAND_SVM_UNMAP);
  const void* both[] = {a, b};
  CHECK_CL(clEnqueueSVMMigrateMem(m.queue, 2, both, nullptr, 0, 1, &unmapped, nullptr));
  // The buffer is that very memory.
  cl_int code = CL_SUCCESS;
  cl_mem buffer =
      clCreateBuffer(m.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 64 * sizeof(int), b, &code);
  CHECK_CL(code);
  cl_bool uses = CL_FALSE;
  CHECK_CL(clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof uses, &uses, nullptr));
  REQUIRE(uses == CL_TRUE);
  set_arguments(twice, buffer);
  run(m, twice, 64);
  CHECK_CL(clFinish(m.queue));
  CHECK_CL(clReleaseMemObject(buffer));
  int part[10];
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_TRUE, part, b, sizeof part, 0, nullptr, nullptr));
  for (const int each : part) std::printf("%d ", each);
  // An address that a kernel finds in memory.
  std::uint64_t* const where = shared<std::uint64_t>(m, 1);
  begin(m, where, sizeof *where);
  *where = reinterpret_cast<std::uint64_t>(a + 3);
  end(m, where);
  cl_kernel behind = m.kernel(program, "behind");
  CHECK_CL(clSetKernelArgSVMPointer(behind, 0, where));
  void* const used[] = {a};
  CHECK_CL(clSetKernelExecInfo(behind, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof used, used));
  run(m, behind, 1);
  CHECK_CL(clFinish(m.queue));
  begin(m, a, 16);
  std::printf("behind: %d\n", a[3]);
  end(m, a);
  for (cl_event each : {mapped, unmapped}) CHECK_CL(clReleaseEvent(each));
  for (cl_kernel each : {behind, twice}) CHECK_CL(clReleaseKernel(each));
  void* all[] = {a, b, where};
  CHECK_CL(clEnqueueSVMFree(m.queue, 3, all, nullptr, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clFinish(m.queue));
}

/// Many blocks of all sizes beside each other, made and freed again: none touches another.
static void many(const machine& m, cl_program program) {
  cl_kernel twice = m.kernel(program, "twice");
  std::vector<std::pair<int*, std::size_t>> blocks;
  long long sum = 0;
  const std::size_t one = 1;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 100; ++i) {
      const std::size_t n = 1 + i * i % 3001;
      blocks.emplace_back(shared<int>(m, n), n);
      int* const at = blocks.back().first;
      begin(m, at, n * sizeof(int));
      for (std::size_t k = 0; k < n; ++k) at[k] = static_cast<int>(i + k);
      end(m, at);
    }
    for (const auto& [at, n] : blocks) {
      CHECK_CL(clSetKernelArgSVMPointer(twice, 0, at));
      run(m, twice, n, &one);
    }
    CHECK_CL(clFinish(m.queue));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto [at, n] = blocks[i];
      begin(m, at, n * sizeof(int));
      for (std::size_t k = 0; k < n; ++k) sum += at[k];
      end(m, at);
    }
    CHECK_CL(clFinish(m.queue));
    // Every other one stays for the next round.
    std::vector<std::pair<int*, std::size_t>> left;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      i % 2 ? clSVMFree(m.context, blocks[i].first) : left.push_back(blocks[i]);
    blocks = std::move(left);
  }
  for (const auto& [at, n] : blocks) clSVMFree(m.context, at);
  std::printf("many: %lld\n", sum);
  CHECK_CL(clReleaseKernel(twice));
}

static void no_memory(const machine& m) {
  const auto got = [&](cl_svm_mem_flags flags, std::size_t size, cl_uint alignment) {
    void* const made = clSVMAlloc(m.context, flags, size, alignment);
    if (made) clSVMFree(m.context, made);
    return made != nullptr;
  };
  constexpr cl_svm_mem_flags grain = CL_MEM_SVM_FINE_GRAIN_BUFFER;
  std::printf("wrong: %d %d %d %d %d\n", got(grain, 0, 0), got(CL_MEM_SVM_ATOMICS, 64, 0), got(grain, 64, 3),
              got(grain | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0), got(grain, ~std::size_t{0}, 0));
  std::printf("right: %d %d %d\n", got(grain, 64, 0), got(grain | CL_MEM_READ_ONLY, 64, 16),
              got(grain | CL_MEM_SVM_ATOMICS, 64, 0));
}

/// A child of fork() has nothing to do with it.
static void fork_and_go_on(const machine& m, cl_program program) {
  int* const at = shared<int>(m, 4);
  begin(m, at, 4 * sizeof(int));
  at[0] = 21;
  end(m, at);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  cl_kernel twice = m.kernel(program, "twice");
  CHECK_CL(clSetKernelArgSVMPointer(twice, 0, at));
  run(m, twice, 1);
  CHECK_CL(clFinish(m.queue));
  begin(m, at, sizeof(int));
  std::printf("after a fork: %d\n", at[0]);
  end(m, at);
  CHECK_CL(clFinish(m.queue));
  clSVMFree(m.context, at);
  CHECK_CL(clReleaseKernel(twice));
}

static int wait(const machine& m) {
  char* const at = shared<char>(m, 100000);
  std::memset(at, 1, 100000);
  std::puts("ready");
  std::fflush(stdout);
  (void)!std::getchar();
  // The pages are this process's, too: they stay.
  std::memset(at + 50000, 2, 50000);
  REQUIRE(at[49999] == 1 && at[99999] == 2);
  CODE(clFinish(m.queue));
  std::printf("more: %d\n", clSVMAlloc(m.context, CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0) != nullptr);
  clSVMFree(m.context, at);
  std::puts("PASS");
  std::fflush(stdout);
  std::_Exit(0);
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const machine m;
  cl_device_svm_capabilities able = 0;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_SVM_CAPABILITIES, sizeof able, &able, nullptr));
  std::printf("device: coarse %d, fine %d, system %d, atomics %d\n",
              (able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0, (able & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0,
              (able & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0, (able & CL_DEVICE_SVM_ATOMICS) != 0);
  fine = (able & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && (able & CL_DEVICE_SVM_ATOMICS);
  REQUIRE(fine || what == "any");
  if (!fine) REQUIRE(clSVMAlloc(m.context, CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0) == nullptr);
  if (what == "wait") return wait(m);
  cl_program program = m.build((node_list_source + std::string(source)).c_str(), "-cl-std=CL1.2");
  list(m, program);
  counters(m, program);
  turns(m, program);
  commands(m, program);
  many(m, program);
  if (what != "any") no_memory(m);
  fork_and_go_on(m, program);
  CHECK_CL(clReleaseProgram(program));
}
