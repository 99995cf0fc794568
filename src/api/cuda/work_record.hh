// One kernel, copy or fill that a device has carried out, as a profiler shows it. A value.
#pragma once

#include <array>
#include <cstdint>

namespace outboard::api {

enum class work_kind : std::uint8_t { kernel = 1, copy = 2, fill = 3 };
/// Where bytes of a copy lie.
enum class memory_side : std::uint8_t {
  unknown = 0,
  pageable = 1,
  pinned = 2,
  device = 3,
  array = 4,
  managed = 5
};

struct work_record {
  static constexpr std::uint32_t no_name = ~std::uint32_t{0};

  work_kind kind = work_kind::kernel;
  memory_side from = memory_side::unknown, to = memory_side::unknown;  ///< of a copy; `to` of a fill
  std::uint32_t device = 0;                                            ///< ordinal in the worker
  std::uint32_t context = 0, stream = 0;                               ///< the recorder's own numbers
  std::uint32_t name = no_name;      ///< of a kernel, as the module has it: in the recorder's list
  std::uint64_t begin = 0, end = 0;  ///< nanoseconds on the recorder's clock
  std::uint64_t bytes = 0;           ///< of a copy or fill
  std::uint64_t graph_node = 0;      ///< 0: not part of a graph
  std::uint64_t request = 0;         ///< the ticket of the request it was done for; 0: not known
  std::uint32_t peer = 0;            ///< of a copy from another device: that device's ordinal + 1; 0: of none
  std::uint32_t value = 0;           ///< of a fill
  std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
  std::uint32_t registers = 0, static_shared = 0, dynamic_shared = 0, shared = 0;  ///< shared: as carried out
  std::uint32_t local = 0;                      ///< bytes of local memory for each thread
  std::uint64_t local_total = 0;                ///< bytes reserved for the whole kernel
  std::uint32_t graph = 0;                      ///< the recorder's own number; 0: not part of a graph
  std::uint32_t channel = 0, channel_type = 0;  ///< of the hardware, as CUPTI numbers them

  template <class Visit>
  void fields(Visit& visit) {
    visit(kind, from, to, device, context, stream, name, begin, end, bytes, graph_node, request, peer, value,
          grid, block, cluster, registers, static_shared, dynamic_shared, shared, local, local_total, graph,
          channel, channel_type);
  }
};

}  // namespace outboard::api
