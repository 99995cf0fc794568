// One record of CUPTI's, made from what we know. Structs of CUDA 13; those of earlier versions end earlier.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <cstdint>
#include <string_view>

#include "api/cuda/board_sample.hh"
#include "api/cuda/work_record.hh"
#include "frontend/annotations.hh"
#include "frontend/cupti/graph_traces.hh"
#include "frontend/memory/address_table.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend::cupti {

/// What a record of the device's work shows of the program: begin and end on its clock.
struct shown_work {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t call = 0;  ///< its correlation
  std::uint32_t context = 0, stream = 0;
  bool async = false;
  const char* name = "";  ///< of a kernel
};

CUpti_ActivityKernel10 kernel_record(CUpti_ActivityKind kind, const api::work_record& w,
                                     const shown_work& shown);
CUpti_ActivityMemcpy6 copy_record(const api::work_record& w, const shown_work& shown);
CUpti_ActivityMemcpyPtoP4 peer_copy_record(const api::work_record& w, const shown_work& shown);
CUpti_ActivityMemset4 fill_record(const api::work_record& w, const shown_work& shown);

/// `device` must outlive all readers of the record: its name is not copied. What the driver does not know is
/// 0.
CUpti_ActivityDevice5 device_record(const marshal::device_facts& device, std::uint32_t number);
/// The thread to which it belongs, if it was made in the program.
struct shown_thread {
  std::uint32_t process = 0, thread = 0;
};
/// `flags`: CUPTI_ACTIVITY_FLAG_MARKER_*. `name`: nullptr at an end. The domain's name is not copied: a
/// domain lasts as long as the process.
CUpti_ActivityMarker2 marker_record(std::uint32_t flags, std::uint32_t id, std::uint64_t at,
                                    const shown_thread& where, const annotation_domain& domain,
                                    const char* name);
CUpti_ActivityMarkerData2 marker_data_record(std::uint32_t id, const annotation& about);
/// How long a flush by this thread took, until its records go to the program.
CUpti_ActivityOverhead3 flush_record(const shown_thread& where, std::uint64_t begin, std::uint64_t end);
CUpti_ActivityName name_record(CUpti_ActivityObjectKind kind, const CUpti_ActivityObjectKindId& id,
                               const char* name);

/// Memory that a call has allocated or released.
struct shown_memory {
  bool release = false, async = false;
  memory_block block;
  std::uint64_t at = 0;  ///< the call's begin
  std::uint32_t call = 0, process = 0, context = 0, stream = 0;
};
/// The counter of the program's is 0, and so are a pool's sizes.
CUpti_ActivityMemory4 memory_record(const shown_memory& m);

/// From its allocation to its release; `end` 0: it was not released.
CUpti_ActivityMemory memory_life_record(const shown_memory& m, std::uint64_t begin, std::uint64_t end);

/// A pool that a call has made, destroyed or trimmed.
struct shown_pool {
  CUpti_ActivityMemoryPoolOperationType operation = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID;
  bool imported = false;
  std::int32_t device = 0;
  std::uint64_t handle = 0, kept = 0;  ///< kept: how much it was trimmed to
  std::uint64_t at = 0;                ///< the call's begin
  std::uint32_t call = 0, process = 0;
};
/// Its sizes are 0, its address is its handle.
CUpti_ActivityMemoryPool3 pool_record(const shown_pool& p);

/// An event that a call has recorded, by CUPTI's numbers.
struct shown_event {
  std::uint32_t call = 0, context = 0, stream = 0, event = 0, device = 0;
};
CUpti_ActivityCudaEvent2 event_record(const shown_event& e);

/// `begin`, `end`: on the program's clock.
CUpti_ActivityGraphTrace2 graph_record(const graph_trace& t, std::uint64_t begin, std::uint64_t end);

/// `at`: on the program's clock.
CUpti_ActivityEnvironment environment_record(const api::board_sample& sample, std::uint64_t at);

CUpti_ActivityContext3 context_record(std::uint32_t number, std::uint32_t device, std::uint32_t null_stream);

}  // namespace outboard::frontend::cupti
