// The bodies of hand-written requests and replies: each message is one struct that names its fields once, and
// both ends walk them. Values; no thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "marshal/fields.hh"

namespace outboard::marshal {

/// Requests that belong to no function of the driver. Their numbers lie below those of every chapter;
/// append-only.
enum class service : std::uint32_t {
  upload = 1,          ///< post: bulk bytes of a module image, before the request that loads it
  records_export = 2,  ///< call: returns everything needed to rebuild the session elsewhere
  records_import = 3,  ///< call: rebuilds a session from exported records
  ledger = 4,          ///< call: counts the memory that the session holds, in bytes
  memory_update = 5,   ///< post: bulk: changes that the program made in host memory that kernels see
  memory_fetch = 6,    ///< call: returns the changes that kernels made in it
  graph_feed = 7,      ///< post: bytes that the next launch of an executable graph copies to the device
  share_forget = 8,    ///< call: says that no descriptor of released memory is open any more
  board_layout = 9,    ///< call: returns where the multiprocessors of the context's device lie
  data_open = 10,      ///< call: accepts further connections from the client for the current context
  data_in = 11,        ///< post: a copy to the device whose bytes came over a data connection
  data_out = 12,       ///< post: a copy to the host whose bytes go over a data connection
  image_recall = 13,   ///< call: names an image that the server may have, so that it need not be uploaded
};

/// Which entry of the driver a request means: the synchronous form or the one with a stream, and which
/// default stream it uses.
enum class flavour : std::uint8_t { sync = 0, sync_per_thread = 1, stream = 2, stream_per_thread = 3, count };
constexpr bool per_thread(flavour f) {
  return f == flavour::sync_per_thread || f == flavour::stream_per_thread;
}
constexpr bool on_stream(flavour f) { return f == flavour::stream || f == flavour::stream_per_thread; }

struct attribute_pair {
  std::int32_t result = 0, value = 0;
};

/// cuMemAlloc_v2: maps fresh memory at an address of the window or, with address 0, wherever the device
/// likes.
struct map_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};
OUTBOARD_MESSAGE(map_body)

/// cuMemFree_v2: waits for the device, then unmaps. Size 0 only waits (a small block keeps its granule).
struct unmap_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};
OUTBOARD_MESSAGE(unmap_body)

/// Copies to the device: the bytes follow the fields.
struct copy_in_body {
  std::uint64_t to = 0, stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(to, stream, how)
};
OUTBOARD_MESSAGE(copy_in_body)

/// Copies to the host: the bytes come as data frames with the request's ticket.
struct copy_out_body {
  std::uint64_t from = 0, size = 0, stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(from, size, stream, how)
};
OUTBOARD_MESSAGE(copy_out_body)

/// cuMemcpyAsync: a copy whose two ends the server has, one of them page-locked. If `done_at` is not 0, it is
/// a word in the first page of page-locked memory that both sides share, and the device writes `done` there
/// when the copy is complete.
struct copy_across_body {
  std::uint64_t to = 0, from = 0, size = 0, stream = 0;
  flavour how = flavour::sync;
  std::uint64_t done_at = 0;
  std::uint32_t done = 0;
  OUTBOARD_FIELDS(to, from, size, stream, how, done_at, done)
};
OUTBOARD_MESSAGE(copy_across_body)

/// One option of the JIT. A buffer travels as its size only; logs come back in load_reply.
inline constexpr std::size_t max_jit_options = 64;
inline constexpr std::uint64_t max_jit_log = 1 << 20;
struct jit_option {
  std::int32_t option = 0;
  std::int32_t padding = 0;
  std::uint64_t value = 0;
};

/// What the JIT wrote: the logs, and the value of every option after the call (some options are outputs).
struct jit_results {
  std::string info_log{}, error_log{};
  std::vector<std::uint64_t> values{};
  OUTBOARD_FIELDS(info_log, error_log, values)
};

/// cuModuleLoad*, cuLibraryLoad*: the image was uploaded before. `handle` is that of the new module or
/// library; the capability is the one for which the image was chosen.
struct load_body {
  std::uint64_t handle = 0, image_size = 0;
  std::uint32_t capability_major = 0, capability_minor = 0;
  bool wants_ptx = false;
  std::vector<jit_option> options{};
  OUTBOARD_FIELDS(handle, image_size, capability_major, capability_minor, wants_ptx, options)
};
OUTBOARD_MESSAGE(load_body)

struct load_reply {
  std::vector<std::uint8_t> kernels{};  ///< marshal::kernel_table; empty after an error
  jit_results jit{};
  OUTBOARD_FIELDS(kernels, jit.info_log, jit.error_log, jit.values)
};
OUTBOARD_MESSAGE(load_reply)

