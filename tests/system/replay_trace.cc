// Issues the driver calls of a recorded step (tests/system/traces, written by cut_trace.py) in their order
// and on as many threads: objects first, then the step several times. Refused questions (cuCtxGetLimit 7001
// and 7002) mark the begin and end of the last repetition in a trace of the replay. usage: replay_trace FILE
// [REPETITIONS]
//
// The file has one entry per line; `#` begins a comment:
//   device|pinned|pageable NAME BYTES · kernel NAME SHARED · stream NAME PRIORITY · event NAME FLAGS
//   LANE SYMBOL [PARAMETER=VALUE ...] [xTIMES] [=> CODE]
// A value is a number, a name, a name+offset, or new:NAME where the call makes the object.
#include <cuda.h>
#include <dlfcn.h>

#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "../programs/common.hh"

namespace {

[[noreturn]] void fail(const std::string& why) {
  std::printf("FAIL replay_trace: %s\n", why.c_str());
  std::exit(1);
}

/// Finds a function of the driver by its exported name.
template <class F>
F* find(const std::string& symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library ? dlsym(library, symbol.c_str()) : nullptr;
  if (!found) fail("no " + symbol);
  return reinterpret_cast<F*>(found);
}

struct call {
  int lane = 0;
  std::string symbol;
  std::map<std::string, std::string> arguments;
  int times = 1, code = 0;
};

/// What the names in the file stand for.
class objects {
 public:
  std::uint64_t& operator[](const std::string& name) { return values_[name]; }

  std::uint64_t value(const std::string& text) const {
    if (text[0] >= '0' && text[0] <= '9') return std::stoull(text, nullptr, 0);
    const std::size_t plus = text.find('+');
    const auto found = values_.find(text.substr(0, plus));
    if (found == values_.end()) fail("nothing is called " + text);
    return found->second + (plus == text.npos ? 0 : std::stoull(text.substr(plus + 1), nullptr, 0));
  }

 private:
  std::map<std::string, std::uint64_t> values_;
};

/// One call: its arguments by name, its function by type.
struct doing {
  const call& c;
  objects& all;

  bool has(const char* name) const { return c.arguments.count(name) != 0; }
  const std::string& text(const char* name) const {
    const auto found = c.arguments.find(name);
    if (found == c.arguments.end()) fail(c.symbol + " lacks " + name);
    return found->second;
  }
  template <class T>
  T get(const char* name) const {
    const std::uint64_t value = all.value(text(name));
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(value);
    } else {
      return static_cast<T>(value);
    }
  }
  template <class F>
  F* function() const {
    return find<F>(c.symbol);
  }
  /// "1,2,3", "4:2,1,1" and the like as numbers.
  std::vector<unsigned> numbers_of(const char* name) const {
    std::vector<unsigned> found;
    const std::string& from = text(name);
    for (std::size_t at = 0; at < from.size();) {
      std::size_t end = at;
      while (end < from.size() && from[end] >= '0' && from[end] <= '9') ++end;
      if (end > at) found.push_back(static_cast<unsigned>(std::stoul(from.substr(at, end - at))));
      at = end + 1;
    }
    return found;
  }
  void made(const char* name, void* handle) const {
    all[text(name).substr(4)] = reinterpret_cast<std::uint64_t>(handle);  // behind "new:"
  }
};

/// Room for the parameters of any kernel: zeros.
void** parameters() {
  static std::uint64_t zeros[512];
  static void* all[512];
  for (auto& each : all) each = zeros;
  return all;
}

CUresult launch_extended(const doing& d) {
  const auto grid = d.numbers_of("grid"), block = d.numbers_of("block");
  std::vector<CUlaunchAttribute> attributes;
  if (d.has("attributes")) {
    // Each is four numbers: which, and the first three words of its value.
    const auto words = d.numbers_of("attributes");
    for (std::size_t i = 0; i + 3 < words.size(); i += 4) {
      CUlaunchAttribute a{};
      a.id = static_cast<CUlaunchAttributeID>(words[i]);
      a.value.clusterDim.x = words[i + 1];
      a.value.clusterDim.y = words[i + 2];
      a.value.clusterDim.z = words[i + 3];
      attributes.push_back(a);
    }
  }
  CUlaunchConfig config{};
  config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];
  config.blockDimX = block[0], config.blockDimY = block[1], config.blockDimZ = block[2];
  config.sharedMemBytes = d.get<unsigned>("shared");
  config.hStream = d.get<CUstream>("stream");
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  return d.function<decltype(cuLaunchKernelEx)>()(&config, d.get<CUfunction>("f"), parameters(), nullptr);
}

