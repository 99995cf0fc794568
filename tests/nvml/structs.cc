// An ordinary program that asks NVML what needs structs with lists, handles and texts in them: performance
// metrics of two samples, use by process, counters, placements, events of the system, versions of a struct
// that grew. It checks that nothing is written behind what it gave, and prints a line for each answer: codes
// and what does not move, so that the lines of the driver's own library and of ours can be compared
// (tests/gpu/nvml_agrees).
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace {

// What is used of nvml.h, as its documents have it.
using code = int;
using device = struct opaque_device*;
using sample = struct opaque_sample*;
using event_set = struct opaque_event_set*;
using system_set = struct opaque_system_set*;
enum : code {
  success = 0,
  invalid = 2,
  not_found = 6,
  too_small = 7,
  timed_out = 10,
  absent = 13,
  mismatch = 25
};

struct metric {
  unsigned id;
  code result;
  double value;
  char *short_name, *long_name, *unit;
};
template <unsigned Most>
struct metrics {
  unsigned version, count;
  sample first, second;
  metric list[Most];
};
struct use {
  unsigned long long time;
  unsigned pid, busy[6];
};
struct uses {
  unsigned version, count;
  unsigned long long since;
  use* list;
};
struct sram_error {
  unsigned about[7];
};
struct sram_errors {
  unsigned version, count;
  sram_error* list;
};
struct counter {
  unsigned id, port;
  code status;
  int type;
  unsigned long long value;
};
struct counters {
  unsigned count;
  counter* list;
};
struct telemetry {
  unsigned link, type, count;
  unsigned long long* list;
  code result;
};
struct telemetries {
  unsigned count;
  telemetry* list;
};
struct placements_v1 {
  unsigned version, size, count;
  unsigned* list;
};
struct system_request {
  unsigned version;
  system_set set;
};
struct system_registration {
  unsigned version;
  unsigned long long types;
  system_set set;
};
struct system_event {
  unsigned long long type;
  unsigned board;
};
struct system_wait {
  unsigned version, milliseconds;
  system_set set;
  system_event* list;
  unsigned room, count;
};
struct wait_v3 {
  unsigned milliseconds, kind;
  unsigned char rest[240];
};
template <unsigned Bytes>
struct licenses {
  int supported;
  unsigned count;
  unsigned char list[3][Bytes];
};
template <class T>
unsigned version(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | number << 24;
}

void* library;
int failures = 0;
constexpr unsigned untouched = 0x5a5a5a5a;

void expect(bool good, const char* what, long long got = 0) {
  if (good) return;
  std::printf("FAIL: %s (%lld)\n", what, got);
  ++failures;
}

/// Gives a function that the library lacks the code that ours returns when the server's library lacks it.
template <class... A>
code ask(const char* name, A... arguments) {
  auto* entry = reinterpret_cast<code (*)(A...)>(::dlsym(library, name));
  return entry ? entry(arguments...) : +absent;
}

template <class... A>
code tell(const char* name, A... arguments) {
  const code got = ask(name, arguments...);
  std::printf("%s: %d\n", name, got);
  return got;
}

template <unsigned Most>
void performance(device handle, const char* header) {
  sample first = nullptr, second = nullptr;
  code got = ask("nvmlGpmSampleAlloc", &first);
  if (got == success) got = ask("nvmlGpmSampleAlloc", &second);
  std::printf("GPM samples (%s): %d\n", header, got);
  if (got != success) return;
  got = ask("nvmlGpmSampleGet", handle, first);
  ::usleep(200000);
  if (got == success) got = ask("nvmlGpmSampleGet", handle, second);
  std::printf("GPM samples taken: %d\n", got);
  struct {
    metrics<Most> get;
    unsigned behind;
  } m{};
  m.behind = untouched;
  m.get.version = 1;
  m.get.count = Most;
  m.get.first = first;
  m.get.second = second;
  // NVLink's metrics are left out: whether they are available depends on other clients.
  for (unsigned i = 0; i < Most; ++i) m.get.list[i].id = i % 60;
  got = tell("nvmlGpmMetricsGet", &m.get);
  expect(m.behind == untouched, "memory behind the metrics");
  expect(m.get.first == first && m.get.second == second && m.get.count == Most, "what was asked stays");
  for (unsigned i = 0; got == success && i < 60 && i < Most; ++i) {
    const metric& x = m.get.list[i];
    expect(x.id == i, "a metric's number", x.id);
    const auto text = [](const char* t) { return t ? t : "-"; };
    std::printf("metric %u: %d %s/%s/%s\n", i, x.result, text(x.short_name), text(x.long_name), text(x.unit));
  }
  m.get.second = nullptr;
  expect(ask("nvmlGpmMetricsGet", &m.get) != success, "metrics of no sample");
  expect(ask("nvmlGpmMetricsGet", static_cast<metrics<Most>*>(nullptr)) != success, "no metrics");
  expect(ask("nvmlGpmSampleFree", first) == success && ask("nvmlGpmSampleFree", second) == success,
         "samples go");
}

void use_by_process(device handle) {
  uses u{version<uses>(1), 0, 0, nullptr};
  const code got = ask("nvmlDeviceGetProcessesUtilizationInfo", handle, &u);
  // Whether a process uses the board may change.
  std::printf("use by process: %s\n", got == too_small || got == not_found || got == success ? "told" : "no");
  std::vector<use> list(64, use{1, untouched, {}});
  u.count = 32;
  u.list = list.data();
  const code filled = ask("nvmlDeviceGetProcessesUtilizationInfo", handle, &u);
  expect(u.list == list.data(), "the list's address stays");
  if (filled == success) expect(u.count <= 32, "as many as there is room", u.count);
  for (std::size_t i = filled == success ? u.count : 0; i < list.size(); ++i)
    if (i >= 32) expect(list[i].pid == untouched, "memory behind the processes", static_cast<long long>(i));
  u.version = version<uses>(9);
  tell("nvmlDeviceGetProcessesUtilizationInfo", handle, &u);
}

void lists(device handle) {
  sram_errors none{version<sram_errors>(1), 0, nullptr};
  tell("nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts", handle, &none);
  counter list[2]{{1, 0, 0, 0, 0}, {untouched, 0, 0, 0, 0}};
  counters one{1, list};
  tell("nvmlDeviceReadPRMCounters_v1", handle, &one);
  expect(list[1].id == untouched && one.list == list, "memory behind the counters");
  unsigned long long samples[9];
  samples[8] = untouched;
  telemetry slot{0, 0, 8, samples, 0};
  telemetries all{1, &slot};
  tell("nvmlDeviceGetNvLinkTelemetrySamples_v1", handle, &all);
  expect(samples[8] == untouched && slot.list == samples && all.list == &slot, "memory behind the telemetry");
  unsigned ids[5]{0, 0, 0, 0, untouched};
  placements_v1 places{version<placements_v1>(1), 0, 4, ids};
  tell("nvmlDeviceGetVgpuTypeSupportedPlacements", handle, 11u, &places);
  tell("nvmlDeviceGetVgpuTypeCreatablePlacements", handle, 11u, &places);
  expect(ids[4] == untouched && places.list == ids, "memory behind the placements");
  unsigned size = 0;
  tell("nvmlDeviceGetVgpuMetadata", handle, static_cast<unsigned char*>(nullptr), &size);
  auto flat = std::make_unique<std::vector<unsigned char>>(1 << 18);
  tell("nvmlDevicePerfMetricsGetSamples_v1", handle, flat->data());
  tell("nvmlDeviceGetNvlinkRemapTableInfo_v1", handle, flat->data());
}

template <unsigned Bytes>
void license(device handle, const char* name) {
  struct {
    licenses<Bytes> told;
    unsigned behind;
  } l{};
  l.behind = untouched;
  const code got = tell(name, handle, &l.told);
  if (got == success) std::printf("licences: %d %u\n", l.told.supported, l.told.count);
  expect(l.behind == untouched, "memory behind the licences");
}

void events_of_the_system() {
  system_request made{version<system_request>(1), nullptr};
  if (tell("nvmlSystemEventSetCreate", &made) != success) return;
  system_registration wanted{version<system_registration>(1), 3, made.set};
  tell("nvmlSystemRegisterEvents", &wanted);
  system_event list[3]{{0, 0}, {0, 0}, {0, untouched}};
  system_wait wait{version<system_wait>(1), 60, made.set, list, 2, 0};
  const auto begin = std::chrono::steady_clock::now();
  const code got = tell("nvmlSystemEventSetWait", &wait);
  const auto took = std::chrono::steady_clock::now() - begin;
  // No board comes or goes while a test runs; an empty wait may end early, says the header.
  if (got == timed_out) expect(took < std::chrono::seconds(2), "a wait that ends");
  expect(wait.milliseconds == 60 && wait.list == list && list[2].board == untouched,
         "memory behind the events");
  wanted.version = 0;
  tell("nvmlSystemRegisterEvents", &wanted);
  expect(ask("nvmlSystemEventSetFree", &made) == success, "the set goes");
}

void events_of_boards(device handle) {
  event_set set = nullptr;
  if (tell("nvmlEventSetCreate", &set) != success) return;
  struct {
    wait_v3 wait;
    unsigned behind;
  } w{};
  w.behind = untouched;
  w.wait.milliseconds = 60;
  tell("nvmlEventSetWait_v3", set, &w.wait);
  expect(w.wait.milliseconds == 60 && w.behind == untouched, "memory behind an event");
  struct {
    char uuid[96];
    unsigned level, severity;
  } config{};
  ask("nvmlDeviceGetUUID", handle, config.uuid, 96u);
  tell("nvmlEventSetRegisterGpuOperationalEvents_v1", set, &config);
  std::strcpy(config.uuid, "GPU-00000000-0000-0000-0000-000000000000");
  tell("nvmlEventSetRegisterGpuOperationalEvents_v1", set, &config);
  unsigned count = 0;
  tell("nvmlEventSetGetContextCount_v1", set, &count);
  struct {
    unsigned char* data;
    unsigned index, size;
  } context{nullptr, 0, 0};
  tell("nvmlEventSetGetContextData_v1", set, &context);
  expect(ask("nvmlEventSetFree", set) == success, "the event set goes");
}

}  // namespace

int main() {
  library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!library) return std::printf("FAIL: %s\n", ::dlerror()), 1;
  expect(ask("nvmlInit_v2") == success, "nvmlInit");
  device handle = nullptr;
  expect(ask("nvmlDeviceGetHandleByIndex_v2", 0u, &handle) == success, "a device");
  performance<98>(handle, "of CUDA 12");
  performance<333>(handle, "of CUDA 13");
  use_by_process(handle);
  lists(handle);
  license<136>(handle, "nvmlDeviceGetGridLicensableFeatures");
  license<264>(handle, "nvmlDeviceGetGridLicensableFeatures_v2");
  license<268>(handle, "nvmlDeviceGetGridLicensableFeatures_v3");
  events_of_the_system();
  events_of_boards(handle);
  expect(ask("nvmlShutdown") == success, "nvmlShutdown");
  std::printf(failures == 0 ? "PASSED\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