/// cuLibraryGetKernel, cuModuleGetFunction, cuKernelGetFunction, cuLibraryGetModule: `name` may be empty.
struct derive_body {
  std::uint64_t parent = 0, handle = 0;
  std::string name{};
  OUTBOARD_FIELDS(parent, handle, name)
};
OUTBOARD_MESSAGE(derive_body)

struct lookup_body {
  std::uint64_t parent = 0;
  std::string name{};
  OUTBOARD_FIELDS(parent, name)
};
OUTBOARD_MESSAGE(lookup_body)

struct lookup_reply {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};
OUTBOARD_MESSAGE(lookup_reply)

struct kernel_query_body {
  std::uint64_t kernel = 0;
  std::int32_t device = 0;
  OUTBOARD_FIELDS(kernel, device)
};
OUTBOARD_MESSAGE(kernel_query_body)

struct kernel_query_reply {
  std::vector<attribute_pair> attributes{};
  OUTBOARD_FIELDS(attributes)
};
OUTBOARD_MESSAGE(kernel_query_reply)

/// cuKernelGetParamInfo for all parameters at once, where the image does not contain the layout.
struct layout_reply {
  std::vector<std::uint64_t> offsets_and_sizes{};
  OUTBOARD_FIELDS(offsets_and_sizes)
};
OUTBOARD_MESSAGE(layout_reply)

struct kernel_set_body {
  std::uint64_t kernel = 0;
  std::int32_t device = 0, attribute = 0, value = 0;
  OUTBOARD_FIELDS(kernel, device, attribute, value)
};
OUTBOARD_MESSAGE(kernel_set_body)

/// cuOccupancyMaxPotentialBlockSize without a callback, and the occupancy of a block.
struct occupancy_body {
  std::uint64_t kernel = 0, shared = 0;
  std::int32_t block = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(kernel, shared, block, flags)
};
OUTBOARD_MESSAGE(occupancy_body)

struct block_size_reply {
  std::int32_t grid = 0, block = 0;
  OUTBOARD_FIELDS(grid, block)
};
OUTBOARD_MESSAGE(block_size_reply)

struct number_reply {
  std::int64_t value = 0;
  OUTBOARD_FIELDS(value)
};
OUTBOARD_MESSAGE(number_reply)

struct value_reply {
  std::uint64_t value = 0;
  OUTBOARD_FIELDS(value)
};
OUTBOARD_MESSAGE(value_reply)

struct link_create_body {
  std::uint64_t handle = 0;
  std::vector<jit_option> options{};
  OUTBOARD_FIELDS(handle, options)
};
OUTBOARD_MESSAGE(link_create_body)

/// cuLinkAddData, cuLinkAddFile: the data was uploaded before.
struct link_add_body {
  std::uint64_t state = 0, size = 0;
  std::int32_t type = 0;
  std::string name{};
  std::vector<jit_option> options{};
  OUTBOARD_FIELDS(state, size, type, name, options)
};
OUTBOARD_MESSAGE(link_add_body)

/// `options`: results of the options in this request; `state`: results of the options given when the link
/// began.
struct link_reply {
  jit_results state{}, options{};
  OUTBOARD_FIELDS(state.info_log, state.error_log, state.values, options.info_log, options.error_log,
                  options.values)
};
OUTBOARD_MESSAGE(link_reply)

/// cuLinkComplete: offset 0 links; a later offset fetches more of the image.
struct link_complete_body {
  std::uint64_t state = 0, offset = 0;
  OUTBOARD_FIELDS(state, offset)
};
OUTBOARD_MESSAGE(link_complete_body)

struct link_complete_reply {
  jit_results state{};
  std::uint64_t image_size = 0;
  std::vector<std::uint8_t> piece{};  ///< bytes from `offset` on
  OUTBOARD_FIELDS(state.info_log, state.error_log, state.values, image_size, piece)
};
OUTBOARD_MESSAGE(link_complete_reply)

struct handle_body {
  std::uint64_t handle = 0;
  OUTBOARD_FIELDS(handle)
};
OUTBOARD_MESSAGE(handle_body)

/// cuDevicePrimaryCtxRetain (first), Release (last), Reset, SetFlags; cuCtxCreate; cuDeviceGetDefaultMemPool,
/// cuDeviceSetMemPool (a pool's handle).
struct context_body {
  std::uint64_t handle = 0;
  std::int32_t device = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(handle, device, flags)
};
OUTBOARD_MESSAGE(context_body)

struct limit_body {
  std::int32_t limit = 0;
  std::uint64_t value = 0;
  OUTBOARD_FIELDS(limit, value)
};
OUTBOARD_MESSAGE(limit_body)

struct memory_info_reply {
  std::uint64_t free = 0, total = 0;
  OUTBOARD_FIELDS(free, total)
};
OUTBOARD_MESSAGE(memory_info_reply)

