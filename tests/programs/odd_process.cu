// Programs that treat their process in a way that a driver library may not survive. usage: odd_process HOW.
// Each says PASS when the library did what Outboard promises; a real driver promises less.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "common.hh"

__global__ void increment(int* x) { *x += 1; }

namespace {

cudaError_t work() {
  int *x = nullptr, value = 0;
  cudaError_t e = cudaMalloc(&x, sizeof *x);
  if (e == cudaSuccess) e = cudaMemset(x, 0, sizeof *x);
  if (e == cudaSuccess) increment<<<1, 1>>>(x);
  if (e == cudaSuccess) e = cudaGetLastError();
  if (e == cudaSuccess) e = cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost);
  if (e == cudaSuccess) e = cudaFree(x);
  EXPECT(e != cudaSuccess || value == 1);
  return e;
}

void close_all() {
  for (int fd = 3; fd < 65536; ++fd) close(fd);
}

void limit(int what, rlim_t to) {
  rlimit r{};
  EXPECT(getrlimit(what, &r) == 0);
  r.rlim_cur = to;
  EXPECT(setrlimit(what, &r) == 0);
}

/// The numbers that were ours are the program's now: nothing of it is read or written. `resumes`: the session
/// goes on over another descriptor.
void closed_under_us(const std::string& folder, bool resumes) {
  MUST(work());
  close_all();
  std::vector<int> files;
  int pair[2];
  const std::string name = folder + "/own-file";
  const char line[] = "the program's own\n";
  const int writer = open(name.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  EXPECT(write(writer, line, sizeof line) == sizeof line);
  for (int i = 0; i < 64; ++i) files.push_back(open(name.c_str(), O_RDWR));
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  EXPECT(send(pair[0], line, sizeof line, 0) == sizeof line &&
         send(pair[1], line, sizeof line, 0) == sizeof line);
  for (int i = 0; i < 3; ++i) EXPECT((work() == cudaSuccess) == resumes);
  struct stat s {};
  EXPECT(fstat(writer, &s) == 0 && s.st_size == sizeof line);
  for (int fd : files) EXPECT(lseek(fd, 0, SEEK_CUR) == 0);
  for (int fd : pair) {
    char back[256];
    EXPECT(recv(fd, back, sizeof back, MSG_DONTWAIT) == sizeof line &&
           std::memcmp(back, line, sizeof line) == 0);
    EXPECT(recv(fd, back, sizeof back, MSG_DONTWAIT) == -1);
  }
}

void low_numbers_are_the_programs() {
  const int before = open("/dev/null", O_RDONLY);
  EXPECT(before >= 0);
  close(before);
  MUST(work());
  const int after = open("/dev/null", O_RDONLY);
  EXPECT(after == before);
  close(after);
}

void elsewhere(const std::string& folder) {
  MUST(work());
  EXPECT(chdir(folder.c_str()) == 0);
  MUST(work());
  if (geteuid() == 0) {
    EXPECT(chroot(".") == 0 && chdir("/") == 0);
    MUST(work());
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    MUST(work());
  }
}

/// It works, or it says why not; nothing else.
int in_little_space() {
  const cudaError_t e = work();
  if (e == cudaSuccess) MUST(work());
  std::printf("with so little address space: %d\n", static_cast<int>(e));
  EXPECT(e == cudaSuccess || e == cudaErrorNoDevice || e == cudaErrorMemoryAllocation ||
         e == cudaErrorInitializationError || e == cudaErrorOperatingSystem);
  return 0;
}

/// What both ends share is not the child's: it could disturb the parent by it.
void not_inherited() {
  constexpr std::size_t bytes = 4 << 20;
  char* pinned = nullptr;
  MUST(cudaMallocHost(&pinned, bytes));
  std::memset(pinned, 7, bytes);
  MUST(work());
  const pid_t child = fork();
  if (child == 0) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[4096];
    while (maps && std::fgets(line, sizeof line, maps)) {
      unsigned long begin = 0, end = 0;
      if (std::sscanf(line, "%lx-%lx", &begin, &end) != 2) _exit(2);
      const auto at = reinterpret_cast<unsigned long>(pinned);
      const bool reachable = std::strstr(line, " ---p") == nullptr;
      if ((reachable && begin <= at && at < end) || std::strstr(line, "outboard-rings")) _exit(3);
    }
    _exit(maps ? 0 : 4);
  }
  int status = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  MUST(work());
  for (std::size_t i = 0; i < bytes; ++i) EXPECT(pinned[i] == 7);
  MUST(cudaFreeHost(pinned));
}

/// A signal for the process is never handled on a thread that the program did not make.
void no_signals_for_our_threads() {
  constexpr std::size_t bytes = 64 << 20;
  std::vector<char> host(bytes);
  char* device = nullptr;
  MUST(cudaMalloc(&device, bytes));
  MUST(cudaMemcpy(device, host.data(), bytes,
                  cudaMemcpyHostToDevice));  // large: with helpers, if there are any
  static volatile int called = 0;
  MUST(cudaLaunchHostFunc(
      nullptr, [](void*) { called = 1; }, nullptr));
  MUST(cudaDeviceSynchronize());
  EXPECT(called == 1);
  int others = 0;
  DIR* tasks = opendir("/proc/self/task");
  EXPECT(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.' || std::atoi(task->d_name) == getpid()) continue;
    std::FILE* status = std::fopen((std::string("/proc/self/task/") + task->d_name + "/status").c_str(), "r");
    char line[256];
    unsigned long long blocked = 0;
    while (status && std::fgets(line, sizeof line, status)) std::sscanf(line, "SigBlk: %llx", &blocked);
    if (!status) continue;  // it has ended meanwhile
    std::fclose(status);
    // Not to be blocked by anybody: SIGKILL, SIGSTOP, and the C library's own two.
    for (int number : {SIGKILL, SIGSTOP, 32, 33}) blocked |= 1ull << (number - 1);
    std::printf("thread %s blocks %llx\n", task->d_name, blocked);
    EXPECT(blocked == ~0ull);
    ++others;
  }
  closedir(tasks);
  EXPECT(others > 0);
  MUST(cudaFree(device));
}

}  // namespace

int main(int count, char** values) {
  const std::string how = count > 1 ? values[1] : "", folder = count > 2 ? values[2] : "/tmp";
  if (how == "closed before") {
    close_all();
    MUST(work());
  } else if (how == "closed under us") {
    closed_under_us(folder, false);
  } else if (how == "closed and resumed") {
    closed_under_us(folder, true);
  } else if (how == "low numbers") {
    low_numbers_are_the_programs();
  } else if (how == "few descriptors") {
    limit(RLIMIT_NOFILE, 16);
    for (int i = 0; i < 10; ++i) MUST(work());
  } else if (how == "elsewhere") {
    elsewhere(folder);
  } else if (how == "not inherited") {
    not_inherited();
  } else if (how == "signals of threads") {
    no_signals_for_our_threads();
  } else if (how == "little space") {
    limit(RLIMIT_AS, rlim_t{1} << 30);
    in_little_space();
  } else {
    std::printf("no such way: %s\n", how.c_str());
    return 2;
  }
  return pass("odd_process");
}
