// Core dumps of the GPU as users of cuda-gdb know them: requested by the environment, by attributes or by a
// context's flag, under the names that they choose, written where the program runs; the program ends with
// them unless it asks not to. The expectations were observed with driver 580.159.04. Each case is a child
// process in a folder of its own. A device that writes no dumps says so, and nothing else changes.
#include <cuda.h>
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::size_t allocated = 16u << 20;
constexpr const char* faults = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry wild(.param .u64 p) { .reg .u64 a; ld.param.u64 a, [p]; st.global.u32 [a], 1; ret; }
.visible .entry traps(.param .u64 p) { trap; ret; }
)";
constexpr const char* on = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1";
constexpr const char* no_abort = "CUDA_COREDUMP_GENERATION_FLAGS=skip_abort";
constexpr const char* standard_name = "core_[0-9]*_%h_%p.nvcudmp";
/// A dump takes a second; a child that waits for longer hangs.
constexpr auto patience = 20s;

int failures = 0;
const char* current = "";  ///< case

void failed(const std::string& what) {
  std::printf("FAIL: %s: %s\n", current, what.c_str());
  std::fflush(stdout);
  ++failures;
}

/// Used in a child, which ends if another code comes.
void must(int code, const char* what, int wanted = CUDA_SUCCESS) {
  if (code == wanted) return;
  failed(std::string(what) + " gives " + std::to_string(code) + ", not " + std::to_string(wanted));
  std::_Exit(1);
}

template <class T>
void set(CUcoredumpSettings attribute, T value, bool global = true) {
  std::size_t size = sizeof value;
  auto* const entry = global ? cuCoredumpSetAttributeGlobal : cuCoredumpSetAttribute;
  must(entry(attribute, &value, &size), "setting an attribute");
}

void set_name(std::string name, bool global = true) {
  std::size_t size = name.size() + 1;
  auto* const entry = global ? cuCoredumpSetAttributeGlobal : cuCoredumpSetAttribute;
  must(entry(CU_COREDUMP_FILE, name.data(), &size), "setting the name");
}

/// The primary context is current, or one with these flags.
void begin(unsigned flags = 0) {
  CUcontext context = nullptr;
  if (flags != 0) return must(cuCtxCreate(&context, nullptr, flags, 0), "making a context");
  must(cuDevicePrimaryCtxRetain(&context, 0), "retaining the primary context");
  must(cuCtxSetCurrent(context), "making it current");
}

/// Launches a kernel that fails, and allocates memory. Returns what the first wait says.
int fault(const char* kernel, CUdeviceptr& memory) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr nowhere = 0;
  must(cuModuleLoadData(&module, faults), "loading the module");
  must(cuModuleGetFunction(&function, module, kernel), "finding the kernel");
  must(cuMemAlloc(&memory, allocated), "allocating");
  void* arguments[] = {&nowhere};
  must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), "launching");
  return cuCtxSynchronize();
}

/// Causes a fault, which the program learns of by this code. Its memory stays allocated, because the dump
/// must contain it.
void hear(const char* kernel, int wanted) {
  CUdeviceptr memory = 0;
  int code = fault(kernel, memory);
  // While it writes the dump, a driver may report the kernel as finished; a call that asks the device gets
  // the fault.
  const auto end = std::chrono::steady_clock::now() + patience;
  while (code == CUDA_SUCCESS && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(100ms);
    int word = 0;
    code = cuMemcpyDtoH(&word, memory, sizeof word);
  }
  must(code, "asking after the fault", wanted);
}

/// Causes a fault that ends the program without further calls.
void end_by(const char* kernel) {
  hear(kernel, CUDA_ERROR_ILLEGAL_ADDRESS);
  std::this_thread::sleep_for(patience);
}

/// %h: this host, %p: the child.
std::string expand(std::string pattern, pid_t child) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const auto replace = [&](const char* word, const std::string& by) {
    if (const auto at = pattern.find(word); at != std::string::npos) pattern.replace(at, 2, by);
  };
  replace("%h", host);
  replace("%p", std::to_string(child));
  return pattern;
}

/// Checks that the folder holds one complete dump of this name, or nothing if none is wanted.
void look_at_dump(const fs::path& folder, const std::string& wanted) {
  bool found = false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const auto size = entry.file_size();
    char magic[4] = "";
    std::ifstream(entry.path()).read(magic, sizeof magic);
    const bool whole = size > allocated && std::memcmp(magic, "\177ELF", sizeof magic) == 0;
    found = !wanted.empty() && ::fnmatch(wanted.c_str(), name.c_str(), 0) == 0;
    if (!found) failed("a file " + name + " that nobody wants");
    if (found && !whole) failed(name + " is no whole dump: " + std::to_string(size) + " bytes");
  }
  if (!found && !wanted.empty()) failed("no dump " + wanted);
}

enum class end { leaves, aborted };

