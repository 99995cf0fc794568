#include "device/vendor/cupti.hh"

#include "api/cuda/cupti_headers.hh"

#ifdef OUTBOARD_HAS_CUPTI_HEADERS

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/cuda/work_calls.hh"
#include "base/recent_numbers.hh"
#include "base/steady.hh"
#include "device/node_names.hh"
#include "device/vendor/cupti_version.hh"
#include "device/vendor/elf_symbols.hh"
#include "device/vendor/library_search.hh"
#include "device/vendor/vendor.hh"
#include "device/work_backlog.hh"

namespace outboard::device::vendor {
namespace {

using api::memory_side;
using api::work_kind;
using api::work_record;

/// Of one buffer of CUPTI's; it has several. A kernel takes some 200 bytes.
constexpr std::size_t buffer_bytes = 1u << 20, alignment = 8;

constexpr std::array kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                           CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

/// Calls of the driver that are remembered until their work's records are read.
constexpr std::size_t remembered_calls = 1u << 20;
/// Nodes of executable graphs whose names are remembered.
constexpr std::size_t remembered_nodes = 1u << 20;
/// Samples of sensors that nobody has taken. CUPTI brings a few a second of each device.
constexpr std::size_t most_samples = 1u << 16;

struct cupti_table {
  decltype(&::cuptiGetVersion) version = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) count_dropped = nullptr;
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;
  decltype(&::cuptiGetCallbackName) callback_name = nullptr;
  decltype(&::cuptiGetTimestamp) timestamp = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) register_clock = nullptr;  ///< may be missing
  decltype(&::cuptiGetResultString) result_text = nullptr;
  decltype(&::cuptiGetGraphNodeId) node_number = nullptr;  ///< may be missing
};

memory_side side_of(unsigned kind) {
  if (kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC) return memory_side::device;
  if (kind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC) return memory_side::managed;
  return kind <= CUPTI_ACTIVITY_MEMORY_KIND_MANAGED ? static_cast<memory_side>(kind) : memory_side::unknown;
}

/// What records of all three kinds have; the structs have grown at their ends only.
template <class Activity>
work_record common(const Activity& a) {
  work_record r;
  r.device = a.deviceId;
  r.context = a.contextId;
  r.stream = a.streamId;
  r.begin = a.start;
  r.end = a.end;
  r.graph_node = a.graphNodeId;
  r.graph = a.graphId;
  r.channel = a.channelID;
  r.channel_type = static_cast<std::uint32_t>(a.channelType);
  return r;
}

class cupti_recorder final : public work_recorder {
 public:
  ~cupti_recorder() override { receiver = nullptr; }

  status look() override {
    std::string reasons;
    for (const std::string& path : cupti_candidates())
      if (is_cupti(path, reasons)) return {};
    return nothing_found(reasons);
  }

  status start() override {
    const std::lock_guard lock(start_mutex_);
    if (started_) return {};
    if (status ready = get_ready(); !ready.ok()) return ready;
    // Where another tool is in this process, work goes without its requests.
    if (cupti_.subscribe(&subscriber_, called, this) == CUPTI_SUCCESS) {
      for_each_call_that_leaves_work(true);
      if (cupti_.node_number)
        (void)cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE,
                                     CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
    } else {
      subscriber_ = nullptr;
    }
    for (const CUpti_ActivityKind kind : kinds) {
      if (status s = tell("cuptiActivityEnable", cupti_.enable(kind)); !s.ok()) return s;
    }
    started_ = true;
    return {};
  }

  void stop() override {
    const std::lock_guard lock(start_mutex_);
    if (!started_) return;
    (void)cupti_.flush(0);
    for (const CUpti_ActivityKind kind : kinds) (void)cupti_.disable(kind);
    if (subscriber_) (void)cupti_.unsubscribe(subscriber_);
    subscriber_ = nullptr;
    started_ = false;
  }

