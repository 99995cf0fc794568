// Which C types of the APIs are handles. Each type has one enum value. The numbers travel inside every handle
// value (wire/handle.hh), so they are append-only. Each API maps its types to them. Compile-time only.
#pragma once

#include <concepts>
#include <cstdint>

namespace outboard::api {

enum class handle_kind : std::uint8_t {
  none = 0,
  context = 1,
  module = 2,
  function = 3,
  library = 4,
  kernel = 5,
  stream = 6,
  event = 7,
  graph = 8,
  graph_node = 9,
  graph_exec = 10,
  memory_pool = 11,
  array = 12,
  mipmapped_array = 13,
  texture_reference = 14,
  surface_reference = 15,
  link_state = 16,
  user_object = 17,
  external_memory = 18,
  external_semaphore = 19,
  green_context = 20,
  graphics_resource = 21,
  resource_descriptor = 22,
  allocation = 23,  ///< CUmemGenericAllocationHandle: an integer type, so only hand-written ends translate it
  texture_object = 24,  ///< CUtexObject, likewise; the program sees the device's value
  surface_object = 25,
  // OpenCL
  cl_platform = 32,
  cl_device = 33,
  cl_context = 34,
  cl_command_queue = 35,
  cl_mem = 36,
  cl_program = 37,
  cl_kernel = 38,
  cl_event = 39,
  cl_sampler = 40,
  count
};

template <class T>
struct handle_trait {
  static constexpr handle_kind kind = handle_kind::none;
};

template <class T>
concept handle_type = handle_trait<T>::kind != handle_kind::none;

/// T is an integer that is an address on the device.
template <class T>
inline constexpr bool device_address_type = false;
/// CUdeviceptr. It is listed here because in a 32-bit client it is a type of OpenCL too.
template <>
inline constexpr bool device_address_type<unsigned long long> = true;

}  // namespace outboard::api
