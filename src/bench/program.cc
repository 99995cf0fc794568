#include "bench/program.hh"

#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/driver.hh"
#include "bench/pacing.hh"
#include "bench/rows.hh"

namespace outboard::bench {
namespace {

/// One thread adds to a word: what was launched can be counted, and costs no more than an empty kernel.
constexpr const char* image = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add_to(.param .u64 word, .param .u32 value) {
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %d<3>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra done;
  ld.param.u64 %d1, [word];
  cvta.to.global.u64 %d2, %d1;
  ld.param.u32 %r2, [value];
  red.global.add.u32 [%d2], %r2;
done:
  ret;
}
)";

/// Bytes that no other seed gives, as whole words of a block.
constexpr std::uint64_t pattern(std::uint64_t seed, std::uint64_t at) {
  return (seed * 0x9e3779b97f4a7c15 + at) * 0xbf58476d1ce4e5b9;
}

void fill(std::span<std::uint64_t> block, std::uint64_t seed) {
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = pattern(seed, i);
}

bool holds(std::span<const std::uint64_t> block, std::uint64_t seed) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (block[i] != pattern(seed, i)) return false;
  }
  return true;
}

/// Memory of the host that copies use: page-locked by the driver, or the program's own.
class host_block {
 public:
  host_block(const driver& d, std::uint64_t bytes, bool locked) : driver_(d) {
    if (!locked) {
      own_.resize(bytes / sizeof(std::uint64_t));
      words_ = own_;
      return;
    }
    void* got = nullptr;
    code_ = d.cuMemHostAlloc(&got, bytes, 0);
    if (code_ == CUDA_SUCCESS) {
      locked_ = got;
      words_ = {static_cast<std::uint64_t*>(got), bytes / sizeof(std::uint64_t)};
    }
  }
  ~host_block() {
    if (locked_ != nullptr) driver_.cuMemFreeHost(locked_);
  }
  host_block(const host_block&) = delete;
  host_block& operator=(const host_block&) = delete;

  CUresult code() const { return code_; }
  std::span<std::uint64_t> words() const { return words_; }

 private:
  const driver& driver_;
  CUresult code_ = CUDA_SUCCESS;
  void* locked_ = nullptr;
  std::vector<std::uint64_t> own_;
  std::span<std::uint64_t> words_;
};

/// Memory of the device.
class device_block {
 public:
  device_block(const driver& d, std::uint64_t bytes) : driver_(d), code_(d.cuMemAlloc(&there_, bytes)) {}
  ~device_block() {
    if (code_ == CUDA_SUCCESS) driver_.cuMemFree(there_);
  }
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;

  CUresult code() const { return code_; }
  CUdeviceptr there() const { return there_; }

 private:
  const driver& driver_;
  CUdeviceptr there_ = 0;
  CUresult code_;
};

class program {
 public:
  program(const driver& d, const program_options& options) : driver_(d), options_(options) {
    const auto all = rows();
    total_weight_ = std::accumulate(all.begin(), all.end(), 0.0,
                                    [](double sum, const row& each) { return sum + each.weight; });
  }

