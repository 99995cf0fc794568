// What the front-end remembers of each kind of object, beyond its context. Owned by the handle tables.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "api/cuda/headers.hh"
#include "base/fd.hh"
#include "frontend/activity.hh"
#include "frontend/cuda/code/jit_options.hh"
#include "frontend/cuda/code/local_code.hh"
#include "frontend/handle_table.hh"
#include "marshal/cuda/kernel_table.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {

struct stream_info final : object {
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  idle_mark idle;
  std::uint64_t green = 0;  ///< the green context that it was made in
};

struct event_info final : object {
  unsigned flags = 0;
  idle_mark idle;
  bool imported = false;              ///< another process's
  std::atomic<bool> captured{false};  ///< last recorded while a capture was open: it may be a part of one
};

/// A green context; the context that is made of it is made once.
struct green_info final : object {
  std::int32_t device = 0;
  std::uint64_t id = 0;
  std::mutex mutex;                  // guards what follows
  std::uint64_t context_handle = 0;  ///< cuCtxFromGreenCtx; 0: not yet
};

/// A memory pool; the handle of a device's default one is ours too, so that records can name it.
struct pool_info final : object {
  std::int32_t device = 0;
  bool exportable = false;  ///< made to be shared by descriptor
  bool imported = false;    ///< another process's, by this token
  marshal::share_token token{};
};

/// Physical memory (cuMemCreate); gone when neither handles nor mappings are left.
struct allocation_info final : object {
  std::uint64_t size = 0;
  CUmemAllocationProp properties{};
  std::atomic<int> handles{1};  ///< the program's
  std::atomic<int> uses{1};     ///< handles and mappings: the end of the last one releases the memory
  bool multicast = false;       ///< a multicast object (cuMulticastCreate)
  unique_fd pages;              ///< the host's: a sealed file, which the server has, too
};

struct global_address {
  std::uint64_t address = 0, size = 0;
};

/// A module or a library: what the server said of its contents, and the handles already given out for them.
/// Handles and addresses differ by context, so those of a library are kept by context.
struct module_info final : object {
  using handles_by_name = std::map<std::string, std::uint64_t, std::less<>>;
  bool is_library = false;
  std::uint64_t library = 0;        ///< of a module that is a library's (cuLibraryGetModule)
  CUresult failure = CUDA_SUCCESS;  ///< of a library that does not load: its first use says so
  std::shared_ptr<const marshal::kernel_table> contents;
  std::shared_ptr<local_code> local;   ///< what the image itself says; nullptr: there is none
  std::mutex mutex;                    // guards what follows
  handles_by_name kernels;             ///< CUkernel or CUfunction
  handles_by_name textures, surfaces;  ///< CUtexref, CUsurfref
  std::map<std::uint64_t, std::map<std::string, global_address, std::less<>>> globals;  ///< by context
  std::map<std::uint64_t, std::uint64_t> modules;  ///< a library's, by context
};

/// The last launch shapes that the driver accepted although they looked doubtful (clusters, unknown
/// registers): they need not wait again. A shape has a few places, so that a library that takes turns between
/// shapes keeps them all; where they are full, one is lost. Any thread.
class shape_memory {
 public:
  bool holds(std::uint64_t shape) const {
    for (std::size_t i = 0; i < places; ++i) {
      if (slot(shape, i).load(std::memory_order_relaxed) == shape) return true;
    }
    return false;
  }
  void keep(std::uint64_t shape) {
    for (std::size_t i = 0; i < places; ++i) {
      std::uint64_t empty = 0;
      if (slot(shape, i).compare_exchange_strong(empty, shape, std::memory_order_relaxed)) return;
    }
    slot(shape, shape / slots_.size() % places).store(shape, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t places = 8;
  const std::atomic<std::uint64_t>& slot(std::uint64_t shape, std::size_t i) const {
    return slots_[(shape + i) % slots_.size()];
  }
  std::atomic<std::uint64_t>& slot(std::uint64_t shape, std::size_t i) {
    return slots_[(shape + i) % slots_.size()];
  }
  std::array<std::atomic<std::uint64_t>, 32> slots_{};
};

/// What the launches of CUDA 3 (cuLaunchGrid) gather in a kernel before they launch it.
struct gathered_launch {
  std::array<int, 3> block{1, 1, 1};
  unsigned shared = 0, bytes = 0;
  std::vector<std::byte> parameters;
};

/// A CUkernel or a CUfunction.
struct kernel_object final : object {
  std::string name;
  std::uint64_t parent = 0;                               ///< library or module
  std::uint64_t kernel = 0;                               ///< of a CUfunction made from a CUkernel
  std::shared_ptr<const marshal::kernel_table> contents;  ///< what `facts` lies in
  const marshal::kernel_info* facts = nullptr;            ///< nullptr: the server's reader did not find it
  std::shared_ptr<local_code> local;                      ///< of the module or library
  std::vector<marshal::kernel_parameter> parameters;      ///< valid once layout_known
  std::uint32_t parameter_bytes = 0;
  std::atomic<bool> layout_known{false};
  std::atomic<bool> launched{false};  ///< the first launch waits for load and JIT errors
  shape_memory accepted;
  std::atomic<std::uint32_t> dynamic_shared_limit{48 << 10};
  std::mutex mutex;                                                // guards what follows
  std::map<std::uint64_t, std::uint64_t> functions;                ///< cuKernelGetFunction, by context
  std::map<int, std::vector<marshal::attribute_pair>> attributes;  ///< by device, once asked
  using occupancy_question =
      std::tuple<int, int, std::size_t, unsigned>;  ///< device, block, shared bytes, flags
  std::map<occupancy_question, int> occupancies;
  std::map<std::pair<int, int>, int> set_values;  ///< {device, attribute}: what the program has set
  std::set<std::tuple<int, int, int>> taken;      ///< {device, attribute, value} that the driver took once
  gathered_launch gathered;
};

/// An array, as its descriptor says; a level of a mipmapped array and a plane of an array belong to another.
struct array_info final : object {
  CUDA_ARRAY3D_DESCRIPTOR about{};
  std::uint64_t parent = 0;
  std::mutex mutex;                          // guards what follows
  std::map<unsigned, std::uint64_t> planes;  ///< arrays already given out
};

struct mipmapped_array_info final : object {
  CUDA_ARRAY3D_DESCRIPTOR about{};
  unsigned levels = 0;
  std::mutex mutex;                                // guards what follows
  std::map<unsigned, std::uint64_t> level_arrays;  ///< already given out
};

/// A texture or surface object: what it was made of, by the program's own handles.
struct texture_info final : object {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
};

/// A linker at work: where the program wants its logs, and the finished image.
struct link_info final : object {
  jit_options options;
  link_inputs inputs;
  std::vector<std::byte> image;
};

}  // namespace outboard::frontend::cuda
