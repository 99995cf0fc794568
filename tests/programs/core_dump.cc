// Core dumps of the GPU as cuda-gdb's users have them: by the environment and by attributes, with the names
// that they choose, written where the program runs; the program ends by them unless it says otherwise. Each
// case is a child process. A device that writes none says so, and nothing else changes.
#include <cuda.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

namespace {

constexpr std::size_t allocated = 16u << 20;
constexpr const char* faults = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry wild(.param .u64 p) { .reg .u64 a; ld.param.u64 a, [p]; st.global.u32 [a], 1; ret; }
.visible .entry traps(.param .u64 p) { trap; ret; }
)";

int failures = 0;
std::string folder;
pid_t last = 0;  ///< child

void expect(bool good, const char* what, long long got = 0) {
  if (good) return;
  std::printf("FAIL: %s (%lld)\n", what, got);
  ++failures;
}

/// In a child: what went wrong is its exit status.
void must(int code, int wanted, int status) {
  if (code == wanted) return;
  std::printf("FAIL: code %d, not %d (%d)\n", code, wanted, status);
  std::fflush(stdout);
  std::_Exit(status);
}

template <class T>
int set(CUcoredumpSettings attribute, T value) {
  std::size_t size = sizeof value;
  return cuCoredumpSetAttributeGlobal(attribute, &value, &size);
}
int set_name(std::string name, bool global = true) {
  std::size_t size = name.size() + 1;
  return global ? cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name.data(), &size)
                : cuCoredumpSetAttribute(CU_COREDUMP_FILE, name.data(), &size);
}

/// A context, memory, and a kernel that fails in it. Gives what the wait for it says.
int fail(const char* kernel) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0, wild = 0x10;
  must(cuDevicePrimaryCtxRetain(&context, 0), 0, 21);
  must(cuCtxSetCurrent(context), 0, 22);
  must(cuModuleLoadData(&module, faults), 0, 23);
  must(cuModuleGetFunction(&function, module, kernel), 0, 24);
  must(cuMemAlloc(&memory, allocated), 0, 25);
  void* arguments[] = {&wild};
  must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), 0, 26);
  const int code = cuCtxSynchronize();
  // While a driver dumps it may call the kernel finished; every later call knows better.
  for (int i = 0; i < 100 && code == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (const int later = cuMemFree(memory); later != 0) return later;
    memory = 0;
    must(cuMemAlloc(&memory, 4096), 0, 27);
  }
  return code;
}

/// The status of a child that does this, with the environment of `variables` ("NAME=value").
int child(std::initializer_list<const char*> variables, const std::function<int()>& body) {
  std::fflush(stdout);
  const pid_t made = ::fork();
  if (made == 0) {
    for (const char* v : variables) ::putenv(const_cast<char*>(v));
    if (::chdir(folder.c_str()) != 0) std::_Exit(20);
    std::_Exit(body());
  }
  int status = -1;
  ::waitpid(made, &status, 0);
  last = made;
  return status;
}

std::string of_last_child(const std::string& name) { return folder + "/" + name + std::to_string(last); }

/// A whole dump: a core of the device with its memory in it.
void expect_dump(const std::string& path, bool there, const char* what) {
  struct stat about {};
  const bool found = ::stat(path.c_str(), &about) == 0;
  char magic[4] = "";
  if (found) {
    const int file = ::open(path.c_str(), O_RDONLY);
    expect(::read(file, magic, 4) == 4 && std::memcmp(magic, "\177ELF", 4) == 0, what);
    ::close(file);
    expect(there && about.st_size > static_cast<off_t>(allocated), what, about.st_size);
    ::unlink(path.c_str());
  } else {
    expect(!there, what);
  }
}

bool aborted(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }
bool left(int status, int with) { return WIFEXITED(status) && WEXITSTATUS(status) == with; }

int by_environment(const char* kernel, int wanted) {
  must(cuInit(0), 0, 10);
  const int code = fail(kernel);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // if the end comes by itself, it comes now
  return code == wanted ? 0 : 1;
}

constexpr const char* on = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1";