  ~program() {
    if (word_ != 0) driver_.cuMemFree(word_);
    if (context_ != nullptr) driver_.cuDevicePrimaryCtxRelease(device_);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  status prepare() {
    const double began = microseconds();
    std::array<char, 256> name{};
    std::size_t free = 0, total = 0;
    std::uint32_t word = 0;
    const bool good =
        ok(driver_.cuInit(0), "cuInit") && ok(driver_.cuDeviceGet(&device_, 0), "cuDeviceGet") &&
        ok(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain") &&
        ok(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent") &&
        ok(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate") &&
        ok(driver_.cuModuleLoadData(&module_, image), "cuModuleLoadData") &&
        ok(driver_.cuModuleGetFunction(&add_to_, module_, "add_to"), "cuModuleGetFunction") &&
        ok(driver_.cuMemAlloc(&word_, sizeof word), "cuMemAlloc") &&
        ok(driver_.cuMemcpyHtoD(word_, &word, sizeof word), "cuMemcpyHtoD") && launch(1) && wait();
    if (!good) return failure(problem_);
    out_.values["start"] = (microseconds() - began) / 1e3;
    if (!ok(driver_.cuDriverGetVersion(&out_.driver_version), "cuDriverGetVersion") ||
        !ok(driver_.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_),
            "cuDeviceGetName") ||
        !ok(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo") ||
        !ok(driver_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate"))
      return failure(problem_);
    out_.device = name.data();
    out_.free_memory = free;
    out_.library = driver_.library;
    out_.ours = driver_.ours;
    return check_sum("start");
  }

  status measure() {
    OUTBOARD_TRY(measure_waits());
    OUTBOARD_TRY(measure_steps());
    OUTBOARD_TRY(measure_launches());
    measure("allocate", [&] {
      CUdeviceptr block = 0;
      return ok(driver_.cuMemAlloc(&block, mebibyte), "cuMemAlloc") &&
             ok(driver_.cuMemFree(block), "cuMemFree");
    });
    for (const auto& [name, bytes] :
         {std::pair{"4k", 4 * kibibyte}, {"1m", mebibyte}, {"bulk", options_.bulk}}) {
      if (bytes == 0) continue;
      OUTBOARD_TRY(measure_copies(name, bytes));
    }
    return {};
  }

  program_result take() { return std::move(out_); }

 private:
  /// Keeps the first failure's words for the row.
  bool ok(CUresult code, const char* function) {
    if (code == CUDA_SUCCESS) return true;
    if (problem_.empty()) problem_ = std::string(function) + " gave " + name_of(driver_, code);
    return false;
  }

  bool launch(std::uint32_t value) {
    std::array<void*, 2> parameters{&word_, &value};
    if (!ok(driver_.cuLaunchKernel(add_to_, 1, 1, 1, 32, 1, 1, 0, stream_, parameters.data(), nullptr),
            "cuLaunchKernel"))
      return false;
    sum_ += value;
    return true;
  }

  bool wait() { return ok(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

  /// The word comes back behind what was launched.
  bool fetch(std::uint32_t& value) {
    return ok(driver_.cuMemcpyDtoHAsync(&value, word_, sizeof value, stream_), "cuMemcpyDtoHAsync") && wait();
  }

  double seconds_of(std::string_view name) const {
    return options_.seconds * find_row(name)->weight / total_weight_;
  }

  void keep(const std::string& name, std::optional<double> value) {
    if (value) {
      out_.values[name] = *value;
    } else {
      out_.missing[name] = problem_;
    }
    problem_.clear();
  }

  template <class Call>
  void measure(const std::string& name, Call call) {
    keep(name, pace_within(seconds_of(name), call));
  }

  status check_sum(std::string_view row_name) {
    std::uint32_t value = 0;
    if (!fetch(value)) return failure("after \"" + std::string(row_name) + "\": " + problem_);
    if (value == sum_) return {};
    return failure("wrong result: after \"" + std::string(row_name) + "\" the kernels' sum is " +
                   std::to_string(value) + ", it must be " + std::to_string(sum_));
  }

  status measure_waits() {
    std::size_t free = 0, total = 0;
    measure("query", [&] { return ok(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"); });
    measure("event_wait", [&] {
      return ok(driver_.cuEventRecord(event_, stream_), "cuEventRecord") &&
             ok(driver_.cuEventSynchronize(event_), "cuEventSynchronize");
    });
    measure("launch_wait", [&] { return launch(1) && wait(); });
    return check_sum("launch_wait");
  }

  /// Each step's launch takes what the step before brought back, as a program does that looks at its results.
  status measure_steps() {
    std::uint32_t back = 0;
    bool right = true;
    const auto step = [&](int launches) {
      for (int i = 0; i < launches; ++i) {
        if (!launch((back & 7) + 1)) return false;
      }
      if (!fetch(back)) return false;
      right = right && back == sum_;
      return true;
    };
    measure("step", [&] { return step(1); });
    measure("burst", [&] { return step(launches_of_burst); });
    if (!right) return failure("wrong result: a step brought back another sum than its kernels had made");
    return check_sum("burst");
  }

  /// Bursts that end with one wait: what they take each, and until their first half was submitted.
  status measure_launches() {
    constexpr int least = 200, most = 4000;
    const double limit = microseconds() + seconds_of("launches") * 1e6;
    const auto waited = out_.values.find("launch_wait");
    const double one_wait = waited == out_.values.end() ? 0 : waited->second;
    int count = least;
    std::vector<double> submitted, sustained;
    bool good = true;
    while (good && (sustained.size() < 3 || microseconds() < limit)) {
      const double began = microseconds();
      double half = began;
      for (int i = 0; good && i < count; ++i) {
        if (i == least / 2) half = microseconds();
        good = launch(1);
      }
      good = good && wait();
      if (!good) break;
      submitted.push_back((half - began) / (least / 2));
      sustained.push_back((microseconds() - began) / count);
      // Longer ones where there is time for several, or where the wait at the end would count for much.
      const double took = sustained.back() * count, each = std::max(0.1, (took - one_wait) / count);
      const double room = std::max((limit - microseconds()) / 8 / sustained.back(), 10 * one_wait / each);
      count = std::max(count, static_cast<int>(std::clamp(room, double{least}, double{most})));
    }
    // The first burst was short.
    if (good && sustained.size() > 1) sustained.erase(sustained.begin());
    keep("launch_submit", good ? std::optional(median(submitted)) : std::nullopt);
    if (!good) problem_ = out_.missing["launch_submit"];
    keep("launches", good ? std::optional(1e3 / median(sustained)) : std::nullopt);
    return check_sum("launches");
  }

  static double as_value(const std::string& name, double took, std::uint64_t bytes) {
    return higher_is_better(find_row(name)->in) ? static_cast<double>(bytes) / took / 1e3 : took;
  }

  /// One row: copies of a block, each until it is there.
  template <class Call>
  void measure_copy(const std::string& name, std::uint64_t bytes, Call call) {
    auto took = pace_within(seconds_of(name), call);
    if (took) took = as_value(name, *took, bytes);
    keep(name, took);
  }

  status measure_copies(const std::string& size, std::uint64_t bytes) {
    const device_block remote(driver_, bytes);
    const CUdeviceptr there = remote.there();
    for (const bool locked : {false, true}) {
      const std::string kind = (locked ? "_locked_" : "_pageable_") + size;
      const std::string in = "in" + kind, out = "out" + kind;
      const host_block block(driver_, bytes, locked);
      if (!ok(remote.code(), "cuMemAlloc") || !ok(block.code(), "cuMemHostAlloc")) {
        out_.missing[in] = out_.missing[out] = problem_;
        problem_.clear();
        continue;
      }
      std::uint64_t* const here = block.words().data();
      fill(block.words(), ++seed_);
      measure_copy(in, bytes, [&] {
        return ok(driver_.cuMemcpyHtoD(there, here, bytes), "cuMemcpyHtoD") &&
               ok(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
      });
      std::memset(here, 0, bytes);
      measure_copy(out, bytes, [&] { return ok(driver_.cuMemcpyDtoH(here, there, bytes), "cuMemcpyDtoH"); });
      const bool both = out_.values.contains(in) && out_.values.contains(out);
      if (both && !holds(block.words(), seed_))
        return failure("wrong result: \"" + out + "\" did not bring back what \"" + in + "\" had sent");
    }
    return {};
  }

  const driver& driver_;
  const program_options& options_;
  double total_weight_ = 1;
  program_result out_;
  std::string problem_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction add_to_ = nullptr;
  CUdeviceptr word_ = 0;
  std::uint32_t sum_ = 0;   ///< what the word must hold
  std::uint64_t seed_ = 0;  ///< of the block that was sent last
};

}  // namespace

result<program_result> run_program(const program_options& options) {
  const auto d = load_driver(options.library);
  if (!d.ok()) return d.error();
  return run_program(*d, options);
}

result<program_result> run_program(const driver& d, const program_options& options) {
  program p(d, options);
  OUTBOARD_TRY(p.prepare());
  OUTBOARD_TRY(p.measure());
  return p.take();
}

}  // namespace outboard::bench
