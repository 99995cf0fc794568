// The bodies of requests about tensor maps, sparse arrays, decompression, events of contexts, and the
// resources of green contexts; they follow the rules of bodies.hh. Values; no thread rules.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

inline constexpr std::size_t max_tensor_rank = 5;

/// cuTensorMapEncodeTiled, -Im2col, -Im2colWide: the arguments by name. `corners` are lower then upper (one
/// each in the wide form); `options` are interleave, swizzle, L2 promotion, fill, and the mode of the wide
/// form. cuTensorMapReplaceAddress: `map` and the address. The reply is the bytes of the map.
struct tensor_map_body {
  std::int32_t data_type = 0;
  std::uint64_t address = 0;
  std::vector<std::uint64_t> sizes{}, strides{};
  std::vector<std::uint32_t> box{}, steps{};
  std::vector<std::int32_t> corners{};
  std::uint32_t channels = 0, pixels = 0;
  std::array<std::int32_t, 5> options{};
  std::array<std::uint8_t, 128> map{};
  OUTBOARD_FIELDS(data_type, address, sizes, strides, box, steps, corners, channels, pixels, options, map)
};
OUTBOARD_MESSAGE(tensor_map_body)

struct tensor_map_reply {
  std::array<std::uint8_t, 128> map{};
  OUTBOARD_FIELDS(map)
};
OUTBOARD_MESSAGE(tensor_map_reply)

/// CUarrayMapInfo. For a level, `offset` and `extent` name its tiles; for a tail, `tail_offset` and
/// `tail_size` name its bytes. `memory` 0: none.
struct array_mapping_body {
  std::int32_t resource_type = 0;
  std::uint64_t array = 0;
  std::int32_t part = 0;  ///< CUarraySparseSubresourceType
  std::uint32_t level = 0, layer = 0;
  std::array<std::uint32_t, 3> offset{}, extent{};
  std::uint64_t tail_offset = 0, tail_size = 0;
  std::int32_t operation = 0, memory_type = 0;
  std::uint64_t memory = 0, memory_offset = 0;
  std::uint32_t devices = 0, flags = 0;
  OUTBOARD_FIELDS(resource_type, array, part, level, layer, offset, extent, tail_offset, tail_size, operation,
                  memory_type, memory, memory_offset, devices, flags)
};
inline constexpr std::size_t max_array_mappings = 4096;

/// cuMemMapArrayAsync.
struct array_mappings_body {
  std::uint64_t stream = 0;
  bool per_thread = false;
  std::vector<array_mapping_body> mappings{};
  OUTBOARD_FIELDS(stream, per_thread, mappings)
};
OUTBOARD_MESSAGE(array_mappings_body)

/// CUmemDecompressParams; `written_to`: where the device writes the size of the output.
struct decompression {
  std::uint64_t from = 0, from_size = 0, to = 0, to_size = 0, written_to = 0;
  std::int32_t algorithm = 0;
  OUTBOARD_FIELDS(from, from_size, to, to_size, written_to, algorithm)
};
inline constexpr std::size_t max_decompressions = 1 << 16;

/// cuMemBatchDecompressAsync.
struct decompression_body {
  std::uint64_t stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  std::vector<decompression> operations{};
  OUTBOARD_FIELDS(stream, flags, per_thread, operations)
};
OUTBOARD_MESSAGE(decompression_body)

/// cuCtxRecordEvent: records an event after all work of a context, or (`wait`) makes all its later work wait
/// for the event; `green`: the context is a green one.
struct context_event_body {
  std::uint64_t context = 0, event = 0;
  bool wait = false, green = false;
  OUTBOARD_FIELDS(context, event, wait, green)
};
OUTBOARD_MESSAGE(context_event_body)

/// A device resource as both sides see it: the server's number for it (the driver's struct contains more than
/// may travel), its type, and the part of the struct that the program may read. Several resources are
/// numbered from `first` on.
inline constexpr std::size_t resource_bytes = 48;

/// cuDeviceGetDevResource (`of`: ordinal), cuCtxGetDevResource, cuGreenCtxGetDevResource (`of`: handle).
struct resource_query_body {
  std::uint64_t of = 0;
  std::int32_t type = 0;
  OUTBOARD_FIELDS(of, type)
};
OUTBOARD_MESSAGE(resource_query_body)

/// Also the reply to the split: `capacity` groups, or how many there could be, and then what remains.
struct resources_reply {
  std::uint32_t count = 0;
  std::vector<std::uint64_t> numbers{};
  std::vector<std::int32_t> types{};
  std::vector<std::uint8_t> contents{};
  OUTBOARD_FIELDS(count, numbers, types, contents)
};
OUTBOARD_MESSAGE(resources_reply)

/// cuDevSmResourceSplitByCount; with `capacity` 0 it only asks how many groups there could be.
struct resource_split_body {
  std::uint64_t input = 0;
  std::uint32_t capacity = 0, flags = 0, minimum = 0;
  bool asks = false, wants_rest = false;
  OUTBOARD_FIELDS(input, capacity, flags, minimum, asks, wants_rest)
};
OUTBOARD_MESSAGE(resource_split_body)

/// cuDevResourceGenerateDesc.
struct descriptor_body {
  std::uint64_t handle = 0;
  std::vector<std::uint64_t> resources{};
  OUTBOARD_FIELDS(handle, resources)
};
OUTBOARD_MESSAGE(descriptor_body)

/// cuGreenCtxCreate; cuCtxFromGreenCtx (`source`: the green context, `owner`: the primary one to which it
/// belongs).
struct green_context_body {
  std::uint64_t handle = 0, source = 0, owner = 0;
  std::int32_t device = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(handle, source, owner, device, flags)
};
OUTBOARD_MESSAGE(green_context_body)

struct green_stream_body {
  std::uint64_t handle = 0, context = 0;
  std::uint32_t flags = 0;
  std::int32_t priority = 0;
  OUTBOARD_FIELDS(handle, context, flags, priority)
};
OUTBOARD_MESSAGE(green_stream_body)

}  // namespace outboard::marshal
