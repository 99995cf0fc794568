// Runs chains through the CUDA driver API: an ordinary program of it.
#pragma once

#include <cuda.h>

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "model.hh"

namespace chains {

/// Bytes and operations of each kind, over all chains.
struct counts {
  std::uint64_t chains = 0, bytes = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(verb::count)> operations{};
  void add(const operation& o);
};

class machine {
 public:
  /// Ends the program where there are not so many devices.
  explicit machine(int devices);

  /// What differed from the model, or which call failed; nothing: all was as it must be. `all` grows.
  std::optional<std::string> run(const chain& c, counts* all = nullptr);

 private:
  struct device {
    CUcontext context = nullptr;
    CUfunction mix = nullptr, spin = nullptr;
    std::array<CUstream, streams_of_a_device> streams{};
    std::array<CUevent, most_events> events{};
    CUdeviceptr scratch = 0;
  };
  /// A block as CUDA knows it.
  struct home {
    std::byte* host = nullptr;  ///< null: on a device
    CUdeviceptr address = 0;    ///< for copies
    CUdeviceptr on_device = 0;  ///< for kernels and fills
    void* raw = nullptr;        ///< of malloc
  };
  struct host_mix {
    std::uint8_t *to, *from;
    std::uint64_t size;
    std::uint8_t value;
  };
  struct made_graph {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    std::vector<CUgraphNode> nodes;  ///< of one that was built
  };

  void open(device& d, int number);
  void allocate(const chain& c);
  void release(const chain& c);
  void perform(const operation& o);
  void copy(const operation& o);
  void box(const operation& o);
  void fill(const operation& o);
  void kernel(const operation& o);
  void batch(const operation& o);
  void box_batch(const operation& o);
  void capture(const operation& o);
  void build(made_graph& g, const operation& o);
  void change(const operation& o);
  void update(const operation& o);
  CUgraphNode node(CUgraph graph, const operation& o, const std::vector<CUgraphNode>& after);
  void write(const operation& o);
  void compare(int block, const std::uint8_t* found, std::uint64_t offset,
               std::span<const std::uint8_t> right);
  void look(const operation& o, const model& order);
  void compare_all(const model& order);

  CUstream handle(const operation& o) const;
  CUdeviceptr at(const place& p) const { return homes_[p.block].address + p.offset; }
  CUdeviceptr seen(const place& p) const { return homes_[p.block].on_device + p.offset; }
  bool host(const place& p) const { return homes_[p.block].host != nullptr; }
  host_mix* keep_mix(const operation& o);
  CUDA_MEMCPY3D shape(const operation& o) const;
  unsigned rounds_of(const operation& spin) const;
  void must(CUresult code, const char* what);

  static void CUDA_CB run_mix(void* data);

  std::deque<device> devices_;
  double rounds_in_a_microsecond_ = 0;
  const std::vector<block>* blocks_ = nullptr;
  std::vector<home> homes_;
  std::deque<host_mix> mixes_;
  std::deque<made_graph> graphs_;
  std::array<int, most_events> recorded_on_{};
};

}  // namespace chains
