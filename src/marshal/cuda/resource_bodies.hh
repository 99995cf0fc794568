// The bodies of requests about tensor maps, sparse arrays, decompression, events of contexts, and the
// resources of green contexts: as those of bodies.hh. Values; no thread rules.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

inline constexpr std::size_t max_tensor_rank = 5;

/// cuTensorMapEncodeTiled, -Im2col, -Im2colWide: the arguments by name, `corners` lower then upper (of the
/// wide form one each); `options` interleave, swizzle, L2 promotion, fill, and the mode of the wide form.
/// cuTensorMapReplaceAddress: `map` and the address. The reply is the map's bytes.
struct tensor_map_body {
  std::int32_t data_type = 0;
  std::uint64_t address = 0;
  std::vector<std::uint64_t> sizes, strides;
  std::vector<std::uint32_t> box, steps;
  std::vector<std::int32_t> corners;
  std::uint32_t channels = 0, pixels = 0;
  std::array<std::int32_t, 5> options{};
  std::array<std::uint8_t, 128> map{};
  OUTBOARD_FIELDS(data_type, address, sizes, strides, box, steps, corners, channels, pixels, options, map)
};

struct tensor_map_reply {
  std::array<std::uint8_t, 128> map{};
  OUTBOARD_FIELDS(map)
};

/// Numbers of one CUarrayMapInfo: resource type, array, subresource type, the eight of its subresource,
/// memory operation, handle type, memory, offset, device mask, flags.
inline constexpr std::size_t array_mapping_numbers = 17;
inline constexpr std::size_t max_array_mappings = 4096;

/// cuMemMapArrayAsync: `numbers` of all mappings behind each other.
struct array_mappings_body {
  std::uint64_t stream = 0;
  bool per_thread = false;
  std::vector<std::uint64_t> numbers;
  OUTBOARD_FIELDS(stream, per_thread, numbers)
};

/// cuMemBatchDecompressAsync: of each operation source bytes, target bytes, where to write the actual ones,
/// source, target, algorithm.
inline constexpr std::size_t decompression_numbers = 6;
inline constexpr std::size_t max_decompressions = 1 << 16;
struct decompression_body {
  std::uint64_t stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  std::vector<std::uint64_t> numbers;
  OUTBOARD_FIELDS(stream, flags, per_thread, numbers)
};

/// cuCtxRecordEvent: an event of all work of a context, or (`wait`) all its later work behind the event;
/// `green`: the context is a green one.
struct context_event_body {
  std::uint64_t context = 0, event = 0;
  bool wait = false, green = false;
  OUTBOARD_FIELDS(context, event, wait, green)
};

/// A resource of a device as both sides see it: the server's number for it (the driver's struct holds more
/// than may travel), its type, and the part of the struct that is the program's to read. Numbers are `first`
/// and counted from there where there are several.
inline constexpr std::size_t resource_bytes = 48;

/// cuDeviceGetDevResource (`of`: ordinal), cuCtxGetDevResource, cuGreenCtxGetDevResource (`of`: handle).
struct resource_query_body {
  std::uint64_t of = 0;
  std::int32_t type = 0;
  OUTBOARD_FIELDS(of, type)
};

/// Also the reply of the split: `capacity` groups, or how many there could be, and what is left behind them.
struct resources_reply {
  std::uint32_t count = 0;
  std::vector<std::uint64_t> numbers;
  std::vector<std::int32_t> types;
  std::vector<std::uint8_t> contents;
  OUTBOARD_FIELDS(count, numbers, types, contents)
};

/// cuDevSmResourceSplitByCount; `capacity` 0: only asks how many groups there could be.
struct resource_split_body {
  std::uint64_t input = 0;
  std::uint32_t capacity = 0, flags = 0, minimum = 0;
  bool asks = false, wants_rest = false;
  OUTBOARD_FIELDS(input, capacity, flags, minimum, asks, wants_rest)
};

/// cuDevResourceGenerateDesc.
struct descriptor_body {
  std::uint64_t handle = 0;
  std::vector<std::uint64_t> resources;
  OUTBOARD_FIELDS(handle, resources)
};

/// cuGreenCtxCreate; cuCtxFromGreenCtx (`source`: the green context, `owner`: the primary one it belongs to).
struct green_context_body {
  std::uint64_t handle = 0, source = 0, owner = 0;
  std::int32_t device = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(handle, source, owner, device, flags)
};

struct green_stream_body {
  std::uint64_t handle = 0, context = 0;
  std::uint32_t flags = 0;
  std::int32_t priority = 0;
  OUTBOARD_FIELDS(handle, context, flags, priority)
};

}  // namespace outboard::marshal