void no_dumps() {
  const int status = child({on}, [] { return by_environment("wild", CUDA_ERROR_ILLEGAL_ADDRESS); });
  expect(left(status, 0), "a program that wished for dumps where there are none goes on", status);
  expect(left(child({},
                    [] {
                      return set(CU_COREDUMP_ENABLE_USER_TRIGGER, true) == CUDA_ERROR_NOT_SUPPORTED ? 0 : 1;
                    }),
              0),
         "dumps on demand");
}

void dumps() {
  int status = child({on, "CUDA_COREDUMP_FILE=f.%p"}, [] { return by_environment("wild", 700); });
  expect(aborted(status), "a fault ends the program", status);
  expect_dump(of_last_child("f."), true, "the dump by the environment");

  status = child({on, "CUDA_COREDUMP_FILE=t.%p", "CUDA_COREDUMP_GENERATION_FLAGS=skip_abort"}, [] {
    must(cuInit(0), 0, 10);
    const int code = fail("traps");
    // Whoever hears of the fault has the dump.
    return code == CUDA_ERROR_LAUNCH_FAILED &&
                   ::access(("t." + std::to_string(::getpid())).c_str(), F_OK) == 0
               ? 0
               : 1;
  });
  expect(left(status, 0), "a program that does not want to end goes on", status);
  expect_dump(of_last_child("t."), true, "the dump of a trap");

  status = child({}, [] {
    must(set_name("x.%p"), 0, 11);
    must(cuInit(0), 0, 10);
    must(set(CU_COREDUMP_GENERATION_FLAGS, static_cast<int>(CU_COREDUMP_SKIP_ABORT)), 0, 12);
    must(set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true), 0, 13);
    char name[1024] = "";
    std::size_t size = sizeof name;
    must(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size), 0, 14);
    must(std::strcmp(name, ("x." + std::to_string(::getpid())).c_str()), 0, 15);
    return fail("wild") == 700 ? 0 : 1;
  });
  expect(left(status, 0), "dumps by attributes", status);
  expect_dump(of_last_child("x."), true, "the dump by attributes");

  status = child({on, "CUDA_COREDUMP_FILE=/no/such/folder/f"}, [] { return by_environment("wild", 700); });
  expect(left(status, 0), "a dump that cannot be written ends nothing", status);

  status = child({}, [] {
    must(cuInit(0), 0, 10);
    must(set_name("late.%p"), 0, 11);
    CUcontext context = nullptr;
    must(cuDevicePrimaryCtxRetain(&context, 0), 0, 21);
    must(cuCtxSetCurrent(context), 0, 22);
    must(set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true), 0, 13);
    return fail("wild") == 700 ? 0 : 1;
  });
  expect(left(status, 0), "a context that lived already dumps nothing", status);
  expect_dump(of_last_child("late."), false, "the dump of a context that lived already");

  status = child({on, "CUDA_COREDUMP_FILE=none.%p"}, [] {
    must(cuInit(0), 0, 10);
    CUcontext context = nullptr;
    must(cuDevicePrimaryCtxRetain(&context, 0), 0, 21);
    return 0;
  });
  expect(left(status, 0), "a program without a fault", status);
  expect_dump(of_last_child("none."), false, "the dump of nothing");
}

}  // namespace

int main() {
  char name[] = "/tmp/core_dump_XXXXXX";
  if (!::mkdtemp(name)) return 1;
  folder = name;
  const int status = child({}, [] {
    must(cuInit(0), 0, 10);
    const int code = set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true);
    return code == CUDA_ERROR_NOT_SUPPORTED ? 40 : code == 0 ? 41 : 42;
  });
  expect(left(status, 40) || left(status, 41), "dumps can be switched on, or are not supported", status);
  if (left(status, 41)) {
    dumps();
  } else {
    no_dumps();
  }
  ::rmdir(folder.c_str());
  if (failures != 0) return std::printf("%d failures\n", failures), 1;
  std::printf("PASSED%s\n", left(status, 41) ? "" : " (no dumps here)");
  return 0;
}
