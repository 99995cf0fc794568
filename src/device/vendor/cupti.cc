#include "device/vendor/cupti.hh"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "device/work_backlog.hh"

namespace outboard::device::vendor {
namespace {

using api::memory_side;
using api::work_kind;
using api::work_record;

/// Of one buffer of CUPTI's; it has several. A kernel takes some 200 bytes.
constexpr std::size_t buffer_bytes = 1u << 20, alignment = 8;

constexpr std::array kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                           CUPTI_ACTIVITY_KIND_MEMSET};

struct cupti_table {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) count_dropped = nullptr;
  decltype(&::cuptiGetTimestamp) timestamp = nullptr;
  decltype(&::cuptiGetResultString) result_text = nullptr;
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
  return r;
}

class cupti_recorder final : public work_recorder {
 public:
  ~cupti_recorder() override { receiver = nullptr; }

  status start() override {
    const std::lock_guard lock(start_mutex_);
    if (started_) return {};
    if (!cupti_.enable) {
      if (status loaded = load(); !loaded.ok()) return loaded;
    }
    receiver = this;
    if (status s =
            tell("cuptiActivityRegisterCallbacks", cupti_.register_callbacks(give_buffer, take_buffer));
        !s.ok())
      return s;
    for (const CUpti_ActivityKind kind : kinds) {
      if (status s = tell("cuptiActivityEnable", cupti_.enable(kind)); !s.ok()) return s;
    }
    started_ = true;
    return {};
  }

  recorded_work take(bool all) override {
    {
      const std::lock_guard lock(start_mutex_);
      if (!started_) return {};
    }
    if (backlog_.empty()) (void)cupti_.flush(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    return backlog_.take();
  }

  std::uint64_t now() override {
    std::uint64_t at = 0;
    if (cupti_.timestamp) (void)cupti_.timestamp(&at);
    return at;
  }

 private:
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

  void note(const CUpti_Activity& a) {
    work_record r;
    const char* name = nullptr;  // of a kernel
    switch (a.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(a);
        r = of_kernel(kernel);
        name = kernel.name ? kernel.name : "";
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(a);
        r = common(copy);
        r.kind = work_kind::copy;
        r.bytes = copy.bytes;
        r.from = side_of(copy.srcKind);
        r.to = side_of(copy.dstKind);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(a);
        r = common(fill);
        r.kind = work_kind::fill;
        r.bytes = fill.bytes;
        r.to = side_of(fill.memoryKind);
        break;
      }
      default:
        return;
    }
    if (r.begin == 0 || r.end < r.begin) return;  // a forced flush brings work that is not complete
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
    return r;
  }

  status load() {
    void* library = nullptr;
    std::string reasons;
    for (const std::string& path : cupti_candidates()) {
      library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (library) break;
      if (reasons.empty()) reasons = ::dlerror();
    }
    if (!library)
      return failure("the server has no CUPTI, which is part of the CUDA toolkit (" + reasons + ")");
    bool whole = true;
    const auto find = [&](auto& entry, const char* name) {
      entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
      whole = whole && entry;
    };
    find(cupti_.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(cupti_.flush, "cuptiActivityFlushAll");
    find(cupti_.next_record, "cuptiActivityGetNextRecord");
    find(cupti_.count_dropped, "cuptiActivityGetNumDroppedRecords");
    find(cupti_.timestamp, "cuptiGetTimestamp");
    find(cupti_.result_text, "cuptiGetResultString");
    find(cupti_.enable, "cuptiActivityEnable");
    if (whole) return {};
    cupti_ = {};
    return failure("the server's CUPTI lacks functions of the activity interface");
  }

  status tell(const char* what, CUptiResult code) const {
    if (code == CUPTI_SUCCESS) return {};
    const char* text = nullptr;
    (void)cupti_.result_text(code, &text);
    return failure(std::string("the server's CUPTI: ") + what + ": " + (text ? text : "unknown error"));
  }

  static std::atomic<cupti_recorder*> receiver;

  std::mutex start_mutex_;  // guards what follows; held while CUPTI is called
  bool started_ = false;
  cupti_table cupti_;

  work_backlog backlog_;  // CUPTI's threads fill it
};

std::atomic<cupti_recorder*> cupti_recorder::receiver{nullptr};

}  // namespace

std::vector<std::string> cupti_candidates() {
  std::vector<std::string> tried;
  for (const std::string name : {"libcupti.so.13", "libcupti.so.12"}) {
    tried.push_back(name);
    for (const char* folder :
         {"/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib/",
          "/usr/lib/x86_64-linux-gnu/", "/opt/cuda/extras/CUPTI/lib64/"})
      tried.push_back(folder + name);
  }
  return tried;
}

std::unique_ptr<work_recorder> make_cupti_recorder() { return std::make_unique<cupti_recorder>(); }

}  // namespace outboard::device::vendor

#else  // a toolkit without CUPTI

namespace outboard::device::vendor {

std::vector<std::string> cupti_candidates() { return {}; }
std::unique_ptr<work_recorder> make_cupti_recorder() { return nullptr; }

}  // namespace outboard::device::vendor

#endif
