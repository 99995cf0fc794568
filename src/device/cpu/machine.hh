// The one cpu device of the process as its entries see it: profile, memory, scheduler, executor, contexts and
// the tables of all objects. Internal to the cpu device. `current` is set by open() before any entry can be
// called.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "device/cpu/array.hh"
#include "device/cpu/code.hh"
#include "device/cpu/context.hh"
#include "device/cpu/cpu.hh"
#include "device/cpu/graph/graph_memory.hh"
#include "device/cpu/handle_table.hh"
#include "device/cpu/memory/advice.hh"
#include "device/cpu/memory/memory.hh"
#include "device/cpu/memory/pool.hh"
#include "device/cpu/profile.hh"
#include "device/cpu/recorder.hh"
#include "device/cpu/scheduler.hh"
#include "device/cpu/texture.hh"
#include "device/cpu/texture_reference.hh"
#include "device/cpu/watchdog.hh"

namespace outboard::device::cpu {

/// The lowest is 0: the range of a GPU.
constexpr int greatest_priority = -5;

struct stream_object {
  stream_ptr queue;
  context_ptr owner;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
};

struct graph_object;
struct graph_node;
struct graph_exec;
struct user_reference;
struct stream_capture;
struct conditional_value;
class ipc_event;

struct event_object {
  context_ptr owner;
  unsigned flags = 0;
  std::mutex mutex;
  point_ptr point;                    // null until recorded
  std::shared_ptr<ipc_event> shared;  ///< interprocess: what counts instead of `point`
  bool imported = false;              ///< made by another process
  // Recorded last in a stream under capture; guarded by machine::graphs_mutex.
  std::atomic<bool> captured{false};
  std::shared_ptr<stream_capture> capture;
  std::vector<graph_node*> tails;
};

/// Bytes of device memory that graphs' own allocations hold, from the making of their nodes on.
struct graph_memory_account {
  std::atomic<std::uint64_t> used{0}, high{0};
  void add(std::uint64_t bytes) {
    const std::uint64_t now = used.fetch_add(bytes) + bytes;
    std::uint64_t before = high.load();
    while (before < now && !high.compare_exchange_weak(before, now)) {
    }
  }
};

struct machine {
  machine(const options& how, profile p, std::unique_ptr<memory> m);
  ~machine();

  const options how;
  const profile facts;
  const std::uint64_t generation;  ///< tells the machines of one process apart in thread-local state
  std::unique_ptr<memory> store;
  pool_set pools;
  advice_book advice;
  ptx::executor executor;
  watchdog kernels;
  cpu::recorder recorder;
  scheduler work;
  std::atomic<bool> initialised{false};
  std::atomic<std::uint64_t> next_id{1};

  handle_table<context, handle_type::context> contexts;
  handle_table<stream_object, handle_type::stream> streams;
  handle_table<event_object, handle_type::event> events;
  handle_table<module_object, handle_type::module> modules;
  handle_table<function_object, handle_type::function> functions;
  handle_table<library_object, handle_type::library> libraries;
  handle_table<kernel_object, handle_type::kernel> kernel_handles;
  handle_table<link_object, handle_type::link> links;
  handle_table<array_object, handle_type::array> arrays;
  handle_table<mipmapped_array_object, handle_type::mipmapped_array> mipmapped_arrays;
  texture_table textures;
  std::mutex texture_references_mutex;
  handle_table<texture_reference, handle_type::texture_reference> texture_references;

  std::recursive_mutex graphs_mutex;  ///< guards graphs, captures and what they are made of
  graph_memory_account graph_account;
  graph_memory graph_blocks;
  handle_table<graph_object, handle_type::graph> graphs;
  handle_table<graph_node, handle_type::graph_node> graph_nodes;
  handle_table<graph_exec, handle_type::graph_exec> graph_execs;
  handle_table<user_reference, handle_type::user_object> user_objects;
  std::map<std::uint64_t, std::weak_ptr<conditional_value>> conditionals;  ///< by handle
  std::vector<std::shared_ptr<stream_capture>> captures;                   ///< that have not ended
  std::atomic<int> captures_open{0};

  std::mutex primary_mutex;
  context_ptr primary;  ///< one object for the device's life; active while retained
  unsigned primary_references = 0;
  unsigned primary_flags = 0;

  context_ptr make_context(bool is_primary, unsigned flags);
  /// Waits for its work, then frees everything that belongs to it. The handle of a primary stays.
  void end_context(const context_ptr& c);
};

extern std::atomic<machine*> current;
inline machine& here() { return *current.load(std::memory_order_acquire); }

/// Each file of entries fills its own.
void fill_device_entries(api::driver_table& table);
void fill_context_entries(api::driver_table& table);
void fill_memory_entries(api::driver_table& table);
void fill_virtual_memory_entries(api::driver_table& table);
void fill_pool_entries(api::driver_table& table);
void fill_managed_entries(api::driver_table& table);
void fill_pointer_entries(api::driver_table& table);
void fill_copy_entries(api::driver_table& table);
void fill_shaped_copy_entries(api::driver_table& table);
void fill_array_entries(api::driver_table& table);
void fill_texture_entries(api::driver_table& table);
void fill_texture_reference_entries(api::driver_table& table);
void fill_tensor_map_entries(api::driver_table& table);
void fill_stream_entries(api::driver_table& table);
void fill_stream_attribute_entries(api::driver_table& table);
void fill_event_entries(api::driver_table& table);
void fill_ipc_entries(api::driver_table& table);
void fill_module_entries(api::driver_table& table);
void fill_library_entries(api::driver_table& table);
void fill_function_entries(api::driver_table& table);
void fill_link_entries(api::driver_table& table);
void fill_launch_entries(api::driver_table& table);
void fill_capture_entries(api::driver_table& table);
void fill_graph_entries(api::driver_table& table);
void fill_graph_node_entries(api::driver_table& table);
void fill_graph_exec_entries(api::driver_table& table);
void fill_user_object_entries(api::driver_table& table);
/// Last: entries that capture forbids refuse themselves while it does.
void guard_entries(api::driver_table& table);

}  // namespace outboard::device::cpu
