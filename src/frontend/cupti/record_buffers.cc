#include "frontend/cupti/record_buffers.hh"

#include <cstring>
#include <utility>

namespace outboard::frontend::cupti {

bool record_buffers::put(CUpti_ActivityKind kind, const void* record) {
  const std::size_t known = size_of(version_, kind), size = room_of(version_, kind);
  const bool full = buffer_ && (size_ - used_ < size || (most_records_ != 0 && records_ == most_records_));
  if (full) flush();
  if (!open()) return false;
  if (size_ < size) return false;
  std::memcpy(buffer_ + used_, record, known);
  std::memset(buffer_ + used_ + known, 0, size - known);
  used_ += size;
  ++records_;
  return true;
}

bool record_buffers::open() {
  if (buffer_) return true;
  if (!give_) return false;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, most = 0;
  give_(&buffer, &size, &most);
  if (!buffer || reinterpret_cast<std::uintptr_t>(buffer) % ACTIVITY_RECORD_ALIGNMENT != 0) return false;
  buffer_ = buffer;
  size_ = size;
  most_records_ = most;
  used_ = records_ = 0;
  open_ = true;
  return true;
}

void record_buffers::flush() {
  open_ = false;
  std::uint8_t* const done = std::exchange(buffer_, nullptr);
  if (done && take_) take_(nullptr, 0, done, size_, used_);
}

std::size_t record_buffers::room_of(int version, CUpti_ActivityKind kind) {
  const std::size_t known = size_of(version, kind);
  if (known == 0 || version < 13) return known;
  // A program that was built with CUDA 13.5's headers must not take the next record for what its struct has
  // more.
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return known + 32;  // up to CUpti_ActivityKernel13
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return known + 16;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return known + 24;
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return known + 8;
    default:
      return known;
  }
}

// Those of 12.8, or of 13.0. A program of an earlier 12 has structs that are the beginnings of these.
std::size_t record_buffers::size_of(int version, CUpti_ActivityKind kind) {
  const bool old = version < 13;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return old ? sizeof(CUpti_ActivityKernel9) : sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_MARKER:
      return sizeof(CUpti_ActivityMarker2);
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:
      return old ? sizeof(CUpti_ActivityMarkerData) : sizeof(CUpti_ActivityMarkerData2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_MEMORY:
      return sizeof(CUpti_ActivityMemory);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return old ? sizeof(CUpti_ActivityMemoryPool2) : sizeof(CUpti_ActivityMemoryPool3);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
      return sizeof(CUpti_ActivityEnvironment);
    case CUPTI_ACTIVITY_KIND_NAME:
      return sizeof(CUpti_ActivityName);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    default:
      return 0;
  }
}

CUptiResult record_buffers::next(int version, std::uint8_t* buffer, std::size_t valid,
                                 CUpti_Activity** record) {
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  std::size_t at = 0;
  if (*record) {
    at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer);
    if (at >= valid) return CUPTI_ERROR_INVALID_PARAMETER;
    const std::size_t size = room_of(version, (*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    at += size;
  }
  if (at + sizeof(CUpti_Activity) > valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return CUPTI_SUCCESS;
}

}  // namespace outboard::frontend::cupti
