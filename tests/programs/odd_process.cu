// Programs that treat their process in a way that a driver library may not survive. usage: odd_process HOW.
// Each says PASS when the library did what Outboard promises; a real driver promises less.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/// The numbers that were ours are the program's now: nothing of it is read or written.
void closed_under_us(const std::string& folder) {
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
  for (int i = 0; i < 3; ++i) EXPECT(work() != cudaSuccess);
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

}  // namespace

int main(int count, char** values) {
  const std::string how = count > 1 ? values[1] : "", folder = count > 2 ? values[2] : "/tmp";
  if (how == "closed before") {
    close_all();
    MUST(work());
  } else if (how == "closed under us") {
    closed_under_us(folder);
  } else if (how == "low numbers") {
    low_numbers_are_the_programs();
  } else if (how == "few descriptors") {
    limit(RLIMIT_NOFILE, 16);
    for (int i = 0; i < 10; ++i) MUST(work());
  } else if (how == "elsewhere") {
    elsewhere(folder);
  } else if (how == "little space") {
    limit(RLIMIT_AS, rlim_t{1} << 30);
    in_little_space();
  } else {
    std::printf("no such way: %s\n", how.c_str());
    return 2;
  }
  return pass("odd_process");
}
