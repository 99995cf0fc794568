// The bodies of hand-written requests and replies: one struct a message, its fields named once and walked by
// both ends. Values; no thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "marshal/fields.hh"

namespace outboard::marshal {

/// Requests that are no function of the driver.
enum class service : std::uint32_t {
#define SERVICE(name, number, request, reply) name = number,
#include "marshal/cuda/services.def"
#undef SERVICE
};

/// Which entry of the driver a request means: the synchronous or the stream form, and whose default stream.
enum class flavour : std::uint8_t { sync = 0, sync_per_thread = 1, stream = 2, stream_per_thread = 3, count };
constexpr bool per_thread(flavour f) {
  return f == flavour::sync_per_thread || f == flavour::stream_per_thread;
}
constexpr bool on_stream(flavour f) { return f == flavour::stream || f == flavour::stream_per_thread; }

struct attribute_pair {
  std::int32_t result = 0, value = 0;
};

/// cuMemAlloc_v2: map fresh memory at an address of the window, or (address 0) wherever the device likes.
struct map_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

/// cuMemFree_v2: wait for the device, then unmap; size 0 only waits (a small block keeps its granule).
struct unmap_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

/// Copies to the device: the bytes follow.
struct copy_in_body {
  std::uint64_t to = 0, stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(to, stream, how)
};

/// Copies to the host: the bytes come as data frames with the request's ticket.
struct copy_out_body {
  std::uint64_t from = 0, size = 0, stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(from, size, stream, how)
};

/// cuMemcpyAsync: a copy of which the server has both ends, one of them page-locked. `done_at` not 0: a word
/// in the first page of page-locked memory that both sides share; the device writes `done` there when the
/// copy is complete.
struct copy_across_body {
  std::uint64_t to = 0, from = 0, size = 0, stream = 0;
  flavour how = flavour::sync;
  std::uint64_t done_at = 0;
  std::uint32_t done = 0;
  OUTBOARD_FIELDS(to, from, size, stream, how, done_at, done)
};

/// One option of the JIT; buffers travel as their size, logs come back in load_reply.
inline constexpr std::size_t max_jit_options = 64;
inline constexpr std::uint64_t max_jit_log = 1 << 20;
struct jit_option {
  std::int32_t option = 0;
  std::int32_t padding = 0;
  std::uint64_t value = 0;
};

/// What the JIT wrote: logs, and every option's value as it stands after the call (some are outputs).
struct jit_results {
  std::string info_log, error_log;
  std::vector<std::uint64_t> values;
  OUTBOARD_FIELDS(info_log, error_log, values)
};

/// cuModuleLoad*, cuLibraryLoad*: the image was uploaded before. `handle` is the new module's or library's;
/// the capability is the one the image was chosen for.
struct load_body {
  std::uint64_t handle = 0, image_size = 0;
  std::uint32_t capability_major = 0, capability_minor = 0;
  bool wants_ptx = false;
  std::vector<jit_option> options;
  OUTBOARD_FIELDS(handle, image_size, capability_major, capability_minor, wants_ptx, options)
};

struct load_reply {
  std::vector<std::uint8_t> kernels;  ///< marshal::kernel_table; empty after an error
  jit_results jit;
  OUTBOARD_FIELDS(kernels, jit.info_log, jit.error_log, jit.values)
};

/// cuLibraryGetKernel, cuModuleGetFunction, cuKernelGetFunction, cuLibraryGetModule: `name` may be empty.
struct derive_body {
  std::uint64_t parent = 0, handle = 0;
  std::string name;
  OUTBOARD_FIELDS(parent, handle, name)
};

struct lookup_body {
  std::uint64_t parent = 0;
  std::string name;
  OUTBOARD_FIELDS(parent, name)
};

struct lookup_reply {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

struct kernel_query_body {
  std::uint64_t kernel = 0;
  std::int32_t device = 0;
  OUTBOARD_FIELDS(kernel, device)
};

struct kernel_query_reply {
  std::vector<attribute_pair> attributes;
  OUTBOARD_FIELDS(attributes)
};

/// cuKernelGetParamInfo for all parameters at once, where the image did not tell.
struct layout_reply {
  std::vector<std::uint64_t> offsets_and_sizes;
  OUTBOARD_FIELDS(offsets_and_sizes)
};

struct kernel_set_body {
  std::uint64_t kernel = 0;
  std::int32_t device = 0, attribute = 0, value = 0;
  OUTBOARD_FIELDS(kernel, device, attribute, value)
};

/// Far above what any device takes (32,764 since Volta), far below a frame.
inline constexpr std::uint64_t max_parameter_bytes = 64 << 10;
inline constexpr std::size_t max_launch_attributes = 64;

/// A CUlaunchAttribute.
struct launch_attribute {
  std::uint32_t id = 0, padding = 0;
  std::array<std::uint8_t, 64> value{};
};

/// What a launch begins with.
struct launch_head {
  std::uint64_t kernel = 0, stream = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  bool per_thread = false, cooperative = false, extended = false;
  OUTBOARD_FIELDS(kernel, stream, grid, block, shared, per_thread, cooperative, extended)
};

/// A launch, whose parameters are packed as the kernel reads them. Neither end makes one: what stands behind
/// the head goes from and to other places, and takes no memory.
struct launch_body : launch_head {
  std::vector<launch_attribute> attributes;
  std::vector<std::uint8_t> parameters;
  template <class Visit>
  void fields(Visit& visit) {
    launch_head::fields(visit);
    visit(attributes, parameters);
  }
};

struct cluster_query_body {
  std::uint64_t kernel = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  std::vector<launch_attribute> attributes;
  OUTBOARD_FIELDS(kernel, grid, block, shared, attributes)
};

/// cuOccupancyMaxPotentialBlockSize without a callback, and the block occupancy.
struct occupancy_body {
  std::uint64_t kernel = 0, shared = 0;
  std::int32_t block = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(kernel, shared, block, flags)
};

struct block_size_reply {
  std::int32_t grid = 0, block = 0;
  OUTBOARD_FIELDS(grid, block)
};

struct number_reply {
  std::int64_t value = 0;
  OUTBOARD_FIELDS(value)
};

struct link_create_body {
  std::uint64_t handle = 0;
  std::vector<jit_option> options;
  OUTBOARD_FIELDS(handle, options)
};

/// cuLinkAddData, cuLinkAddFile: the data were uploaded before.
struct link_add_body {
  std::uint64_t state = 0, size = 0;
  std::int32_t type = 0;
  std::string name;
  std::vector<jit_option> options;
  OUTBOARD_FIELDS(state, size, type, name, options)
};

/// `options`: results of the options given with this request; `state`: of those given when the link began.
struct link_reply {
  jit_results state, options;
  OUTBOARD_FIELDS(state.info_log, state.error_log, state.values, options.info_log, options.error_log,
                  options.values)
};

/// cuLinkComplete: with offset 0 links, later fetches more of the image.
struct link_complete_body {
  std::uint64_t state = 0, offset = 0;
  OUTBOARD_FIELDS(state, offset)
};

struct link_complete_reply {
  jit_results state;
  std::uint64_t image_size = 0;
  std::vector<std::uint8_t> piece;  ///< at `offset`
  OUTBOARD_FIELDS(state.info_log, state.error_log, state.values, image_size, piece)
};

struct handle_body {
  std::uint64_t handle = 0;
  OUTBOARD_FIELDS(handle)
};

/// cuDevicePrimaryCtxRetain (first), Release (last), Reset, SetFlags; cuCtxCreate; cuDeviceGetDefaultMemPool,
/// cuDeviceSetMemPool (a pool's handle).
struct context_body {
  std::uint64_t handle = 0;
  std::int32_t device = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(handle, device, flags)
};

struct limit_body {
  std::int32_t limit = 0;
  std::uint64_t value = 0;
  OUTBOARD_FIELDS(limit, value)
};

struct memory_info_reply {
  std::uint64_t free = 0, total = 0;
  OUTBOARD_FIELDS(free, total)
};

/// What a block of host memory that kernels see is made of.
enum class host_block : std::uint8_t {
  pinned = 0,      ///< at `address` on both sides, or not at all
  registered = 1,  ///< the program's own memory: at `address` if possible
  managed = 2,     ///< the device's, already there (a module's variable)
  shared = 3,      ///< the server's, and mapped by the client (never in a request)
  count
};

/// cuMemHostGetDevicePointer_v2: makes host memory visible to kernels; `device_address` is a record's wish,
/// 0: any.
struct host_map_body {
  std::uint64_t address = 0, size = 0, device_address = 0;
  host_block kind = host_block::pinned;
  OUTBOARD_FIELDS(address, size, device_address, kind)
};

/// cuMemHostAlloc: page-locked memory of the server's that both sides have at this address; a descriptor of
/// it comes before the reply.
struct host_share_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};

/// cuMemAllocManaged; `address` is a record's wish.
struct managed_body {
  std::uint64_t size = 0, address = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(size, address, flags)
};

/// cuMemPrefetchAsync_v2: a location is its type and number.
struct prefetch_body {
  std::uint64_t address = 0, size = 0, stream = 0;
  std::int32_t location_type = 0, location = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(address, size, stream, location_type, location, per_thread)
};

/// cuMemAdvise_v2.
struct advise_body {
  std::uint64_t address = 0, size = 0;
  std::int32_t advice = 0, location_type = 0, location = 0;
  OUTBOARD_FIELDS(address, size, advice, location_type, location)
};

/// cuStreamAttachMemAsync, of a whole block.
struct attach_body {
  std::uint64_t address = 0, stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(address, stream, flags, per_thread)
};

/// cuMemRangeGetAttribute; the reply is `data_size` bytes.
struct range_attribute_body {
  std::uint64_t address = 0, size = 0;
  std::int32_t attribute = 0;
  std::uint32_t data_size = 0;
  OUTBOARD_FIELDS(address, size, attribute, data_size)
};

/// memory_fetch: where to go on, 0: from the start; and the address at which to end, 0: none. The reply
/// begins with the next one's (0: all was seen), then changes (memory_changes.hh).
struct fetch_body {
  std::uint64_t address = 0, offset = 0, end = 0;
  OUTBOARD_FIELDS(address, offset, end)
};

/// What may follow it to the end of the request: only these ranges are looked at, in order and apart from
/// each other; without any, all.
struct address_range {
  std::uint64_t begin = 0, end = 0;
  OUTBOARD_FIELDS(begin, end)
};
inline constexpr std::size_t max_ranges = 4096;

/// False: more than is allowed, or not in order.
inline bool take_ranges(wire::reader& from, std::vector<address_range>& ranges) {
  std::uint64_t last = 0;
  while (from.ok() && !from.rest().empty()) {
    ranges.push_back(take_body<address_range>(from));
    if (ranges.size() > max_ranges || ranges.back().begin < last || ranges.back().end <= ranges.back().begin)
      return false;
    last = ranges.back().end;
  }
  return from.ok();
}

/// What memory_fetch, memory_fetch_live and memory_watch ask. The last begins with the number of places and
/// the places, any ranges; only if something has changed in one of them, or there are none, it is answered as
/// a memory_fetch of what follows, and else with an empty one. Copies that were complete before a change come
/// before it.
struct memory_question {
  fetch_body at;
  std::vector<address_range> places, only;
  bool watch = false;
  bool live = false;  ///< work goes on (late_words)

