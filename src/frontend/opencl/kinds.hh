// What the front-end remembers of each kind of object. Owned by the handle tables; members that may change
// have their own lock or are atomic. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/copying/data_connections.hh"
#include "frontend/opencl/memory_claim.hh"
#include "frontend/opencl/objects.hh"
#include "frontend/opencl/transfer/late_memory.hh"
#include "frontend/opencl/transfer/transfer_area.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::frontend::opencl {

/// Functions of the program that run when an object dies: the last one first.
class farewells {
 public:
  void add(std::function<void()> run) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(run));
  }
  void run() {
    std::vector<std::function<void()>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(all_);
    }
    for (auto last = all.rbegin(); last != all.rend(); ++last) (*last)();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> all_;
};

struct context_info : object {
  std::vector<cl_device_id> devices;
  std::vector<needed<cl_device_id>> kept;         ///< the same: parts of devices may be released before
  std::vector<cl_context_properties> properties;  ///< as given, with the zero; empty: none were given
  farewells at_end;
  std::mutex mutex;
  std::map<cl_device_id, cl_command_queue>
      default_queues;  ///< on devices, of kernels; perhaps dead. Under mutex
  staging_blocks small{64u << 10, 256u << 10}, large{staging_blocks::largest, 8u << 20};
  data_connections to_device, to_host;  ///< of large transfers, where no memory is shared
};

struct queue_info : object {
  needed<cl_context> context;
  cl_device_id device = nullptr;
  cl_command_queue_properties bits = 0;
  cl_uint size = 0;                             ///< in bytes, of a queue on the device
  std::vector<cl_queue_properties> properties;  ///< as given to clCreateCommandQueueWithProperties
};

/// A part of a buffer or an image that the program sees.
struct mapping {
  std::byte* at = nullptr;
  marshal::opencl::place_body place;
  std::size_t size = 0;            ///< bytes that travel
  std::size_t row = 0, slice = 0;  ///< pitches of an image's part at `at`
  cl_map_flags flags = 0;
  std::unique_ptr<std::byte[]> own;  ///< null: it is other memory
  bool waited = true;                ///< for its bytes, when it was mapped
  marshal::opencl::area_place in;    ///< memory that the server has, too
};

struct memory_info : object {
  needed<cl_context> context;
  needed<cl_mem> parent;
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  cl_mem_flags flags = 0;
  std::size_t size = 0, origin = 0;
  bool shared = false;                   ///< it stands for shared virtual memory
  cl_uint packet_size = 0, packets = 0;  ///< of a pipe
  std::byte* host = nullptr;             ///< the program's memory (CL_MEM_USE_HOST_PTR)
  std::vector<cl_mem_properties> properties;
  cl_image_format format{};  ///< of an image, as what follows
  cl_image_desc shape{};
  marshal::opencl::image_reply made;
  std::size_t host_row = 0, host_slice = 0;  ///< pitches of `host`
  std::mutex mutex;
  std::vector<mapping> mappings;  ///< under mutex
  map_memory map;
  late_memory late;  ///< under mutex
  farewells at_end;
  memory_claim claim;
};

using build = std::shared_ptr<const marshal::opencl::build_reply>;

/// The size of each argument of a kernel that the device took once, and one more; 0: none yet. Any thread.
using accepted_sizes = std::vector<std::atomic<std::size_t>>;

/// What a program was made of.
enum class program_form : std::uint8_t { source, binary, il, built_in, linked };

struct program_info : object {
  needed<cl_context> context;
  std::vector<cl_device_id> devices;
  program_form form = program_form::source;
  std::string source;
  std::vector<std::byte> il;
  build loaded;                       ///< what the device reports of binaries before they are built
  std::atomic<bool> building{false};  ///< the compiler or the linker is at work
  std::mutex mutex;
  build built;                          ///< the last one; under mutex
  std::vector<cl_device_id> built_for;  ///< under mutex
  build accepted_by;                    ///< whose kernels these are of; under mutex, as they are
  std::vector<std::shared_ptr<accepted_sizes>> accepted;
  std::atomic<std::uint32_t> kernels{0};
};

struct kernel_info : object {
  needed<cl_program> program;
  needed<cl_context> context;
  build facts;
  const marshal::opencl::kernel_facts* about = nullptr;  ///< in `facts`
  std::mutex mutex;
  std::vector<std::size_t> given;  ///< the size of each argument as it was set; 0: not yet. Under mutex
  std::shared_ptr<accepted_sizes> accepted;  ///< by all kernels of this name
  ~kernel_info() override;
};

struct sampler_info : object {
  needed<cl_context> context;
  cl_bool normalised = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
  std::vector<cl_sampler_properties> properties;
};

struct event_info : object {
  needed<cl_context> context;
  needed<cl_command_queue> queue;  ///< none: a user event
  cl_command_type type = CL_COMMAND_USER;
  std::atomic<cl_int> status{CL_QUEUED};  ///< of a command: CL_COMPLETE or an error once that is known
  std::mutex mutex;
  bool times_known = false;         ///< under mutex
  std::array<cl_ulong, 5> times{};  ///< under mutex: queued, submitted, begun, ended, complete
};

}  // namespace outboard::frontend::opencl