/// How a block of host memory that kernels see is made.
enum class host_block : std::uint8_t {
  pinned = 0,      ///< at `address` on both sides, or not at all
  registered = 1,  ///< the program's own memory: at `address` if possible
  managed = 2,     ///< the device's own memory, already mapped (a module's variable)
  shared = 3,      ///< memory of the server that the client maps (never in a request)
  count
};

/// cuMemHostGetDevicePointer_v2: makes host memory visible to kernels. `device_address` is the address that a
/// record asks for; 0: any.
struct host_map_body {
  std::uint64_t address = 0, size = 0, device_address = 0;
  host_block kind = host_block::pinned;
  OUTBOARD_FIELDS(address, size, device_address, kind)
};
OUTBOARD_MESSAGE(host_map_body)

/// cuMemHostAlloc: the server's page-locked memory, which both sides have at this address. Its descriptor
/// arrives before the reply.
struct host_share_body {
  std::uint64_t address = 0, size = 0;
  OUTBOARD_FIELDS(address, size)
};
OUTBOARD_MESSAGE(host_share_body)

/// cuMemAllocManaged; `address` is the address that a record asks for.
struct managed_body {
  std::uint64_t size = 0, address = 0;
  std::uint32_t flags = 0;
  OUTBOARD_FIELDS(size, address, flags)
};
OUTBOARD_MESSAGE(managed_body)

/// cuMemPrefetchAsync_v2; a location is a type and a number.
struct prefetch_body {
  std::uint64_t address = 0, size = 0, stream = 0;
  std::int32_t location_type = 0, location = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(address, size, stream, location_type, location, per_thread)
};
OUTBOARD_MESSAGE(prefetch_body)

/// cuMemAdvise_v2.
struct advise_body {
  std::uint64_t address = 0, size = 0;
  std::int32_t advice = 0, location_type = 0, location = 0;
  OUTBOARD_FIELDS(address, size, advice, location_type, location)
};
OUTBOARD_MESSAGE(advise_body)

/// cuStreamAttachMemAsync, always for a whole block.
struct attach_body {
  std::uint64_t address = 0, stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(address, stream, flags, per_thread)
};
OUTBOARD_MESSAGE(attach_body)

/// cuMemRangeGetAttribute; the reply is `data_size` bytes.
struct range_attribute_body {
  std::uint64_t address = 0, size = 0;
  std::int32_t attribute = 0;
  std::uint32_t data_size = 0;
  OUTBOARD_FIELDS(address, size, attribute, data_size)
};
OUTBOARD_MESSAGE(range_attribute_body)

/// memory_fetch: the address to continue at (0: the start) and the address to stop at (0: none). The reply
/// begins with the address for the next request (0: everything was seen); changes follow (memory_changes.hh).
struct fetch_body {
  std::uint64_t address = 0, offset = 0, end = 0;
  OUTBOARD_FIELDS(address, offset, end)
};
OUTBOARD_MESSAGE(fetch_body)

/// cuMemAllocAsync (`size`; `pool` 0: the device's current pool; an address that is not 0 must be the one
/// allocated), cuMemFreeAsync (`address`).
struct pool_body {
  std::uint64_t size = 0, address = 0, stream = 0, pool = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(size, address, stream, pool, per_thread)
};
OUTBOARD_MESSAGE(pool_body)

/// cuMemPoolCreate: CUmemPoolProps without its pointer.
struct pool_create_body {
  std::uint64_t handle = 0, max_size = 0;
  std::int32_t type = 0, handle_types = 0, location_type = 0, location = 0;
  std::uint16_t usage = 0;
  OUTBOARD_FIELDS(handle, max_size, type, handle_types, location_type, location, usage)
};
OUTBOARD_MESSAGE(pool_create_body)

/// cuMemPoolSetAttribute, cuMemPoolGetAttribute (`value` unused).
struct pool_attribute_body {
  std::uint64_t pool = 0;
  std::int32_t attribute = 0;
  std::uint64_t value = 0;
  OUTBOARD_FIELDS(pool, attribute, value)
};
OUTBOARD_MESSAGE(pool_attribute_body)

struct address_reply {
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(address)
};
OUTBOARD_MESSAGE(address_reply)

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
OUTBOARD_MESSAGE(allocation_body)

/// cuMemMap.
struct mapping_body {
  std::uint64_t address = 0, size = 0, offset = 0, handle = 0;
  OUTBOARD_FIELDS(address, size, offset, handle)
};
OUTBOARD_MESSAGE(mapping_body)

/// cuMemAddressReserve where the window has no room (`address` 0: anywhere), cuMemAddressFree, cuMemUnmap.
struct range_body {
  std::uint64_t address = 0, size = 0, alignment = 0;
  OUTBOARD_FIELDS(address, size, alignment)
};
OUTBOARD_MESSAGE(range_body)