CUresult launch(const doing& d) {
  const auto g = d.numbers_of("grid"), b = d.numbers_of("block");
  return d.function<decltype(cuLaunchKernel)>()(d.get<CUfunction>("f"), g[0], g[1], g[2], b[0], b[1], b[2],
                                                d.get<unsigned>("shared"), d.get<CUstream>("stream"),
                                                parameters(), nullptr);
}

using action = std::function<CUresult(const doing&)>;

/// The calls by symbol, without version and stream suffix. The test fails for a symbol that is not here.
const std::map<std::string, action>& actions() {
  static std::uint64_t sink[64];  // answers are not read; two threads never run at once
  static void* const out = sink;
  static int* const number = reinterpret_cast<int*>(sink);
#define CALL(type, ...) d.function<decltype(type)>()(__VA_ARGS__)
  static const std::map<std::string, action> all = {
      {"cuLaunchKernel", launch},
      {"cuLaunchKernelEx", launch_extended},
      {"cuMemcpyHtoDAsync",
       [](const doing& d) {
         return CALL(cuMemcpyHtoDAsync, d.get<CUdeviceptr>("dstDevice"), d.get<const void*>("srcHost"),
                     d.get<std::size_t>("ByteCount"), d.get<CUstream>("hStream"));
       }},
      {"cuMemcpyDtoHAsync",
       [](const doing& d) {
         return CALL(cuMemcpyDtoHAsync, d.get<void*>("dstHost"), d.get<CUdeviceptr>("srcDevice"),
                     d.get<std::size_t>("ByteCount"), d.get<CUstream>("hStream"));
       }},
      {"cuMemcpyDtoDAsync",
       [](const doing& d) {
         return CALL(cuMemcpyDtoDAsync, d.get<CUdeviceptr>("dstDevice"), d.get<CUdeviceptr>("srcDevice"),
                     d.get<std::size_t>("ByteCount"), d.get<CUstream>("hStream"));
       }},
      {"cuMemsetD8Async",
       [](const doing& d) {
         return CALL(cuMemsetD8Async, d.get<CUdeviceptr>("dstDevice"), d.get<unsigned char>("uc"),
                     d.get<std::size_t>("N"), d.get<CUstream>("hStream"));
       }},
      {"cuMemsetD32Async",
       [](const doing& d) {
         return CALL(cuMemsetD32Async, d.get<CUdeviceptr>("dstDevice"), d.get<unsigned>("ui"),
                     d.get<std::size_t>("N"), d.get<CUstream>("hStream"));
       }},
      {"cuEventCreate",
       [](const doing& d) {
         CUevent made = nullptr;
         const CUresult r = CALL(cuEventCreate, &made, d.get<unsigned>("Flags"));
         d.made("phEvent", made);
         return r;
       }},
      {"cuEventDestroy", [](const doing& d) { return CALL(cuEventDestroy, d.get<CUevent>("hEvent")); }},
      {"cuEventRecord",
       [](const doing& d) {
         return CALL(cuEventRecord, d.get<CUevent>("hEvent"), d.get<CUstream>("hStream"));
       }},
      {"cuEventRecordWithFlags",
       [](const doing& d) {
         return CALL(cuEventRecordWithFlags, d.get<CUevent>("hEvent"), d.get<CUstream>("hStream"),
                     d.get<unsigned>("flags"));
       }},
      {"cuEventQuery", [](const doing& d) { return CALL(cuEventQuery, d.get<CUevent>("hEvent")); }},
      {"cuEventSynchronize",
       [](const doing& d) { return CALL(cuEventSynchronize, d.get<CUevent>("hEvent")); }},
      {"cuStreamWaitEvent",
       [](const doing& d) {
         return CALL(cuStreamWaitEvent, d.get<CUstream>("hStream"), d.get<CUevent>("hEvent"),
                     d.get<unsigned>("Flags"));
       }},
      {"cuStreamSynchronize",
       [](const doing& d) { return CALL(cuStreamSynchronize, d.get<CUstream>("hStream")); }},
      {"cuStreamQuery", [](const doing& d) { return CALL(cuStreamQuery, d.get<CUstream>("hStream")); }},
      {"cuCtxSynchronize", [](const doing&) { return find<CUresult()>("cuCtxSynchronize")(); }},
      {"cuStreamIsCapturing",
       [](const doing& d) {
         return CALL(cuStreamIsCapturing, d.get<CUstream>("hStream"),
                     static_cast<CUstreamCaptureStatus*>(out));
       }},
      {"cuCtxGetDevice",
       [](const doing& d) {
         // The second version names a context, null for the current one.
         if (d.c.symbol == "cuCtxGetDevice_v2")
           return d.function<CUresult(CUdevice*, CUcontext)>()(number, nullptr);
         return d.function<CUresult(CUdevice*)>()(number);
       }},
      {"cuKernelGetFunction",
       [](const doing& d) {
         CUfunction made = nullptr;
         const CUresult r = CALL(cuKernelGetFunction, &made, d.get<CUkernel>("kernel"));
         d.made("pFunc", made);
         return r;
       }},
      {"cuCtxGetCurrent", [](const doing& d) { return CALL(cuCtxGetCurrent, static_cast<CUcontext*>(out)); }},
      {"cuCtxGetLimit",
       [](const doing& d) {
         return CALL(cuCtxGetLimit, static_cast<std::size_t*>(out), d.get<CUlimit>("limit"));
       }},
      {"cuDevicePrimaryCtxGetState",
       [](const doing& d) {
         return CALL(cuDevicePrimaryCtxGetState, d.get<CUdevice>("dev"), static_cast<unsigned*>(out),
                     number + 8);
       }},
      {"cuDeviceGet", [](const doing& d) { return CALL(cuDeviceGet, number, d.get<int>("ordinal")); }},
      {"cuDeviceGetAttribute",
       [](const doing& d) {
         return CALL(cuDeviceGetAttribute, number, d.get<CUdevice_attribute>("attrib"),
                     d.get<CUdevice>("dev"));
       }},
      {"cuThreadExchangeStreamCaptureMode",
       [](const doing& d) {
         // The modes come in pairs; the trace does not show which one was asked for.
         auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
         const CUresult r = CALL(cuThreadExchangeStreamCaptureMode, &mode);
         return r ? r : CALL(cuThreadExchangeStreamCaptureMode, &mode);
       }},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
       [](const doing& d) {
         return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, number, d.get<CUfunction>("func"),
                     d.get<int>("blockSize"), d.get<std::size_t>("dynamicSMemSize"));
       }},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
       [](const doing& d) {
         return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, number, d.get<CUfunction>("func"),
                     d.get<int>("blockSize"), d.get<std::size_t>("dynamicSMemSize"),
                     d.get<unsigned>("flags"));
       }},
      {"cuFuncGetAttribute",
       [](const doing& d) {
         return CALL(cuFuncGetAttribute, number, d.get<CUfunction_attribute>("attrib"),
                     d.get<CUfunction>("hfunc"));
       }},
      {"cuFuncSetAttribute",
       [](const doing& d) {
         return CALL(cuFuncSetAttribute, d.get<CUfunction>("hfunc"), d.get<CUfunction_attribute>("attrib"),
                     d.get<int>("value"));
       }},
      {"cuKernelGetAttribute",
       [](const doing& d) {
         for (unsigned which : d.numbers_of("attrib")) {  // in a row, as a runtime asks
           if (const CUresult r = CALL(cuKernelGetAttribute, number, static_cast<CUfunction_attribute>(which),
                                       d.get<CUkernel>("kernel"), d.get<CUdevice>("dev")))
             return r;
         }
         return CUDA_SUCCESS;
       }},
      {"cuKernelSetAttribute",
       [](const doing& d) {
         return CALL(cuKernelSetAttribute, d.get<CUfunction_attribute>("attrib"), d.get<int>("val"),
                     d.get<CUkernel>("kernel"), d.get<CUdevice>("dev"));
       }},
  };
