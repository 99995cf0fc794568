// The types of NVML as programs pass them. We declare them ourselves, because nvml.h is installed on few
// machines and its releases differ too much to depend on one. The vendor's names are in our namespace, so
// that a test can include nvml.h as well and compare. Values; no thread rules.
#pragma once

#include <cstdint>

namespace outboard::api::nvml {

using u64 = unsigned long long;  // as nvml.h: pointers to it are passed
using i64 = long long;

using nvmlDevice_t = struct device_object*;
using nvmlUnit_t = struct unit_object*;
using nvmlGpuInstance_t = struct gpu_instance_object*;
using nvmlComputeInstance_t = struct compute_instance_object*;
using nvmlEventSet_t = struct event_set_object*;
using nvmlGpmSample_t = struct gpm_sample_object*;
using nvmlSystemEventSet_t = struct system_event_set_object*;

/// nvmlReturn_t: any other value passes through.
enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_UNKNOWN = 999,
};

#define F(type, field) type field;
#define A(type, field, count) type field[count];
#define A2(type, field, rows, columns) type field[rows][columns];
#define P(type, field, count) type* field;
#define T(type, field, capacity, count) type field[capacity];
#define S(field) const char* field;
#define STRUCT(name, fields) \
  struct name {              \
    fields                   \
  };
#define VERSIONED(name, number, fields) STRUCT(name, fields)
#define UNION(name, fields) \
  union name {              \
    fields                  \
  };
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
#undef S
#undef T
#undef P
#undef A2
#undef A
#undef F

/// The value that a program writes into `version`.
template <class Struct>
constexpr unsigned version_of(unsigned number) {
  return static_cast<unsigned>(sizeof(Struct)) | number << 24;
}

/// The size of the struct according to its `version`.
constexpr unsigned size_said_by(unsigned version) { return version & 0xffffff; }

}  // namespace outboard::api::nvml
