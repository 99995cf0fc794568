// Copies in graphs that read or write memory of the client. The driver's copy works on a block here; a launch
// fills the blocks that are read with what the client sent along, and afterwards sends what was written. The
// blocks are page-locked: pageable memory a driver may read as early as in the launch.
// Blocks live as long as a graph or an executable graph names them (user objects of the driver). Owned by the
// session; any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/copying/locked_blocks.hh"
#include "backend/cuda/host_calls.hh"

namespace outboard::backend {

struct host_box_wanted {
  std::uint64_t id = 0, size = 0, row = 0;
  std::uint64_t context = 0;  ///< the lane's current one
};

class graph_copies {
 public:
  graph_copies(const api::driver_table& driver, host_calls& host);

  /// A block for the client's host box `id`. Lives until release() or, once a graph holds it, until the
  /// driver is done with that. Nothing: no memory.
  std::optional<boxed_bytes> make(const host_box_wanted& wanted);
  void release(const boxed_bytes& b);
  void hold(CUgraph graph, const boxed_bytes& b);
  /// Blocks that are let go meanwhile live on until the last copy of what this returns is gone (any thread).
  std::shared_ptr<const void> use(const std::vector<boxed_bytes>& blocks);
  void drop_context(std::uint64_t context);

  /// The block that begins at this address.
  std::optional<boxed_bytes> find(const void* data) const;
  bool any() const;

 private:
  struct shared;
  struct held;
  static void CUDA_CB destroyed(void* data);

  const api::driver_table& driver_;
  host_calls& host_;
  std::shared_ptr<shared> state_;
};

/// The blocks of one copy, where its ends are host boxes.
struct copy_blocks {
  std::optional<boxed_bytes> source, target;

  std::vector<boxed_bytes> all() const {
    std::vector<boxed_bytes> found;
    if (source) found.push_back(*source);
    if (target) found.push_back(*target);
    return found;
  }
};

/// What was changed in an executable graph alone: it goes with that, because no graph holds it.
struct exec_changes {
  std::map<CUgraphNode, copy_blocks> copies;  ///< in place of what the graph's node says
  std::map<CUgraphNode, host_calls::function*> functions;
  std::set<CUgraphNode> off;  ///< nodes that are switched off
  /// Host functions with the bytes that this graph's launches bring them: a launch under way, and another
  /// executable graph of the same graph, may go with others.
  std::map<CUgraphNode, host_calls::function*> told;
  std::vector<boxed_bytes> old_copies;  ///< that a launch under way may still use
  std::vector<host_calls::function*> old_functions;

  void retire(const copy_blocks& blocks) {
    for (const boxed_bytes& b : blocks.all()) old_copies.push_back(b);
  }
};

/// What launches of one executable graph need of the client.
struct exec_needs {
  std::vector<boxed_bytes> sources, targets;
  std::vector<boxed_bytes> silent;  ///< targets of copies that are switched off
  std::uint64_t functions = 0;
  std::vector<std::byte> fed;  ///< for the next launch
  CUevent last = nullptr;      ///< end of the latest launch: the blocks are one launch's at a time
  /// Bytes that launches to come wait with.
  std::shared_ptr<std::atomic<std::uint64_t>> kept = std::make_shared<std::atomic<std::uint64_t>>(0);
  exec_changes changed;
  CUgraph graph = nullptr;     ///< that it was made from
  std::uint64_t graph_id = 0;  ///< the client's; 0: it was updated from another graph since
  std::uint64_t change = 0;    ///< the latest of that graph then

  /// The client waits for the end of a launch.
  bool has_end() const { return !targets.empty() || !silent.empty() || functions != 0; }
  bool empty() const { return sources.empty() && !has_end(); }
};

/// Learns what launches of an executable graph need that is made or updated from `needs.graph`. While it
/// lives the graph's own host nodes carry functions with the bytes that they may see and change, so the
/// driver takes these over: of an executable graph it lets only nodes of the graph be set that it was first
/// made from. The functions belong to `needs`.
class taught_graph {
 public:
  taught_graph(const api::driver_table& driver, const graph_copies& copies, exec_needs& needs);
  ~taught_graph();
  taught_graph(const taught_graph&) = delete;
  taught_graph& operator=(const taught_graph&) = delete;

  /// False: a host function is followed by copies that read more than an answer can bring, or the driver did
  /// not take it.
  bool taken() const { return taken_; }

 private:
  const api::driver_table& driver_;
  std::map<CUgraphNode, host_calls::function*> lent_;  ///< the client's, to be put back
  bool taken_ = true;
};

/// What learn_change() works with.
struct exec_place {
  const api::driver_table& driver;
  const graph_copies& copies;
  CUgraphExec exec;
};

/// The same behind a change of the executable graph alone. Its graph must be what it was made from. False: as
/// above.
[[nodiscard]] bool learn_change(const exec_place& of, exec_needs& needs);
/// Is the graph's node a copy to the client's memory? Its graph as above.
bool is_for_client(const exec_place& of, exec_needs& needs, CUgraphNode node);
/// A node was switched off in the executable graph, or on again: launches send what it wrote, or do not, once
/// that is learned.
inline void switch_copy(exec_needs& needs, CUgraphNode node, bool on) {
  on ? void(needs.changed.off.erase(node)) : void(needs.changed.off.insert(node));
}
/// Does a copy of this graph, or of one inside it, work on a block?
bool has_blocks(const api::driver_table& driver, const graph_copies& copies, CUgraph graph);

}  // namespace outboard::backend