  recorded_work take(bool all) override {
    bool started = false;
    {
      const std::lock_guard lock(start_mutex_);
      started = started_;
    }
    if (started && backlog_.empty()) (void)cupti_.flush(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    return backlog_.take();
  }

  /// CUPTI has a thread of its own for it.
  status sample(bool on) override {
    const std::lock_guard lock(start_mutex_);
    if (sampling_ == on) return {};
    if (!on) return stop_sampling(), status();
    if (status ready = get_ready(); !ready.ok()) return ready;
    if (status s = tell("cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT)",
                        cupti_.enable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
        !s.ok())
      return s;
    sampling_ = true;
    return {};
  }

  sampled_boards take_samples() override {
    bool sampling = false;
    {
      const std::lock_guard lock(start_mutex_);
      sampling = sampling_;
    }
    if (sampling) (void)cupti_.flush(0);
    const std::lock_guard lock(samples_mutex_);
    return std::exchange(samples_, {});
  }

  std::uint64_t now() override {
    if (own_clock_) return steady_time();
    std::uint64_t at = 0;
    if (cupti_.timestamp) (void)cupti_.timestamp(&at);
    return at;
  }

 private:
  /// With the start mutex: CUPTI is loaded, and knows where records go.
  status get_ready() {
    if (!cupti_.enable) {
      if (status loaded = load(); !loaded.ok()) return loaded;
    }
    receiver = this;
    if (ready_) return {};
    if (status s =
            tell("cuptiActivityRegisterCallbacks", cupti_.register_callbacks(give_buffer, take_buffer));
        !s.ok())
      return s;
    own_clock_ = cupti_.register_clock && cupti_.register_clock(steady_time) == CUPTI_SUCCESS;
    ready_ = true;
    return {};
  }

  /// With the start mutex. What it has is taken later.
  void stop_sampling() {
    (void)cupti_.flush(0);
    (void)cupti_.disable(CUPTI_ACTIVITY_KIND_ENVIRONMENT);
    sampling_ = false;
  }

  /// CUPTI's own clock is the wall's, which somebody may set.
  static std::uint64_t CUPTIAPI steady_time() { return static_cast<std::uint64_t>(steady_nanoseconds()); }

  /// On the thread that calls the driver, before the call or in it.
  static void CUPTIAPI called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* about) {
    auto& recorder = *static_cast<cupti_recorder*>(self);
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
      return recorder.note_node(*static_cast<const CUpti_ResourceData*>(about));
    const auto& call = *static_cast<const CUpti_CallbackData*>(about);
    if (call.callbackSite != CUPTI_API_ENTER || request_under_way == 0) return;
    recorder.requests_.note(call.correlationId, request_under_way);
  }

  /// A node of an executable graph is made of one that the client may know, or of a copy of that one. Records
  /// may have the number of either.
  void note_node(const CUpti_ResourceData& about) {
    const auto* graph = static_cast<const CUpti_GraphData*>(about.resourceDescriptor);
    if (!nodes_under_way || !graph || !graph->node || !graph->originalNode) return;
    std::uint64_t number = 0, original = 0;
    if (cupti_.node_number(graph->node, &number) != CUPTI_SUCCESS ||
        cupti_.node_number(graph->originalNode, &original) != CUPTI_SUCCESS)
      return;
    std::uint64_t name = nodes_under_way->name_of(graph->originalNode);
    const std::lock_guard lock(nodes_mutex_);
    if (const auto copied = nodes_.find(original); name == 0 && copied != nodes_.end()) name = copied->second;
    if (name == 0) return;
    if (nodes_.size() >= remembered_nodes) nodes_.clear();
    nodes_[number] = nodes_[original] = name;
  }
  std::uint64_t name_of_node(std::uint64_t number) {
    const std::lock_guard lock(nodes_mutex_);
    const auto found = nodes_.find(number);
    return found != nodes_.end() ? found->second : number;
  }

  /// What the driver calls a function of which CUPTI tells.
  static std::string_view driver_name(std::string_view cuptis) {
    return cuptis == "cuMemcpy_v2" ? "cuMemcpy" : cuptis;
  }
  void for_each_call_that_leaves_work(bool on) {
    for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id) {
      const char* text = nullptr;
      if (cupti_.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &text) != CUPTI_SUCCESS || !text) continue;
      if (api::leaves_work(driver_name(text)))
        (void)cupti_.enable_callback(on, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
  }

  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, buffer_bytes));
    *size = *buffer ? buffer_bytes : 0;
    *most_records = 0;  // as many as fit
  }

  static void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    if (cupti_recorder* const r = receiver.load()) r->read(context, stream, buffer, valid);
    std::free(buffer);
  }

  void read(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid) {
    std::size_t lost = 0;
    (void)cupti_.count_dropped(context, stream, &lost);
    if (lost) backlog_.note_lost(lost);
    CUpti_Activity* at = nullptr;
    while (valid && cupti_.next_record(buffer, valid, &at) == CUPTI_SUCCESS) note(*at);
  }

  void note_sample(const CUpti_ActivityEnvironment& a) {
    const std::optional<api::board_sample> sample = sample_of(a);
    const std::lock_guard lock(samples_mutex_);
    if (!sample) return;
    if (samples_.samples.size() >= most_samples) return ++samples_.dropped, void();
    samples_.samples.push_back(*sample);
  }

  /// None: of a kind that the headers do not have.
  static std::optional<api::board_sample> sample_of(const CUpti_ActivityEnvironment& a) {
    api::board_sample s{static_cast<api::sample_kind>(a.environmentKind), a.deviceId, a.timestamp, {}};
    const auto& data = a.data;
    switch (a.environmentKind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
        s.values = {data.speed.smClock, data.speed.memoryClock, data.speed.pcieLinkGen,
                    data.speed.pcieLinkWidth, static_cast<std::uint32_t>(data.speed.clocksThrottleReasons)};
        return s;
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
        s.values = {data.temperature.gpuTemperature};
        return s;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        s.values = {data.power.power, data.power.powerLimit};
        return s;
      case CUPTI_ACTIVITY_ENVIRONMENT_COOLING:
        s.values = {data.cooling.fanSpeed};
        return s;
      default:
        return std::nullopt;
    }
  }

  void note(const CUpti_Activity& a) {
    if (a.kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT)
      return note_sample(reinterpret_cast<const CUpti_ActivityEnvironment&>(a));
    work_record r;
    const char* name = nullptr;  // of a kernel
    std::uint32_t correlation = 0;
    switch (a.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(a);
        r = of_kernel(kernel);
        name = kernel.name ? kernel.name : "";
        correlation = kernel.correlationId;
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(a);
        r = common(copy);
        r.kind = work_kind::copy;
        r.bytes = copy.bytes;
        correlation = copy.correlationId;
        r.from = side_of(copy.srcKind);
        r.to = side_of(copy.dstKind);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(a);
        r = common(copy);
        r.kind = work_kind::copy;
        r.bytes = copy.bytes;
        r.from = side_of(copy.srcKind);
        r.to = side_of(copy.dstKind);
        r.device = copy.dstDeviceId;
        r.peer = copy.srcDeviceId + 1;
        correlation = copy.correlationId;
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(a);
        r = common(fill);
        r.kind = work_kind::fill;
        r.bytes = fill.bytes;
        r.value = fill.value;
        correlation = fill.correlationId;
        r.to = side_of(fill.memoryKind);
        break;
      }
      default:
        return;
    }
    if (r.begin == 0 || r.end < r.begin) return;  // a forced flush brings work that is not complete
    r.request = requests_.find(correlation);
    if (r.graph_node != 0) r.graph_node = name_of_node(r.graph_node);
    name ? backlog_.note_kernel(r, name) : backlog_.note(r);
  }

  static work_record of_kernel(const CUpti_ActivityKernel10& k) {
    work_record r = common(k);
    const auto size = [](std::int32_t x, std::int32_t y, std::int32_t z) {
      return std::array{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                        static_cast<std::uint32_t>(z)};
    };
    r.grid = size(k.gridX, k.gridY, k.gridZ);
    r.block = size(k.blockX, k.blockY, k.blockZ);
    r.registers = k.registersPerThread;
    r.static_shared = static_cast<std::uint32_t>(k.staticSharedMemory);
    r.dynamic_shared = static_cast<std::uint32_t>(k.dynamicSharedMemory);
    r.shared = k.sharedMemoryExecuted;
    r.cluster = {k.clusterX, k.clusterY, k.clusterZ};
    r.local = k.localMemoryPerThread;
    r.local_total = k.localMemoryTotal;
    return r;
  }

  /// Without its constructors: a start of the server asks, and most of them for nobody.
  static bool is_cupti(const std::string& path, std::string& reasons) {
    const auto looked = elf_exports(path, frontend_marker);
    if (!looked.ok()) reasons += "; " + looked.error().message;
    if (looked.ok() && *looked == elf_answer::foreign)
      reasons += "; " + path + " is for another architecture";
    return looked.ok() && *looked == elf_answer::absent;  // the front-end's would ask us
  }

  static error nothing_found(const std::string& reasons) {
    return failure(
        "the server has no CUPTI, which is part of the CUDA toolkit (looked in LD_LIBRARY_PATH, the loader's "
        "cache and the toolkit's usual folders" +
        reasons + ")");
  }

  status load() {
    void* library = nullptr;
    std::string reasons, found;
    for (const std::string& path : cupti_candidates()) {
      if (!is_cupti(path, reasons)) continue;
      library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      found = path;
      if (library) break;
      reasons += std::string("; ") + ::dlerror();
    }
    if (!library) return nothing_found(reasons);
    bool whole = true;
    const auto find = [&](auto& entry, const char* name) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
      whole = whole && entry;
    };
    find(cupti_.version, "cuptiGetVersion");
    find(cupti_.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(cupti_.flush, "cuptiActivityFlushAll");
    find(cupti_.next_record, "cuptiActivityGetNextRecord");
    find(cupti_.count_dropped, "cuptiActivityGetNumDroppedRecords");
    find(cupti_.timestamp, "cuptiGetTimestamp");
    find(cupti_.result_text, "cuptiGetResultString");
    find(cupti_.subscribe, "cuptiSubscribe");
    find(cupti_.unsubscribe, "cuptiUnsubscribe");
    find(cupti_.enable_callback, "cuptiEnableCallback");
    find(cupti_.callback_name, "cuptiGetCallbackName");
    find(cupti_.disable, "cuptiActivityDisable");
    find(cupti_.enable, "cuptiActivityEnable");
    const bool all = whole;
    find(cupti_.register_clock, "cuptiActivityRegisterTimestampCallback");  // since CUDA 12
    find(cupti_.node_number, "cuptiGetGraphNodeId");
    whole = all;
    status fits = whole ? check_version(found)
                        : failure("the server's CUPTI lacks functions of the activity interface");
    if (!fits.ok()) cupti_ = {};
    return fits;
  }

  status check_version(const std::string& path) const {
    std::uint32_t version = 0;
    if (status s = tell("cuptiGetVersion", cupti_.version(&version)); !s.ok()) return s;
    return cupti_is_known(version) ? status() : failure(unknown_cupti(path, version));
  }

  status tell(const char* what, CUptiResult code) const {
    if (code == CUPTI_SUCCESS) return {};
    const char* text = nullptr;
    (void)cupti_.result_text(code, &text);
    return failure(std::string("the server's CUPTI: ") + what + ": " + (text ? text : "unknown error"));
  }

  static std::atomic<cupti_recorder*> receiver;

  std::mutex start_mutex_;  // guards what follows; held while CUPTI is called
  bool started_ = false, sampling_ = false, ready_ = false;
  cupti_table cupti_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::atomic<bool> own_clock_{false};  ///< records have the times of std::chrono::steady_clock
  recent_numbers<std::uint64_t> requests_{remembered_calls};  ///< by CUPTI's numbers of calls

  std::mutex nodes_mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> nodes_;  ///< names by CUPTI's numbers

  std::mutex samples_mutex_;
  sampled_boards samples_;

  work_backlog backlog_;  // CUPTI's threads fill it
};

std::atomic<cupti_recorder*> cupti_recorder::receiver{nullptr};

}  // namespace

std::vector<std::string> cupti_candidates() {
  constexpr std::array folders{"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64",
                               "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu",
                               "/opt/cuda/extras/CUPTI/lib64"};
  std::vector<std::string> all = find_library("libcupti.so.13", folders);
  for (std::string& path : find_library("libcupti.so.12", folders)) all.push_back(std::move(path));
  return all;
}

std::unique_ptr<work_recorder> make_cupti_recorder() { return std::make_unique<cupti_recorder>(); }

}  // namespace outboard::device::vendor

#else  // a toolkit without CUPTI

namespace outboard::device::vendor {

std::vector<std::string> cupti_candidates() { return {}; }
std::unique_ptr<work_recorder> make_cupti_recorder() { return nullptr; }

}  // namespace outboard::device::vendor

#endif