#undef CALL
  return all;
}

std::string without_suffix(std::string symbol) {
  for (const char* suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    const std::size_t length = std::string(suffix).size();
    if (symbol.size() > length && symbol.compare(symbol.size() - length, length, suffix) == 0)
      symbol.resize(symbol.size() - length);
  }
  return symbol;
}

/// Runs a thread for each lane, one at a time, in the file's order.
class stage {
 public:
  stage(CUcontext context, objects& all) : context_(context), all_(all) {}
  ~stage() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (auto& each : threads_) each.second.join();
  }

  /// The turn passes from lane to lane; a lane makes its consecutive calls by itself.
  void play(const std::vector<call>& calls) {
    for (std::size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
      const int lane = calls[begin].lane;
      while (end < calls.size() && calls[end].lane == lane) ++end;
      if (!threads_.count(lane)) threads_[lane] = std::thread([this, lane] { run(lane); });
      std::unique_lock<std::mutex> lock(mutex_);
      next_ = &calls[begin], after_ = next_ + (end - begin);
      changed_.notify_all();
      changed_.wait(lock, [this] { return next_ == nullptr; });
    }
  }

 private:
  void run(int lane) {
    MUST(find<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context_));
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return over_ || (next_ && next_->lane == lane); });
      if (over_) return;
      for (const call* c = next_; c != after_; ++c) perform(*c);
      next_ = nullptr;
      changed_.notify_all();
    }
  }

  void perform(const call& c) {
    const auto found = actions().find(without_suffix(c.symbol));
    if (found == actions().end()) fail("what does " + c.symbol + " do?");
    for (int i = 0; i < c.times; ++i) {
      const CUresult code = found->second(doing{c, all_});
      // Work that was under way in the recording may be complete here, and the other way round.
      const bool progress = (code == CUDA_ERROR_NOT_READY || code == CUDA_SUCCESS) &&
                            (c.code == CUDA_ERROR_NOT_READY || c.code == CUDA_SUCCESS);
      if (code != c.code && !progress)
        fail(c.symbol + " gave " + std::to_string(code) + " instead of " + std::to_string(c.code));
    }
  }

  CUcontext context_;
  objects& all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const call *next_ = nullptr, *after_ = nullptr;
  bool over_ = false;
  std::map<int, std::thread> threads_;
};

