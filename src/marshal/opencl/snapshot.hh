// The OpenCL platforms and devices of a back-end's host. The welcome of an OpenCL session contains them, and
// clGetPlatformInfo, clGetDeviceInfo and clGetDeviceIDs are answered from them. Values; no thread rules.
#pragma once

#include "base/result.hh"
#include "marshal/fields.hh"

namespace outboard::marshal::opencl {

struct info_value {
  std::uint32_t name = 0;
  std::vector<std::uint8_t> value;
  OUTBOARD_FIELDS(name, value)
};

struct device_facts {
  std::uint64_t handle = 0;
  std::vector<info_value> info;
  OUTBOARD_FIELDS(handle, info)
};

/// The reply to clCreateSubDevices.
struct division_reply {
  std::uint64_t count = 0;
  std::vector<device_facts> devices;  ///< empty if only their number was asked for
  OUTBOARD_FIELDS(count, devices)
};

struct platform_facts {
  std::uint64_t handle = 0;
  std::vector<info_value> info;
  std::vector<device_facts> devices;
  OUTBOARD_FIELDS(handle, info, devices)
};

struct snapshot {
  std::string host;
  std::vector<platform_facts> platforms;
  OUTBOARD_FIELDS(host, platforms)
};

std::vector<std::byte> encode(const snapshot& s);
result<snapshot> decode_snapshot(std::span<const std::byte> bytes);

/// Returns the value of this name, or nullptr.
const info_value* find(const std::vector<info_value>& info, std::uint32_t name);

}  // namespace outboard::marshal::opencl
