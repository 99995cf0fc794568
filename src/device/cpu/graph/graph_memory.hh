// Memory of graphs. Creating an allocation node fixes the address; launching the node allocates the memory.
// The program may use it until a node or the program frees it, even after the graph is destroyed. A part of
// machine, guarded by machine::graphs_mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "api/cuda/headers.hh"

namespace outboard::device::cpu {

struct plan;
struct graph_exec;

struct graph_block {
  std::uint64_t address = 0, size = 0;
  std::weak_ptr<graph_exec> exec;  ///< made from its graph: there can be one at a time
  graph_block() = default;
  ~graph_block();
  graph_block(const graph_block&) = delete;
  graph_block& operator=(const graph_block&) = delete;
};
using graph_block_ptr = std::shared_ptr<graph_block>;

class graph_memory {
 public:
  CUresult allocate(std::uint64_t size, graph_block_ptr& out);
  bool knows(std::uint64_t address) const;  ///< true if a node that still exists allocates it
  /// Gives the plan's memory to this executable graph. Error: another one that still exists has it.
  CUresult claim(const plan& p, const std::shared_ptr<graph_exec>& exec);
  /// Applies the launch of a plan, in the order of submission. Memory that an earlier launch left allocated
  /// must have been freed, unless the launch is to free it itself. The launch keeps what it frees until it is
  /// done.
  CUresult launch(const plan& p, bool frees_itself, std::vector<graph_block_ptr>& freed);
  /// Null: no launch has allocated memory at this address, or it was freed. The caller keeps the result until
  /// its work is done.
  graph_block_ptr free(std::uint64_t address);
  void clear() { live_.clear(); }

 private:
  std::map<std::uint64_t, std::weak_ptr<graph_block>> known_;  // by address; dead entries are swept at times
  std::map<std::uint64_t, graph_block_ptr> live_;              // allocated by a launch, not freed
  std::size_t sweep_at_ = 64;
};

}  // namespace outboard::device::cpu