/// Runs a child with `variables` ("NAME=value") in its environment.
void run(const char* name, std::initializer_list<const char*> variables, end wanted, const char* dump,
         const std::function<void()>& body) {
  current = name;
  std::fflush(stdout);
  char folder[] = "/tmp/core_dump_XXXXXX";
  if (!::mkdtemp(folder)) return failed("no folder");
  const pid_t made = ::fork();
  if (made == 0) {
    for (const char* v : variables) ::putenv(const_cast<char*>(v));
    if (::chdir(folder) != 0) std::_Exit(20);
    ::alarm(2 * std::chrono::seconds(patience).count() + 5);
    body();
    std::exit(0);
  }
  int status = -1;
  ::waitpid(made, &status, 0);
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  if (wanted == end::aborted ? !aborted : status != 0) {
    failed(WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                               : "left with status " + std::to_string(WEXITSTATUS(status)));
  }
  look_at_dump(folder, expand(dump, made));
  fs::remove_all(folder);
}

/// Whether this device dumps.
bool supported() {
  const pid_t made = ::fork();
  if (made == 0) {
    bool value = true;
    std::size_t size = sizeof value;
    must(cuInit(0), "cuInit");
    const int code = cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &value, &size);
    if (code == CUDA_ERROR_NOT_SUPPORTED) std::_Exit(40);
    must(code, "switching dumps on");
    std::_Exit(0);
  }
  int status = -1;
  ::waitpid(made, &status, 0);
  const bool none = WIFEXITED(status) && WEXITSTATUS(status) == 40;
  if (status != 0 && !none) failed("dumps cannot be switched on, and it is not said that there are none");
  return !none;
}

void no_dumps() {
  run("wished in vain", {on}, end::leaves, "", [] {
    must(cuInit(0), "cuInit");
    begin();
    hear("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  run("on demand", {}, end::leaves, "", [] {
    bool value = true;
    std::size_t size = sizeof value;
    must(cuInit(0), "cuInit");
    must(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, &value, &size), "dumps on demand",
         CUDA_ERROR_NOT_SUPPORTED);
  });
}

void by_environment() {
  // Drivers ignore the variable for small dumps there.
  run("a name by the environment",
      {on, "CUDA_COREDUMP_FILE=f.%h.%p.%t", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP=1"}, end::aborted,
      "f.%h.%p.[0-9]*", [] {
        must(cuInit(0), "cuInit");
        begin();
        end_by("wild");
      });
  run("a trap, and a file that is there", {on, "CUDA_COREDUMP_FILE=f.core", no_abort}, end::leaves, "f.core",
      [] {
        std::ofstream("f.core") << "old";
        must(cuInit(0), "cuInit");
        begin();
        hear("traps", CUDA_ERROR_LAUNCH_FAILED);
        // The dump is complete before the program learns of the trap.
        if (std::error_code none; fs::file_size("f.core", none) <= allocated) must(1, "the file's size");
      });
  run("a place that is not there", {on, "CUDA_COREDUMP_FILE=/no/such/folder/f"}, end::leaves, "", [] {
    must(cuInit(0), "cuInit");
    begin();
    hear("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
    std::this_thread::sleep_for(2s);  // if the driver ends the process, it does so now
  });
  run("a fault that is not waited for", {on, "CUDA_COREDUMP_FILE=f.core"}, end::leaves, "", [] {
    must(cuInit(0), "cuInit");
    begin();
    CUdeviceptr memory = 0;
    must(fault("wild", memory), "the wait while the driver begins to dump");
  });
  run("no fault", {on, "CUDA_COREDUMP_FILE=f.core"}, end::leaves, "", [] {
    must(cuInit(0), "cuInit");
    begin();
  });
}

void by_attributes() {
  run("attributes of the process", {}, end::leaves, "x.%p.%h", [] {
    must(cuInit(0), "cuInit");
    set_name("x.%p.%h");
    set(CU_COREDUMP_GENERATION_FLAGS, static_cast<int>(CU_COREDUMP_SKIP_ABORT));
    set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true);
    char name[1024] = "";
    std::size_t size = sizeof name;
    must(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size), "asking for the name");
    must(std::strcmp(name, expand("x.%p.%h", ::getpid()).c_str()), "the expanded name's comparison");
    begin();
    hear("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  run("a context's flag", {}, end::leaves, "y.core", [] {
    must(cuInit(0), "cuInit");
    set_name("y.core");
    set(CU_COREDUMP_GENERATION_FLAGS, static_cast<int>(CU_COREDUMP_SKIP_ABORT));
    begin(CU_CTX_COREDUMP_ENABLE);
    hear("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  run("attributes of a context come too late to switch on", {}, end::leaves, "", [] {
    must(cuInit(0), "cuInit");
    set_name("z.core");
    begin();
    set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true, false);
    hear("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  run("attributes of a context come too late to change", {}, end::aborted, standard_name, [] {
    must(cuInit(0), "cuInit");
    set(CU_COREDUMP_ENABLE_ON_EXCEPTION, true);
    begin();
    set_name("of_context.core", false);
    set(CU_COREDUMP_GENERATION_FLAGS, static_cast<int>(CU_COREDUMP_SKIP_ABORT), false);
    end_by("wild");
  });
}

}  // namespace

int main() {
  const bool dumps = supported();
  if (dumps) {
    by_environment();
    by_attributes();
  } else {
    no_dumps();
  }
  if (failures != 0) return std::printf("%d failures\n", failures), 1;
  std::printf("PASSED%s\n", dumps ? "" : " (no dumps here)");
  return 0;
}
