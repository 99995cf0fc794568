// A program with a profiler of its own inside that looks at the device's sensors: CUPTI's records of speed,
// temperature, power and cooling (kind ENVIRONMENT). Devices without sensors, as Outboard's on the processor,
// refuse. It prints PASS. Natively the same.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common.hh"

__global__ void busy(volatile int* at) {
  for (int i = 0; i < 1000; ++i) *at = *at + 1;
}

std::mutex mutex;
std::map<int, std::vector<CUpti_ActivityEnvironment>> seen;  // by what was measured
size_t others = 0;

void give(uint8_t** buffer, size_t* bytes, size_t* most) {
  *bytes = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
  *most = 0;
}

void take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_ENVIRONMENT) {
      ++others;
      continue;
    }
    const auto& sample = *reinterpret_cast<CUpti_ActivityEnvironment*>(record);
    seen[sample.environmentKind].push_back(sample);
  }
  std::free(buffer);
}

/// Speed, temperature and power have come; not every device has a fan.
bool all_are_there() {
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const std::lock_guard<std::mutex> lock(mutex);
  return seen.count(CUPTI_ACTIVITY_ENVIRONMENT_SPEED) && seen.count(CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE) &&
         seen.count(CUPTI_ACTIVITY_ENVIRONMENT_POWER);
}

void work_until_all_are_there(int* at) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all_are_there()) {
    EXPECT(std::chrono::steady_clock::now() < end);
    busy<<<1, 1>>>(at);
    MUST(cudaDeviceSynchronize());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void check(uint64_t before, uint64_t after, int devices) {
  for (const auto& of_kind : seen) {
    for (const CUpti_ActivityEnvironment& sample : of_kind.second) {
      EXPECT(sample.deviceId < static_cast<uint32_t>(devices));
      EXPECT(sample.timestamp >= before && sample.timestamp <= after);
    }
    std::printf("%zu samples of kind %d\n", of_kind.second.size(), of_kind.first);
  }
  const auto& speed = seen[CUPTI_ACTIVITY_ENVIRONMENT_SPEED].back().data.speed;
  const auto& power = seen[CUPTI_ACTIVITY_ENVIRONMENT_POWER].back().data.power;
  const uint32_t degrees =
      seen[CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE].back().data.temperature.gpuTemperature;
  std::printf("%u and %u MHz, PCIe %u x%u, reasons %#x, %u degrees C, %u of %u mW\n", speed.smClock,
              speed.memoryClock, speed.pcieLinkGen, speed.pcieLinkWidth,
              static_cast<unsigned>(speed.clocksThrottleReasons), degrees, power.power, power.powerLimit);
  EXPECT(speed.smClock > 100 && speed.smClock < 10000 && speed.memoryClock > 100);
  EXPECT(degrees > 5 && degrees < 120);
  EXPECT(power.power > 1000 && power.power < 2 * power.powerLimit);
}

int main() {
  int* at = nullptr;
  int devices = 0;
  cudaDeviceProp properties;
  MUST(cudaMalloc(&at, 4096));
  MUST(cudaGetDeviceCount(&devices));
  MUST(cudaGetDeviceProperties(&properties, 0));
  MUST(cuptiActivityRegisterCallbacks(give, take));
  uint64_t before = 0, after = 0;
  MUST(cuptiGetTimestamp(&before));
  const CUptiResult enabled = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT);
  if (!std::strstr(properties.name, "NVIDIA")) {
    EXPECT(enabled == CUPTI_ERROR_NOT_SUPPORTED);
    MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    EXPECT(seen.empty() && others == 0);
    return pass("environment_records");
  }
  MUST(enabled);
  work_until_all_are_there(at);
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  MUST(cuptiGetTimestamp(&after));
  check(before, after, devices);
  EXPECT(others == 0);
  // Nobody wants them any more.
  const size_t samples = seen[CUPTI_ACTIVITY_ENVIRONMENT_SPEED].size();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(seen[CUPTI_ACTIVITY_ENVIRONMENT_SPEED].size() == samples);
  return pass("environment_records");
}