struct declaration {
  std::string kind, name;
  std::size_t number = 0;
};

std::size_t read(const char* file, std::vector<declaration>& declared, std::vector<call>& calls) {
  std::ifstream in(file);
  if (!in) fail(std::string("cannot read ") + file);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word[0] < '0' || word[0] > '9') {
      declaration d;
      d.kind = word;
      words >> d.name >> d.number;
      declared.push_back(d);
      continue;
    }
    call c;
    c.lane = std::stoi(word);
    words >> c.symbol;
    while (words >> word) {
      const std::size_t equals = word.find('=');
      if (word == "=>") {
        words >> c.code;
      } else if (word[0] == 'x' && equals == word.npos) {
        c.times = std::stoi(word.substr(1));
      } else {
        c.arguments[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
    calls.push_back(c);
  }
  return calls.size();
}

void load_kernels(const std::vector<declaration>& declared, objects& all) {
  std::string ptx = ".version 6.4\n.target sm_52\n.address_size 64\n";
  for (const declaration& d : declared) {
    if (d.kind == "kernel") ptx += ".visible .entry " + d.name + "(.param .u64 to) { ret; }\n";
  }
  CUlibrary library = nullptr;
  MUST(find<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(&library, ptx.c_str(), nullptr, nullptr, 0,
                                                              nullptr, nullptr, 0));
  for (const declaration& d : declared) {
    if (d.kind != "kernel") continue;
    CUkernel f = nullptr;
    MUST(find<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&f, library, d.name.c_str()));
    if (d.number > 48 << 10) {
      MUST(find<decltype(cuKernelSetAttribute)>("cuKernelSetAttribute")(
          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(d.number), f, 0));
    }
    all[d.name] = reinterpret_cast<std::uint64_t>(f);
  }
}

void make(const declaration& d, objects& all) {
  static std::vector<std::unique_ptr<char[]>> pageable;
  CUdeviceptr device = 0;
  void* made = nullptr;
  if (d.kind == "device") {
    MUST(find<decltype(cuMemAlloc)>("cuMemAlloc_v2")(&device, d.number));
    all[d.name] = device;
    return;
  }
  if (d.kind == "pinned") {
    MUST(find<decltype(cuMemHostAlloc)>("cuMemHostAlloc")(&made, d.number, 0));
  } else if (d.kind == "pageable") {
    pageable.push_back(std::make_unique<char[]>(d.number));
    made = pageable.back().get();
  } else if (d.kind == "stream") {
    MUST(find<decltype(cuStreamCreate)>("cuStreamCreate")(reinterpret_cast<CUstream*>(&made),
                                                          CU_STREAM_NON_BLOCKING));
  } else if (d.kind == "event") {
    MUST(find<decltype(cuEventCreate)>("cuEventCreate")(reinterpret_cast<CUevent*>(&made),
                                                        static_cast<unsigned>(d.number)));
  } else if (d.kind != "kernel") {
    fail("what is a " + d.kind + "?");
  } else {
    return;
  }
  all[d.name] = reinterpret_cast<std::uint64_t>(made);
}

}  // namespace

int main(int count, char** values) {
  if (count < 2) fail("which file?");
  const long repetitions = argument(count, values, 2, 2);
  std::vector<declaration> declared;
  std::vector<call> calls;
  EXPECT(read(values[1], declared, calls) > 0);
  CUcontext context = nullptr;
  MUST(find<decltype(cuInit)>("cuInit")(0));
  MUST(find<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0));
  MUST(find<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
  objects all;
  load_kernels(declared, all);
  for (const declaration& d : declared) make(d, all);
  std::size_t ignored = 0;
  const auto mark = [&](int number) {
    EXPECT(find<decltype(cuCtxGetLimit)>("cuCtxGetLimit")(&ignored, static_cast<CUlimit>(number)) !=
           CUDA_SUCCESS);
  };
  {
    stage s(context, all);
    for (long i = 1; i < repetitions; ++i) s.play(calls);
    MUST(find<CUresult()>("cuCtxSynchronize")());
    mark(7001);
    s.play(calls);
    mark(7002);
  }
  std::printf("%zu calls\n", calls.size());
  return pass("replay_trace");
}
