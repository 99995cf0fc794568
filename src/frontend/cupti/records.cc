#include "frontend/cupti/records.hh"

#include <cstring>
#include <type_traits>
#include <variant>

namespace outboard::frontend::cupti {
namespace {

using api::memory_side;

template <class Record>
void common(Record& r, const api::work_record& w, const shown_work& shown) {
  r.start = shown.begin;
  r.end = shown.end;
  r.deviceId = w.device;
  r.contextId = shown.context;
  r.streamId = shown.stream;
  r.correlationId = shown.call;
  r.graphNodeId = w.graph_node;
  r.graphId = w.graph;
  r.channelID = w.channel;
  r.channelType = static_cast<CUpti_ChannelType>(w.channel_type);
}

/// Ours are numbered as theirs.
static_assert(static_cast<int>(api::sample_kind::speed) == CUPTI_ACTIVITY_ENVIRONMENT_SPEED);
static_assert(static_cast<int>(api::sample_kind::temperature) == CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE);
static_assert(static_cast<int>(api::sample_kind::power) == CUPTI_ACTIVITY_ENVIRONMENT_POWER);
static_assert(static_cast<int>(api::sample_kind::cooling) == CUPTI_ACTIVITY_ENVIRONMENT_COOLING);
static_assert(static_cast<int>(memory_side::pageable) == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
static_assert(static_cast<int>(memory_side::pinned) == CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
static_assert(static_cast<int>(memory_side::device) == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
static_assert(static_cast<int>(memory_side::array) == CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
static_assert(static_cast<int>(memory_side::managed) == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);

CUpti_ActivityMemcpyKind direction(memory_side from, memory_side to) {
  enum class where { unknown, host, device, array };
  const auto of = [](memory_side side) {
    switch (side) {
      case memory_side::pageable:
      case memory_side::pinned:
        return where::host;
      case memory_side::device:
      case memory_side::managed:
        return where::device;
      case memory_side::array:
        return where::array;
      default:
        return where::unknown;
    }
  };
  // By where bytes come from, then by where they go: host, device, array.
  constexpr CUpti_ActivityMemcpyKind kinds[3][3] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA}};
  const where begin = of(from), end = of(to);
  if (begin == where::unknown || end == where::unknown) return CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
  return kinds[static_cast<int>(begin) - 1][static_cast<int>(end) - 1];
}

/// Of a copy, on one device or between two.
template <class Record>
Record copy(CUpti_ActivityKind kind, const api::work_record& w, const shown_work& shown,
            CUpti_ActivityMemcpyKind way) {
  Record r{};
  r.kind = kind;
  common(r, w, shown);
  r.bytes = w.bytes;
  r.copyKind = static_cast<std::uint8_t>(way);
  r.srcKind = static_cast<std::uint8_t>(w.from);
  r.dstKind = static_cast<std::uint8_t>(w.to);
  r.flags = shown.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  return r;
}

CUpti_ActivityMemoryKind kind_of(memory_kind kind) {
  if (lies_on_host(kind)) return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  return kind == memory_kind::managed ? CUPTI_ACTIVITY_MEMORY_KIND_MANAGED
                                      : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

}  // namespace

CUpti_ActivityKernel10 kernel_record(CUpti_ActivityKind kind, const api::work_record& w,
                                     const shown_work& shown) {
  CUpti_ActivityKernel10 r{};
  r.kind = kind;
  common(r, w, shown);
  r.completed = shown.end;
  r.name = shown.name;
  r.registersPerThread = static_cast<std::uint16_t>(w.registers);
  const auto place = [](const auto& from, std::int32_t& x, std::int32_t& y, std::int32_t& z) {
    x = static_cast<std::int32_t>(from[0]);
    y = static_cast<std::int32_t>(from[1]);
    z = static_cast<std::int32_t>(from[2]);
  };
  std::int32_t x = 0, y = 0, z = 0;
  place(w.grid, x, y, z);
  r.gridX = x, r.gridY = y, r.gridZ = z;
  place(w.block, x, y, z);
  r.blockX = x, r.blockY = y, r.blockZ = z;
  r.clusterX = w.cluster[0], r.clusterY = w.cluster[1], r.clusterZ = w.cluster[2];
  r.staticSharedMemory = static_cast<std::int32_t>(w.static_shared);
  r.dynamicSharedMemory = static_cast<std::int32_t>(w.dynamic_shared);
  r.sharedMemoryExecuted = w.shared;
  r.localMemoryPerThread = w.local;
  r.localMemoryTotal = static_cast<std::uint32_t>(w.local_total);
  r.localMemoryTotal_v2 = w.local_total;
  return r;
}

CUpti_ActivityMemcpy6 copy_record(const api::work_record& w, const shown_work& shown) {
  auto r = copy<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, w, shown, direction(w.from, w.to));
  r.copyCount = 1;
  return r;
}

CUpti_ActivityMemcpyPtoP4 peer_copy_record(const api::work_record& w, const shown_work& shown) {
  auto r =
      copy<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, w, shown, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
  r.srcDeviceId = w.peer - 1;
  r.dstDeviceId = w.device;
  r.srcContextId = r.dstContextId = shown.context;
  return r;
}

CUpti_ActivityMemset4 fill_record(const api::work_record& w, const shown_work& shown) {
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  common(r, w, shown);
  r.bytes = w.bytes;
  r.value = w.value;
  r.memoryKind = static_cast<std::uint16_t>(w.to);
  r.flags = shown.async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  return r;
}

CUpti_ActivityDevice5 device_record(const marshal::device_facts& device, std::uint32_t number) {
  const auto attribute = [&](CUdevice_attribute which) -> std::uint32_t {
    const auto at = static_cast<std::size_t>(which);
    if (at >= device.attributes.size() || device.attributes[at].result != CUDA_SUCCESS) return 0;
    return static_cast<std::uint32_t>(device.attributes[at].value);
  };
  CUpti_ActivityDevice5 r{};
  r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  if (attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS))
    r.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  r.id = number;
  r.name = device.name.c_str();
  static_assert(sizeof r.uuid.bytes == sizeof device.uuid);
  std::memcpy(r.uuid.bytes, device.uuid.data(), sizeof r.uuid.bytes);
  r.computeCapabilityMajor = static_cast<std::uint32_t>(device.compute_major);
  r.computeCapabilityMinor = static_cast<std::uint32_t>(device.compute_minor);
  r.globalMemorySize = device.total_memory;
  // Kilobytes a second: two transfers in each of the memory's clocks (kHz), over the width of its bus (bits).
  r.globalMemoryBandwidth = std::uint64_t{2} * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                            attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  r.constantMemorySize = attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  r.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  r.numThreadsPerWarp = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  r.coreClockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  r.numMemcpyEngines = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  r.numMultiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (r.numThreadsPerWarp != 0)
    r.maxWarpsPerMultiprocessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / r.numThreadsPerWarp;
  r.maxBlocksPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  r.maxSharedMemoryPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  r.maxRegistersPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  r.maxRegistersPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  r.maxSharedMemoryPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  r.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  r.maxBlockDimX = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  r.maxBlockDimY = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  r.maxBlockDimZ = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  r.maxGridDimX = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  r.maxGridDimY = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  r.maxGridDimZ = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  r.eccEnabled = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  r.isCudaVisible = 1;
  // No slice of a device: the server's own are whole to us.
  r.gpuInstanceId = r.computeInstanceId = ~std::uint32_t{0};
  return r;
}

CUpti_ActivityMarker2 marker_record(std::uint32_t flags, std::uint32_t id, std::uint64_t at,
                                    const shown_thread& where, const annotation_domain& domain,
                                    const char* name) {
  CUpti_ActivityMarker2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MARKER;
  r.flags = static_cast<CUpti_ActivityFlag>(flags);
  r.timestamp = at;
  r.id = id;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  r.objectId.pt = {where.process, where.thread};
  r.name = name;
  r.domain = domain.is_default() ? nullptr : domain.name().c_str();
  return r;
}

CUpti_ActivityMarkerData2 marker_data_record(std::uint32_t id, const annotation& about) {
  CUpti_ActivityMarkerData2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MARKER_DATA;
  r.flags = about.color ? CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB : CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE;
  r.id = id;
  r.color = about.color.value_or(0);
  r.category = about.category;
  // CUPTI has one kind of each sort of number.
  const auto put = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, std::monostate>) {
      r.payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
    } else if constexpr (std::is_floating_point_v<T>) {
      r.payloadKind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
      r.payload.metricValueDouble = value;
    } else if constexpr (std::is_signed_v<T>) {
      r.payloadKind = CUPTI_METRIC_VALUE_KIND_INT64;
      r.payload.metricValueInt64 = value;
    } else {
      r.payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
      r.payload.metricValueUint64 = value;
    }
  };
  std::visit(put, about.payload);
  return r;
}

