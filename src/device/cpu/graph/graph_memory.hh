// Memory of graphs. An allocation node gives it its address when it is made; a launch of the node allocates
// it, and it stays the program's to use until a node or the program itself frees it, whatever becomes of the
// graph. A part of machine, guarded by machine::graphs_mutex.
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
  bool knows(std::uint64_t address) const;  ///< a node that still is allocates it
  /// The plan's memory is this executable's. Error: another that still exists has it.
  CUresult claim(const plan& p, const std::shared_ptr<graph_exec>& exec);
  /// What the launch of a plan does to it, in the order of submission: what an earlier launch has left
  /// allocated must have been freed, unless the launch is to free it itself. The launch keeps what it frees
  /// until it is done.
  CUresult launch(const plan& p, bool frees_itself, std::vector<graph_block_ptr>& freed);
  /// Null: no launch has allocated memory of this address, or it was freed. Its user keeps what is returned
  /// until its work is done.
  graph_block_ptr free(std::uint64_t address);
  void clear() { live_.clear(); }

 private:
  std::map<std::uint64_t, std::weak_ptr<graph_block>> known_;  // by address; dead entries are swept at times
  std::map<std::uint64_t, graph_block_ptr> live_;              // allocated by a launch, not freed
  std::size_t sweep_at_ = 64;
};

}  // namespace outboard::device::cpu
