// What a call does to graphs, pools of memory and other objects, as words of a table's line (describe.hh) and
// as values. A profiler in the program is told of it. Constexpr, no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace outboard::api {

/// What a call does to graphs.
enum class graph_change : std::uint8_t {
  none,
  creates,         ///< its first argument points to the graph
  clones,          ///< the same; the second is the original
  destroys,        ///< the graph that is its first argument
  adds_node,       ///< its first argument points to the node; the second is the graph
  destroys_node,   ///< its first argument
  links,           ///< the graph, nodes before, nodes behind them, [edges,] how many
  unlinks,         ///< the same
  instantiates,    ///< its first argument points to the executable graph; the second is the graph
  destroys_exec,   ///< its first argument
  captures,        ///< begins a capture of the stream that is its first argument
  captures_into,   ///< the same, into a graph that is there
  ends_capture,    ///< of its first argument; its second one points to the graph
  may_be_captured  ///< in its stream's capture it becomes a node
};

/// What a call does to a pool of memory.
enum class pool_change : std::uint8_t {
  none,
  creates,   ///< its first argument points to the pool
  imports,   ///< the same
  destroys,  ///< its first argument
  trims      ///< its first argument; the second is how many bytes stay
};

/// What a call does to other objects. Said by each version of a function that can succeed.
enum class object_change : std::uint8_t {
  none,
  starts_cuda,
  makes_stream,  ///< its first argument points to the stream
  ends_stream,   ///< its first argument
  ends_context,  ///< likewise
  ends_array,
  loads_module,    ///< its first argument points to the module
  unloads_module,  ///< its first argument
  loads_library,
  allocates,      ///< memory, whose address goes where its first argument points
  releases,       ///< the memory at its first argument
  records_event,  ///< its first argument, in the stream that is its second
  ends_event,     ///< its first argument
  times_events,   ///< that are over
  stream_waits,   ///< its first argument, for the event that is its second
  awaits_event,   ///< the caller, for its first argument
  awaits_stream,  ///< likewise
  awaits_context,
};

/// The node that a call adds to a graph.
enum class added_node : std::uint8_t {
  none,
  any,  ///< of the type that its parameters name
  kernel,
  memcpy,
  memset,
  host,
  graph,
  empty,
  event_wait,
  event_record,
  semaphores_signal,
  semaphores_wait,
  mem_alloc,
  mem_free,
  batch_mem_op
};

namespace detail {

template <class Change>
struct change_word {
  std::string_view word;
  Change change;
};

inline constexpr std::array graph_words =
    std::to_array<change_word<graph_change>>({{"creates", graph_change::creates},
                                              {"clones", graph_change::clones},
                                              {"destroys", graph_change::destroys},
                                              {"destroys_node", graph_change::destroys_node},
                                              {"links", graph_change::links},
                                              {"unlinks", graph_change::unlinks},
                                              {"instantiates", graph_change::instantiates},
                                              {"destroys_exec", graph_change::destroys_exec},
                                              {"captures", graph_change::captures},
                                              {"captures_into", graph_change::captures_into},
                                              {"ends_capture", graph_change::ends_capture},
                                              {"captured", graph_change::may_be_captured}});

inline constexpr std::array pool_words =
    std::to_array<change_word<pool_change>>({{"creates", pool_change::creates},
                                             {"imports", pool_change::imports},
                                             {"destroys", pool_change::destroys},
                                             {"trims", pool_change::trims}});

inline constexpr std::array object_words =
    std::to_array<change_word<object_change>>({{"starts cuda", object_change::starts_cuda},
                                               {"makes stream", object_change::makes_stream},
                                               {"ends stream", object_change::ends_stream},
                                               {"ends context", object_change::ends_context},
                                               {"ends array", object_change::ends_array},
                                               {"loads module", object_change::loads_module},
                                               {"unloads module", object_change::unloads_module},
                                               {"loads library", object_change::loads_library},
                                               {"allocates memory", object_change::allocates},
                                               {"releases memory", object_change::releases},
                                               {"records event", object_change::records_event},
                                               {"ends event", object_change::ends_event},
                                               {"times events", object_change::times_events},
                                               {"stream waits", object_change::stream_waits},
                                               {"awaits event", object_change::awaits_event},
                                               {"awaits stream", object_change::awaits_stream},
                                               {"awaits context", object_change::awaits_context}});

inline constexpr std::array node_words =
    std::to_array<change_word<added_node>>({{"any", added_node::any},
                                            {"kernel", added_node::kernel},
                                            {"memcpy", added_node::memcpy},
                                            {"memset", added_node::memset},
                                            {"host", added_node::host},
                                            {"graph", added_node::graph},
                                            {"empty", added_node::empty},
                                            {"event_wait", added_node::event_wait},
                                            {"event_record", added_node::event_record},
                                            {"semaphores_signal", added_node::semaphores_signal},
                                            {"semaphores_wait", added_node::semaphores_wait},
                                            {"mem_alloc", added_node::mem_alloc},
                                            {"mem_free", added_node::mem_free},
                                            {"batch_mem_op", added_node::batch_mem_op}});

/// False: `words` has no such word.
template <class Change, std::size_t N>
constexpr bool find_word(const std::array<change_word<Change>, N>& words, std::string_view word,
                         Change& out) {
  for (const change_word<Change>& known : words) {
    if (known.word == word) return out = known.change, true;
  }
  return false;
}

}  // namespace detail
}  // namespace outboard::api