CUpti_ActivityOverhead3 flush_record(const shown_thread& where, std::uint64_t begin, std::uint64_t end) {
  CUpti_ActivityOverhead3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  r.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  r.objectId.pt = {where.process, where.thread};
  r.start = begin;
  r.end = end;
  return r;
}

CUpti_ActivityName name_record(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId& id,
                               const char* name) {
  CUpti_ActivityName r{};
  r.kind = CUPTI_ACTIVITY_KIND_NAME;
  r.objectKind = kind;
  r.objectId = id;
  r.name = name;
  return r;
}

CUpti_ActivityMemory4 memory_record(const shown_memory& m) {
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = m.release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                    : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  r.memoryKind = kind_of(m.block.kind);
  r.correlationId = m.call;
  r.address = m.block.base;
  r.bytes = m.block.size;
  r.timestamp = m.at;
  r.processId = m.process;
  r.deviceId = static_cast<std::uint32_t>(m.block.device);
  r.contextId = m.context != 0 ? m.context : CUPTI_INVALID_CONTEXT_ID;
  r.streamId = m.async ? m.stream : CUPTI_INVALID_STREAM_ID;
  r.isAsync = m.async;
  if (m.block.kind == memory_kind::pool) {
    r.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    r.memoryPoolConfig.address = m.block.pool;
  }
  return r;
}