/// cuMemSetAccess: groups of three: location type, location, flags.
struct access_body {
  std::uint64_t address = 0, size = 0;
  std::vector<std::int32_t> access{};
  OUTBOARD_FIELDS(address, size, access)
};
OUTBOARD_MESSAGE(access_body)
/// The mode of cuThreadExchangeStreamCaptureMode that changes nothing: the reply says whether a capture
/// forbids unsafe calls to this thread.
inline constexpr std::int32_t ask_capture = -1;

/// All capture requests; `graph` is the new handle (when the capture ends).
struct capture_body {
  std::uint64_t stream = 0, graph = 0;
  std::int32_t mode = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(stream, graph, mode, per_thread)
};
OUTBOARD_MESSAGE(capture_body)

/// cuStreamBeginCaptureToGraph (mode) and cuStreamUpdateCaptureDependencies (flags, no graph).
struct capture_nodes_body {
  std::uint64_t stream = 0, graph = 0;
  std::int32_t mode = 0;
  bool per_thread = false;
  std::vector<std::uint64_t> nodes{}, edges{};
  OUTBOARD_FIELDS(stream, graph, mode, per_thread, nodes, edges)
};
OUTBOARD_MESSAGE(capture_nodes_body)

/// cuStreamIsCapturing fills only the status.
struct capture_reply {
  std::int32_t status = 0;
  std::uint64_t id = 0, graph = 0;
  std::vector<std::uint64_t> dependencies{}, edges{};
  OUTBOARD_FIELDS(status, id, graph, dependencies, edges)
};
OUTBOARD_MESSAGE(capture_reply)

/// cuLaunchHostFunc, cuStreamAddCallback: `id` stands for the function and its data, both of which stay with
/// the client.
struct host_function_body {
  std::uint64_t stream = 0, id = 0;
  bool per_thread = false, callback = false;
  OUTBOARD_FIELDS(stream, id, per_thread, callback)
};
OUTBOARD_MESSAGE(host_function_body)

/// What a callback frame asks the client to do.
enum class errand : std::uint8_t {
  run = 1,     ///< run the function `id` with `status`; the client answers with callback_done
  forget = 2,  ///< drop `id`, which will not be needed again
  keep = 3,    ///< keep `id`: it is in a graph and will come with the graph's launches
  count
};

/// A callback frame. `last` says that the request or launch which it belongs to sends no more frames; a
/// function that has run for the last time is dropped.
struct callback_body {
  errand what = errand::run;
  std::uint64_t id = 0;
  std::int32_t status = 0;
  bool last = false;
  std::vector<std::uint64_t> wanted{};  ///< host boxes whose bytes the client's answer must contain
  OUTBOARD_FIELDS(what, id, status, last, wanted)
};

/// One request of a session's records. The worker that takes the session over replays the records in ticket
/// order.
struct record_body {
  std::uint64_t ticket = 0, context = 0;
  std::uint32_t opcode = 0;
  std::vector<std::uint8_t> payload{};
  std::vector<std::uint8_t> image{};  ///< bytes that were uploaded before a load
  OUTBOARD_FIELDS(ticket, context, opcode, payload, image)
};

/// records_export: returns part of the records, because all of them may be larger than a frame.
struct export_body {
  std::uint64_t offset = 0;
  OUTBOARD_FIELDS(offset)
};
OUTBOARD_MESSAGE(export_body)

struct export_reply {
  std::uint64_t total = 0;
  std::vector<std::uint8_t> part{};
  OUTBOARD_FIELDS(total, part)
};
OUTBOARD_MESSAGE(export_reply)

/// records_import: the records were uploaded before. The reply contains the number of records that were
/// replayed.
struct import_body {
  std::uint64_t size = 0;
  OUTBOARD_FIELDS(size)
};
OUTBOARD_MESSAGE(import_body)

/// What the worker counts for the session: device memory by the call that allocated it; page-locked memory of
/// the server, the program's and that of copies; and a lower bound of what CUDA arrays hold.
struct ledger_reply {
  std::uint64_t mapped = 0, pooled = 0, virtual_memory = 0, managed = 0;
  std::uint64_t pinned = 0, staged = 0, arrays = 0;
  std::uint64_t device() const { return mapped + pooled + virtual_memory + managed + arrays; }
  OUTBOARD_FIELDS(mapped, pooled, virtual_memory, managed, pinned, staged, arrays)
};
OUTBOARD_MESSAGE(ledger_reply)

/// Two bytes for each pair of multiprocessors, as the driver's export table 1734dc26 returns them to
/// libraries: the pair's cluster, and its number in the cluster (observed on an H200).
struct board_layout_reply {
  std::vector<std::uint8_t> clusters{}, numbers{};
  OUTBOARD_FIELDS(clusters, numbers)
};
OUTBOARD_MESSAGE(board_layout_reply)

}  // namespace outboard::marshal
