// The recorder beside CUPTIs of several versions, which are built here: small libraries with the structs that
// each version has.
#include "device/vendor/cupti.hh"

#include "device/vendor/cupti_version.hh"

#ifdef OUTBOARD_HAS_CUPTI_HEADERS

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hh"

namespace outboard::device::vendor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// VERSION, KERNEL (the struct of its kernels) and MORE (bytes that a later version has behind that) are
/// given; NO_SENSORS: it cannot sample. A flush brings two kernels, one of each other kind, and samples.
constexpr const char* library = R"(
#include <string.h>
#include <cupti.h>
typedef struct { KERNEL known; char more[MORE]; } kernel;
static CUpti_BuffersCallbackRequestFunc give;
static CUpti_BuffersCallbackCompleteFunc take;
static int enabled[CUPTI_ACTIVITY_KIND_COUNT], told;
static size_t size_of(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return sizeof(kernel);
  return kind == CUPTI_ACTIVITY_KIND_MEMCPY ? sizeof(CUpti_ActivityMemcpy5) : sizeof(CUpti_ActivityEnvironment);
}
CUptiResult cuptiGetVersion(uint32_t* version) { *version = VERSION; return CUPTI_SUCCESS; }
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc g, CUpti_BuffersCallbackCompleteFunc t) {
  give = g, take = t;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
#ifdef NO_SENSORS
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) return CUPTI_ERROR_NOT_SUPPORTED;
#endif
  enabled[kind] = 1;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { enabled[kind] = 0; return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t how) {
  uint8_t* buffer;
  size_t size, most, used = 0;
  (void)how;
  if (told++) return CUPTI_SUCCESS;
  give(&buffer, &size, &most);
  for (int i = 1; enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && i <= 2; ++i) {
    kernel k;
    memset(&k, 0xee, sizeof k);
    memset(&k.known, 0, sizeof k.known);
    k.known.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.known.start = 100 * i, k.known.end = 100 * i + 50, k.known.gridX = 7 * i, k.known.clusterX = i;
    k.known.graphNodeId = 1000 + i, k.known.localMemoryPerThread = 16, k.known.name = "kernel";
    memcpy(buffer + used, &k, sizeof k), used += sizeof k;
  }
  if (enabled[CUPTI_ACTIVITY_KIND_MEMCPY]) {
    CUpti_ActivityMemcpy5 c;
    memset(&c, 0, sizeof c);
    c.kind = CUPTI_ACTIVITY_KIND_MEMCPY, c.start = 500, c.end = 600, c.bytes = 4096, c.channelID = 9;
    memcpy(buffer + used, &c, sizeof c), used += sizeof c;
  }
  for (int kind = 1; enabled[CUPTI_ACTIVITY_KIND_ENVIRONMENT] && kind <= CUPTI_ACTIVITY_ENVIRONMENT_COUNT; ++kind) {
    CUpti_ActivityEnvironment e;
    memset(&e, 0xff, sizeof e);
    e.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT, e.deviceId = 1, e.timestamp = 700 + kind, e.environmentKind = kind;
    if (kind == CUPTI_ACTIVITY_ENVIRONMENT_SPEED) {
      e.data.speed.smClock = 1980, e.data.speed.memoryClock = 3201, e.data.speed.pcieLinkGen = 5;
      e.data.speed.pcieLinkWidth = 16, e.data.speed.clocksThrottleReasons = CUPTI_CLOCKS_THROTTLE_REASON_GPU_IDLE;
    }
    if (kind == CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE) e.data.temperature.gpuTemperature = 41;
    if (kind == CUPTI_ACTIVITY_ENVIRONMENT_POWER) e.data.power.power = 118000, e.data.power.powerLimit = 700000;
    if (kind == CUPTI_ACTIVITY_ENVIRONMENT_COOLING) e.data.cooling.fanSpeed = 30;
    memcpy(buffer + used, &e, sizeof e), used += sizeof e;
  }
  take(0, 0, buffer, size, used);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  size_t at = *record ? (size_t)((uint8_t*)*record - buffer) + size_of((*record)->kind) : 0;
  if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity*)(buffer + at);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext c, uint32_t stream, size_t* n) {
  (void)c, (void)stream;
  *n = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f) { (void)f; return CUPTI_SUCCESS; }
CUptiResult cuptiGetTimestamp(uint64_t* at) { *at = 1; return CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult code, const char** text) {
  (void)code;
  *text = "CUPTI_ERROR_NOT_SUPPORTED";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* s, CUpti_CallbackFunc f, void* data) {
  (void)s, (void)f, (void)data;
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle s) { (void)s; return CUPTI_SUCCESS; }
CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain d, CUpti_CallbackId id) {
  (void)on, (void)s, (void)d, (void)id;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain d, uint32_t id, const char** name) {
  (void)d, (void)id, (void)name;
  return CUPTI_ERROR_INVALID_PARAMETER;
}
)";

class cupti_versions : public ::testing::Test {
 protected:
  cupti_versions() { folder_ = make_temporary_folder("outboard-cupti").value(); }
  ~cupti_versions() override {
    ::unsetenv("LD_LIBRARY_PATH");
    std::filesystem::remove_all(folder_);
  }