CUpti_ActivityMemory memory_life_record(const shown_memory& m, std::uint64_t begin, std::uint64_t end) {
  CUpti_ActivityMemory r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY;
  r.memoryKind = kind_of(m.block.kind);
  r.address = m.block.base;
  r.bytes = m.block.size;
  r.start = begin;
  r.end = end;
  r.processId = m.process;
  r.deviceId = static_cast<std::uint32_t>(m.block.device);
  r.contextId = m.context != 0 ? m.context : CUPTI_INVALID_CONTEXT_ID;
  return r;
}

CUpti_ActivityMemoryPool3 pool_record(const shown_pool& p) {
  CUpti_ActivityMemoryPool3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  r.memoryPoolOperationType = p.operation;
  r.memoryPoolType =
      p.imported ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED : CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  r.correlationId = p.call;
  r.processId = p.process;
  r.deviceId = static_cast<std::uint32_t>(p.device);
  r.minBytesToKeep = p.kept;
  r.address = p.handle;
  r.timestamp = p.at;
  return r;
}

CUpti_ActivityCudaEvent2 event_record(const shown_event& e) {
  CUpti_ActivityCudaEvent2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  r.correlationId = e.call;
  r.contextId = e.context;
  r.streamId = e.stream;
  r.eventId = e.event;
  r.deviceId = e.device;
  return r;
}

CUpti_ActivityGraphTrace2 graph_record(const graph_trace& t, std::uint64_t begin, std::uint64_t end) {
  CUpti_ActivityGraphTrace2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  r.correlationId = t.call;
  r.start = begin;
  r.end = end;
  r.deviceId = t.first_device;
  r.endDeviceId = t.last_device;
  r.graphId = t.graph;
  r.contextId = r.endContextId = t.context;
  r.streamId = t.stream;
  return r;
}

CUpti_ActivityEnvironment environment_record(const api::board_sample& sample, std::uint64_t at) {
  CUpti_ActivityEnvironment r{};
  r.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  r.deviceId = sample.device;
  r.timestamp = at;
  r.environmentKind = static_cast<CUpti_ActivityEnvironmentKind>(sample.kind);
  const auto& values = sample.values;
  switch (sample.kind) {
    case api::sample_kind::speed:
      r.data.speed = {values[0], values[1], values[2], values[3],
                      static_cast<CUpti_EnvironmentClocksThrottleReason>(values[4])};
      break;
    case api::sample_kind::temperature:
      r.data.temperature.gpuTemperature = values[0];
      break;
    case api::sample_kind::power:
      r.data.power = {values[0], values[1]};
      break;
    case api::sample_kind::cooling:
      r.data.cooling.fanSpeed = values[0];
      break;
  }
  return r;
}

CUpti_ActivityContext3 context_record(std::uint32_t number, std::uint32_t device, std::uint32_t null_stream) {
  CUpti_ActivityContext3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  r.contextId = number;
  r.deviceId = device;
  r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  r.nullStreamId = static_cast<std::uint16_t>(null_stream);
  return r;
}

}  // namespace outboard::frontend::cupti
