// A chain: memory of several kinds, streams, and a list of operations on them. Plain data: chance makes it,
// the model judges it, the machine runs it, and what fails is shrunk and printed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace chains {

/// What a block of memory is. `mapped` is page-locked memory whose address on the device was asked for;
/// `registered` is the program's own, page-locked later, from an odd address on or not.
enum class memory : std::uint8_t { device, pinned, mapped, registered, pageable };
inline bool is_host(memory kind) { return kind != memory::device; }
/// May a device reach it by itself, in the order of a stream?
inline bool is_locked(memory kind) { return kind != memory::device && kind != memory::pageable; }

struct block {
  memory kind = memory::device;
  int device = 0;
  std::uint64_t size = 0;
  unsigned skew = 0;  ///< bytes behind the beginning of a page
};

enum class stream_kind : std::uint8_t { legacy, per_thread, blocking, non_blocking };
struct stream {
  stream_kind kind = stream_kind::legacy;
  int device = 0;
};
constexpr int streams_of_a_device = 6, most_devices = 2, most_streams = streams_of_a_device * most_devices;
constexpr int most_events = 4;

/// Streams are numbers: the device, then legacy, per-thread, two of each other kind.
inline stream stream_of(int number) {
  constexpr stream_kind kinds[] = {stream_kind::legacy,       stream_kind::per_thread,
                                   stream_kind::blocking,     stream_kind::blocking,
                                   stream_kind::non_blocking, stream_kind::non_blocking};
  return {kinds[number % streams_of_a_device], number / streams_of_a_device};
}
inline bool is_default(int number) { return number % streams_of_a_device < 2; }

struct place {
  int block = -1;
  std::uint64_t offset = 0;
  std::uint64_t pitch = 0;  ///< of a box
  bool operator==(const place&) const = default;
};

enum class verb : std::uint8_t {
  copy,           ///< `size` bytes
  box,            ///< `size` bytes a row, `rows`, `layers`
  fill,           ///< with `value`
  kernel,         ///< to = 3 * from + value, byte by byte
  spin,           ///< `size` microseconds, about
  host_function,  ///< what a kernel does, on the host
  record,
  wait,          ///< of a stream for an event
  join_stream,   ///< the host waits
  poll_stream,   ///< the same by asking
  join_context,  ///< for all of a device
  join_event,
  write,      ///< the host writes numbers that `value` begins
  look,       ///< the host reads and compares
  batch,      ///< parts: copies
  box_batch,  ///< parts: boxes
  graph,      ///< makes one of parts, captured or built
  launch,
  change,  ///< gives a copy of an executable graph, `node`, what its only part says
  update,  ///< gives an executable graph all parts of another graph, which goes then
  drop,    ///< an executable graph and its graph go, launches of it may be under way
  count
};
constexpr std::string_view names[] = {
    "copy",  "box",         "fill",        "kernel",       "spin",       "host function", "record",
    "wait",  "join stream", "poll stream", "join context", "join event", "write",         "look",
    "batch", "box batch",   "graph",       "launch",       "change",     "update",        "drop"};
static_assert(std::size(names) == static_cast<std::size_t>(verb::count));

/// Which function copies.
enum class form : std::uint8_t {
  by_kind,  ///< cuMemcpyHtoD and its kin
  unified,  ///< cuMemcpy
  peer      ///< cuMemcpyPeer, cuMemcpy3DPeer
};

/// When a batch may read its source.
enum class order : std::uint8_t { in_stream, during_call, any };

struct operation {
  verb what = verb::spin;
  int stream = 0;
  int device = 0;  ///< the current one at the call
  place to, from;
  std::uint64_t size = 0, rows = 1, layers = 1;
  std::uint8_t value = 0;
  int event = 0;
  int graph = 0;
  int node = 0;              ///< of a graph: the number of the part
  bool synchronous = false;  ///< the function without a stream
  form how = form::by_kind;
  order access = order::in_stream;
  bool captured = false;                ///< a graph: else built node by node
  std::vector<operation> parts;         ///< of a graph, a batch, a change, an update
  std::vector<operation> beside;        ///< done in other streams while the graph is captured
  std::vector<std::vector<int>> after;  ///< for each part of a graph the parts before it
  bool operator==(const operation&) const = default;
};

struct chain {
  std::vector<block> blocks;
  std::vector<operation> operations;
};

inline bool is_copy(verb what) { return what == verb::copy || what == verb::box; }
inline bool copies_or_mixes(verb what) {
  return is_copy(what) || what == verb::kernel || what == verb::host_function;
}
/// Bytes from the first to the last that the operation touches on a side.
inline std::uint64_t extent(const operation& o, const place& side) {
  if (o.what != verb::box) return o.size;
  return (o.rows * o.layers - 1) * side.pitch + o.size;
}
/// What a box copies, without gaps.
inline std::uint64_t bytes_of(const operation& o) {
  return o.what == verb::box ? o.size * o.rows * o.layers : o.size;
}

}  // namespace chains