  /// The server's CUPTI from now on; returns its path. The loader knows libraries by their paths, so each has
  /// one.
  std::string build(std::uint32_t version, const std::string& kernel, int more,
                    const std::string& also = "") {
    const std::string own = folder_ + "/" + std::to_string(built_++), path = own + "/libcupti.so.13";
    std::filesystem::create_directory(own);
    std::ofstream(path + ".c") << library;
    const std::string root = OUTBOARD_TEST_CUDA_ROOT,
                      includes = " -I" + root + "/include -I" + root + "/extras/CUPTI/include";
    const std::string command = std::string(OUTBOARD_TEST_CC) + " -shared -fPIC -w" + includes +
                                " -DVERSION=" + std::to_string(version) + " -DKERNEL=" + kernel +
                                " -DMORE=" + std::to_string(more) + also + " -o " + path + " " + path + ".c";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    ::setenv("LD_LIBRARY_PATH", own.c_str(), 1);
    return path;
  }

  std::string folder_;
  int built_ = 0;
};

void expect_all(recorded_work done) {
  ASSERT_EQ(done.records.size(), 3u);
  EXPECT_EQ(done.names, (std::vector<std::string>{"kernel"}));
  for (std::uint32_t i = 1; i <= 2; ++i) {
    const api::work_record& kernel = done.records[i - 1];
    EXPECT_EQ(kernel.kind, api::work_kind::kernel);
    EXPECT_EQ(kernel.begin, 100 * i);
    EXPECT_EQ(kernel.end, 100 * i + 50);
    EXPECT_EQ(kernel.grid[0], 7 * i);
    EXPECT_EQ(kernel.cluster[0], i);
    EXPECT_EQ(kernel.graph_node, 1000 + i);
    EXPECT_EQ(kernel.local, 16u);
  }
  EXPECT_EQ(done.records[2].kind, api::work_kind::copy);
  EXPECT_EQ(done.records[2].bytes, 4096u);
  EXPECT_EQ(done.records[2].channel, 9u);
}

TEST_F(cupti_versions, records_are_read_whatever_the_size_of_their_structs) {
  const struct {
    std::uint32_t version;
    const char* kernel;
    int more;
  } all[] = {{19, "CUpti_ActivityKernel9", 0},       // CUDA 12.0
             {28, "CUpti_ActivityKernel9", 0},       // 12.9
             {130001, "CUpti_ActivityKernel10", 0},  // 13.0
             {130400, "CUpti_ActivityKernel10", 64}};
  for (const auto& one : all) {
    SCOPED_TRACE(one.version);
    build(one.version, one.kernel, one.more);
    const auto recorder = make_cupti_recorder();
    const status started = recorder->start();
    ASSERT_TRUE(started.ok()) << started.error().message;
    expect_all(recorder->take(false));
  }
}

TEST_F(cupti_versions, others_are_refused_by_one_line_that_says_what_would_do) {
  for (const std::uint32_t version : {18u, 5000u, 140000u}) {
    const std::string path = build(version, "CUpti_ActivityKernel10", 128);
    const auto recorder = make_cupti_recorder();
    for (int i = 0; i < 2; ++i) {
      const status started = recorder->start();
      ASSERT_FALSE(started.ok()) << version;
      EXPECT_THAT(started.error().message,
                  AllOf(HasSubstr(path), HasSubstr("version " + std::to_string(version)),
                        HasSubstr("CUDA 12 to 13"), HasSubstr("put the libcupti.so.13")));
    }
    EXPECT_FALSE(recorder->sample(true).ok());
  }
}

TEST_F(cupti_versions, sensors_are_sampled_only_when_that_is_wanted) {
  build(130001, "CUpti_ActivityKernel10", 0);
  const auto recorder = make_cupti_recorder();
  EXPECT_TRUE(recorder->sample(false).ok());
  EXPECT_TRUE(recorder->take_samples().samples.empty());
  ASSERT_TRUE(recorder->sample(true).ok());
  ASSERT_TRUE(recorder->sample(true).ok());
  const sampled_boards done = recorder->take_samples();
  // A fifth one is of a kind that the headers do not know.
  ASSERT_EQ(done.samples.size(), 4u);
  const std::array<std::uint32_t, 5> values[] = {{1980, 3201, 5, 16, 1}, {41}, {118000, 700000}, {30}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<std::size_t>(done.samples[i].kind), i + 1);
    EXPECT_EQ(done.samples[i].device, 1u);
    EXPECT_EQ(done.samples[i].at, 701 + i);
    EXPECT_EQ(done.samples[i].values, values[i]);
  }
  EXPECT_TRUE(recorder->take_samples().samples.empty());
  EXPECT_TRUE(recorder->take(false).records.empty());
  EXPECT_TRUE(recorder->sample(false).ok());
}

TEST_F(cupti_versions, a_cupti_that_cannot_sample_says_why) {
  build(130001, "CUpti_ActivityKernel10", 0, " -DNO_SENSORS");
  const auto recorder = make_cupti_recorder();
  const status refused = recorder->sample(true);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("CUPTI_ACTIVITY_KIND_ENVIRONMENT"), HasSubstr("CUPTI_ERROR_NOT_SUPPORTED")));
  EXPECT_TRUE(recorder->start().ok());
}

TEST(cupti_version, belongs_to_a_cuda) {
  EXPECT_EQ(cuda_of_cupti(18), 11u);
  EXPECT_EQ(cuda_of_cupti(19), 12u);
  EXPECT_EQ(cuda_of_cupti(26), 12u);
  EXPECT_EQ(cuda_of_cupti(CUPTI_API_VERSION), 13u);
  EXPECT_EQ(cuda_of_cupti(130300), 13u);
  EXPECT_EQ(cuda_of_cupti(140000), 14u);
  EXPECT_FALSE(cupti_is_known(0));
  EXPECT_FALSE(cupti_is_known(100));
}

}  // namespace
}  // namespace outboard::device::vendor

#endif