  static constexpr std::uint32_t most_places = 256;
};

/// False: malformed.
inline bool take_question(wire::reader& from, service asked, memory_question& q) {
  q.watch = asked == service::memory_watch;
  q.live = asked != service::memory_fetch;
  if (q.watch) {
    const auto places = from.get<std::uint32_t>();
    if (places > memory_question::most_places) return false;
    for (std::uint32_t i = 0; i < places && from.ok(); ++i)
      q.places.push_back(take_body<address_range>(from));
  }
  q.at = take_body<fetch_body>(from);
  return take_ranges(from, q.only);
}

/// cuMemAllocAsync (size; `pool` 0: the device's current one; an address is one that must be given),
/// cuMemFreeAsync (address).
struct pool_body {
  std::uint64_t size = 0, address = 0, stream = 0, pool = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(size, address, stream, pool, per_thread)
};

/// cuMemPoolCreate: CUmemPoolProps without its pointer.
struct pool_create_body {
  std::uint64_t handle = 0, max_size = 0;
  std::int32_t type = 0, handle_types = 0, location_type = 0, location = 0;
  std::uint16_t usage = 0;
  OUTBOARD_FIELDS(handle, max_size, type, handle_types, location_type, location, usage)
};

/// cuMemPoolSetAttribute, cuMemPoolGetAttribute (`value` unused).
struct pool_attribute_body {
  std::uint64_t pool = 0;
  std::int32_t attribute = 0;
  std::uint64_t value = 0;
  OUTBOARD_FIELDS(pool, attribute, value)
};

struct address_reply {
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(address)
};

/// cuMemCreate (handle, size), cuMemGetAllocationGranularity (`option`): CUmemAllocationProp without its
/// pointer.
struct allocation_body {
  std::uint64_t handle = 0, size = 0;
  std::int32_t type = 0, handle_types = 0, location_type = 0, location = 0;
  std::uint8_t compression = 0, rdma_capable = 0;
  std::uint16_t usage = 0;
  std::int32_t option = 0;
  OUTBOARD_FIELDS(handle, size, type, handle_types, location_type, location, compression, rdma_capable, usage,
                  option)
};

/// cuMemMap.
struct mapping_body {
  std::uint64_t address = 0, size = 0, offset = 0, handle = 0;
  OUTBOARD_FIELDS(address, size, offset, handle)
};

/// cuMemAddressReserve where the window has no room (`address` 0: anywhere), cuMemAddressFree, cuMemUnmap.
struct range_body {
  std::uint64_t address = 0, size = 0, alignment = 0;
  OUTBOARD_FIELDS(address, size, alignment)
};

/// cuMemSetAccess: {location type, location, flags} by threes.
struct access_body {
  std::uint64_t address = 0, size = 0;
  std::vector<std::int32_t> access;
  OUTBOARD_FIELDS(address, size, access)
};

/// cuMemGetAccess; the reply is a number_reply.
struct access_question_body {
  std::int32_t location_type = 0, location = 0;
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(location_type, location, address)
};
/// The mode in cuThreadExchangeStreamCaptureMode that changes nothing: the answer says whether a capture
/// forbids the thread what is unsafe.
inline constexpr std::int32_t ask_capture = -1;

/// All capture requests; `graph` is the new handle (end).
struct capture_body {
  std::uint64_t stream = 0, graph = 0;
  std::int32_t mode = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(stream, graph, mode, per_thread)
};

/// cuStreamBeginCaptureToGraph (mode) and cuStreamUpdateCaptureDependencies (flags, no graph).
struct capture_nodes_body {
  std::uint64_t stream = 0, graph = 0;
  std::int32_t mode = 0;
  bool per_thread = false;
  std::vector<std::uint64_t> nodes, edges;
  OUTBOARD_FIELDS(stream, graph, mode, per_thread, nodes, edges)
};

/// cuStreamIsCapturing fills the status alone.
struct capture_reply {
  std::int32_t status = 0;
  std::uint64_t id = 0, graph = 0;
  std::vector<std::uint64_t> dependencies, edges;
  OUTBOARD_FIELDS(status, id, graph, dependencies, edges)
};

/// cuLaunchHostFunc, cuStreamAddCallback: `id` stands for the function and its data, which stay with the
/// client.
struct host_function_body {
  std::uint64_t stream = 0, id = 0;
  bool per_thread = false, callback = false;
  OUTBOARD_FIELDS(stream, id, per_thread, callback)
};

/// What a callback frame asks of the client.
enum class errand : std::uint8_t {
  run = 1,     ///< the function `id`, with `status`; answered by callback_done
  forget = 2,  ///< `id` will not be asked for again
  keep = 3,    ///< nothing to do now: `id` is in a graph and comes with its launches
  count
};

/// A callback frame. `last`: nothing more comes of the request or launch that this belongs to; a function
/// that ran for the last time is forgotten.
struct callback_body {
  errand what = errand::run;
  std::uint64_t id = 0;
  std::int32_t status = 0;
  bool last = false;
  std::vector<std::uint64_t> wanted;  ///< host boxes whose bytes the answer brings
  OUTBOARD_FIELDS(what, id, status, last, wanted)
};

/// One request of a session's records: replayed in ticket order by the worker that takes the session over.
struct record_body {
  std::uint64_t ticket = 0, context = 0;
  std::uint32_t opcode = 0;
  std::vector<std::uint8_t> payload;
  std::vector<std::uint8_t> image;  ///< what was uploaded before a load
  OUTBOARD_FIELDS(ticket, context, opcode, payload, image)
};

/// records_export: a part of the records, because they may be larger than a frame.
struct export_body {
  std::uint64_t offset = 0;
  OUTBOARD_FIELDS(offset)
};

struct export_reply {
  std::uint64_t total = 0;
  std::vector<std::uint8_t> part;
  OUTBOARD_FIELDS(total, part)
};

/// records_import: the records were uploaded before. The reply says how many were replayed.
struct import_body {
  std::uint64_t size = 0;
  OUTBOARD_FIELDS(size)
};

/// What the worker counts for the session: device memory by the calls that made it, then page-locked memory
/// of the server: the program's, and what copies pass through; what CUDA arrays hold at least.
struct ledger_reply {
  std::uint64_t mapped = 0, pooled = 0, virtual_memory = 0, managed = 0;
  std::uint64_t pinned = 0, staged = 0, arrays = 0;
  std::uint64_t device() const { return mapped + pooled + virtual_memory + managed + arrays; }
  OUTBOARD_FIELDS(mapped, pooled, virtual_memory, managed, pinned, staged, arrays)
};

/// Two bytes for each pair of multiprocessors, as the driver's export table 1734dc26 gives them to libraries:
/// the cluster it belongs to, and its number there (as read off an H200).
struct board_layout_reply {
  std::vector<std::uint8_t> clusters, numbers;
  OUTBOARD_FIELDS(clusters, numbers)
};

}  // namespace outboard::marshal
