#include "backend/cuda/graph/graph_copies.hh"

#include <algorithm>
#include <mutex>
#include <set>

#include "backend/cuda/driver_call.hh"

namespace outboard::backend {
namespace {

/// Host memory of one session's graph copies; beyond it, making one fails as out of memory.
constexpr std::uint64_t most_bytes = 4ull << 30;

/// What the answer to a callback may bring, below a frame.
constexpr std::uint64_t most_answered = 16u << 20;

}  // namespace

struct graph_copies::shared {
  explicit shared(const api::driver_table& driver) : memory(driver) {}
  struct entry {
    boxed_bytes box;
    locked_blocks::block block;
    unsigned uses = 0;
    bool let_go = false;
  };
  struct use;

  std::mutex mutex;
  locked_blocks memory;
  std::map<const std::byte*, entry> blocks;
  std::uint64_t bytes = 0;
  std::function<void(const marshal::callback_body&)> tell;

  ~shared() {
    for (const auto& [data, e] : blocks) memory.give_back(e.block);
  }
  /// A callback of the driver's, too.
  void drop(const std::byte* data) {
    const std::lock_guard lock(mutex);
    const auto found = blocks.find(data);
    if (found == blocks.end()) return;
    found->second.let_go = true;
    if (found->second.uses == 0) end(found);
  }
  /// With the lock.
  void end(std::map<const std::byte*, entry>::iterator which) {
    const entry gone = which->second;
    blocks.erase(which);
    bytes -= gone.box.size;
    memory.give_back(gone.block);
    tell({marshal::errand::forget, gone.box.id, 0, false, {}});
  }
};

struct graph_copies::shared::use {
  std::shared_ptr<shared> state;
  std::vector<const std::byte*> of;

  use(std::shared_ptr<shared> s, const std::vector<boxed_bytes>& blocks) : state(std::move(s)) {
    const std::lock_guard lock(state->mutex);
    for (const boxed_bytes& b : blocks) {
      if (const auto found = state->blocks.find(b.data); found != state->blocks.end())
        ++found->second.uses, of.push_back(b.data);
    }
  }
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  ~use() {
    const std::lock_guard lock(state->mutex);
    for (const std::byte* data : of) {
      const auto found = state->blocks.find(data);
      if (--found->second.uses == 0 && found->second.let_go) state->end(found);
    }
  }
};

/// A graph's user object.
struct graph_copies::held {
  std::weak_ptr<shared> state;
  const std::byte* data;
};

graph_copies::graph_copies(const api::driver_table& driver, host_calls& host)
    : driver_(driver), host_(host), state_(std::make_shared<shared>(driver)) {}

std::optional<boxed_bytes> graph_copies::make(const host_box_wanted& wanted) {
  if (wanted.size == 0 || wanted.row == 0) return std::nullopt;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->tell) state_->tell = host_.messenger();
    if (wanted.size > most_bytes - state_->bytes) return std::nullopt;
    state_->bytes += wanted.size;
  }
  const locked_blocks::block block = state_->memory.take(wanted.size, wanted.context);
  const boxed_bytes made{wanted.id, wanted.size, wanted.row, block.data, block.locked};
  const std::lock_guard lock(state_->mutex);
  if (!made.data) return state_->bytes -= wanted.size, std::nullopt;
  state_->blocks[made.data] = {made, block};
  return made;
}

void graph_copies::drop_context(std::uint64_t context) { state_->memory.drop_context(context); }

void graph_copies::release(const boxed_bytes& b) { state_->drop(b.data); }

void graph_copies::hold(CUgraph graph, const boxed_bytes& b) {
  const auto create = driver_.cuUserObjectCreate;
  const auto retain = driver_.cuGraphRetainUserObject;
  if (!create || !retain) return;  // then it lives as long as the session
  auto mine = std::make_unique<held>(held{state_, b.data});
  CUuserObject object = nullptr;
  if (create(&object, mine.get(), destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) return;
  mine.release();
  retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
}

std::shared_ptr<const void> graph_copies::use(const std::vector<boxed_bytes>& blocks) {
  return std::make_shared<const shared::use>(state_, blocks);
}

void CUDA_CB graph_copies::destroyed(void* data) {
  const std::unique_ptr<held> mine(static_cast<held*>(data));
  if (const auto state = mine->state.lock()) state->drop(mine->data);
}

std::optional<boxed_bytes> graph_copies::find(const void* data) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->blocks.find(static_cast<const std::byte*>(data));
  if (found == state_->blocks.end()) return std::nullopt;
  return found->second.box;
}

bool graph_copies::any() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->blocks.empty();
}

namespace {

struct copy_ends {
  std::vector<boxed_bytes> sources, targets;
  std::vector<boxed_bytes> silent;  ///< targets of copies that are switched off
  void add(const copy_ends& more) {
    for (const auto list : {&copy_ends::sources, &copy_ends::targets, &copy_ends::silent})
      (this->*list).insert((this->*list).end(), (more.*list).begin(), (more.*list).end());
  }
};

template <class Entry, class... Of>
CUresult set(Entry entry, host_calls::function* function, Of... of) {
  const CUDA_HOST_NODE_PARAMS_v1 p{host_calls::run, function};
  return call_driver(entry, of..., &p);
}

void once_each(std::vector<boxed_bytes>& blocks) {
  std::set<const std::byte*> seen;
  std::erase_if(blocks, [&](const boxed_bytes& b) { return !seen.insert(b.data).second; });
}

/// In the order of the last copy to each: what an earlier one wrote is not there any more.
void by_last(std::vector<boxed_bytes>& blocks) {
  std::vector<boxed_bytes> kept;
  std::map<const std::byte*, std::size_t> places;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const auto [place, fresh] = places.try_emplace(blocks[i].data, kept.size());
    fresh ? kept.push_back(blocks[i]) : void(kept[place->second].times += blocks[i].times);
  }
  std::ranges::reverse(kept);
  blocks = std::move(kept);
}

class walker {
 public:
  walker(const exec_place& of, exec_needs& needs)
      : driver_(of.driver), copies_(of.copies), exec_(of.exec), needs_(needs) {}

  /// Of needs.graph and all inside it.
  void learn() {
    needs_.functions = 0;
    walk(needs_.graph, {}, {});
    copy_ends found = all(needs_.graph);
    once_each(found.sources);
    by_last(found.targets);
    once_each(found.silent);
    needs_.sources = std::move(found.sources), needs_.targets = std::move(found.targets);
    needs_.silent = std::move(found.silent);
  }

  /// Of a graph and those inside it.
  copy_ends all(CUgraph graph) const {
    copy_ends found;
    const content inside = read(graph);
    for (CUgraphNode node : inside.order) {
      if (const auto e = inside.copies.find(node); e != inside.copies.end()) found.add(e->second);
    }
    return found;
  }

  /// Is the node a copy to the client, switched on or off?
  bool is_for_client(CUgraphNode node) const {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (call_driver(driver_.cuGraphNodeGetType, node, &type) != CUDA_SUCCESS ||
        type != CU_GRAPH_NODE_TYPE_MEMCPY)
      return false;
    const copy_ends ends = of_copy(node);
    return !ends.targets.empty() || !ends.silent.empty();
  }

  bool taken() const { return taken_; }
  /// Nodes of graphs that carry a function of ours now, with the client's.
  std::map<CUgraphNode, host_calls::function*> take_lent() { return std::move(lent_); }

 private:
  struct content {
    std::vector<CUgraphNode> order;           ///< each behind what it depends on
    std::map<CUgraphNode, copy_ends> copies;  ///< a child graph stands for those in it
    std::vector<std::pair<CUgraphNode, CUgraph>> children;
    std::vector<CUgraphNode> functions;
  };

  /// `before` and `after`: of the graph's own node, in the graph around it.
  void walk(CUgraph graph, const copy_ends& before, const copy_ends& after) {
    const content inside = read(graph);
    needs_.functions += inside.functions.size();
    const bool copying = copies_.any();
    for (CUgraphNode node : inside.functions) {
      if (copying) tell(node, around(node, inside, before, true), around(node, inside, after, false));
    }
    for (const auto& [node, child] : inside.children) {
      walk(child, copying ? around(node, inside, before, true) : copy_ends{},
           copying ? around(node, inside, after, false) : copy_ends{});
    }
  }

  content read(CUgraph graph) const {
    content found;
    const std::vector<CUgraphNode> nodes = list(driver_.cuGraphGetNodes, graph);
    found.order = copies_.any() ? in_order(nodes) : nodes;
    for (CUgraphNode node : nodes) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      if (call_driver(driver_.cuGraphNodeGetType, node, &type) != CUDA_SUCCESS) continue;
      CUgraph child = nullptr;
      if (type == CU_GRAPH_NODE_TYPE_HOST) found.functions.push_back(node);
      if (type == CU_GRAPH_NODE_TYPE_MEMCPY && copies_.any()) found.copies[node] = of_copy(node);
      if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
          call_driver(driver_.cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS) {
        found.children.emplace_back(node, child);
        found.copies[node] = all(child);
      }
    }
    return found;
  }

  template <class Entry, class Of>
  static std::vector<CUgraphNode> list(Entry entry, Of of) {
    std::size_t count = 0;
    if (call_driver(entry, of, nullptr, &count) != CUDA_SUCCESS) return {};
    std::vector<CUgraphNode> nodes(count);
    if (count && call_driver(entry, of, nodes.data(), &count) != CUDA_SUCCESS) return {};
    return nodes;
  }

  /// What one copy writes another may write again: who comes later must be sent later.
  std::vector<CUgraphNode> in_order(const std::vector<CUgraphNode>& nodes) const {
    std::vector<CUgraphNode> order, open = nodes;
    std::set<CUgraphNode> begun, done;
    while (!open.empty()) {
      const CUgraphNode node = open.back();
      if (begun.insert(node).second) {
        const auto before = neighbours(node, true);
        open.insert(open.end(), before.begin(), before.end());
        continue;
      }
      open.pop_back();
      if (done.insert(node).second) order.push_back(node);
    }
    return order;
  }

  copy_ends of_copy(CUgraphNode node) const {
    CUDA_MEMCPY3D p{};
    copy_ends ends;
    if (const auto changed = needs_.changed.copies.find(node); changed != needs_.changed.copies.end()) {
      if (changed->second.source) ends.sources.push_back(*changed->second.source);
      if (changed->second.target) ends.targets.push_back(*changed->second.target);
      return written_by(node, std::move(ends));
    }
    if (call_driver(driver_.cuGraphMemcpyNodeGetParams, node, &p) != CUDA_SUCCESS) return ends;
    // The driver may call host memory what it likes: our blocks are known by their address.
    const auto look = [&](const void* host, CUdeviceptr device) {
      const auto b = copies_.find(host);
      return b ? b : copies_.find(reinterpret_cast<const void*>(device));
    };
    if (const auto source = look(p.srcHost, p.srcDevice)) ends.sources.push_back(*source);
    if (const auto target = look(p.dstHost, p.dstDevice)) ends.targets.push_back(*target);
    return written_by(node, std::move(ends));
  }

  /// One that is switched off writes nothing. (What it would read is still sent along.)
  copy_ends written_by(CUgraphNode node, copy_ends ends) const {
    if (needs_.changed.off.contains(node)) ends.silent = std::exchange(ends.targets, {});
    return ends;
  }

  std::vector<CUgraphNode> neighbours(CUgraphNode node, bool before) const {
    if (before) return list(driver_.cuGraphNodeGetDependencies, node);
    return list(driver_.cuGraphNodeGetDependentNodes, node);
  }

  /// Copies of all nodes that lie before (or after) this one.
  copy_ends around(CUgraphNode node, const content& inside, const copy_ends& outer, bool before) const {
    copy_ends found = outer;
    std::set<CUgraphNode> seen;
    std::vector<CUgraphNode> open = neighbours(node, before);
    while (!open.empty()) {
      const CUgraphNode next = open.back();
      open.pop_back();
      if (!seen.insert(next).second) continue;
      for (CUgraphNode more : neighbours(next, before)) open.push_back(more);
    }
    for (CUgraphNode other : inside.order) {
      const auto e = inside.copies.find(other);
      if (e != inside.copies.end() && seen.contains(other)) found.add(e->second);
    }
    return found;
  }

  host_calls::function* function_of(CUgraphNode node) const {
    if (const auto changed = needs_.changed.functions.find(node); changed != needs_.changed.functions.end())
      return changed->second;
    CUDA_HOST_NODE_PARAMS_v1 p{};
    const CUresult code = call_driver(driver_.cuGraphHostNodeGetParams, node, &p);
    return code == CUDA_SUCCESS && p.fn == host_calls::run ? static_cast<host_calls::function*>(p.userData)
                                                           : nullptr;
  }

  void tell(CUgraphNode node, copy_ends before, copy_ends after) {
    host_calls::function* function = function_of(node);
    exec_changes& changed = needs_.changed;
    const auto known = changed.told.find(node);
    if (!function || (before.targets.empty() && after.sources.empty() && known == changed.told.end())) return;
    by_last(before.targets);
    once_each(after.sources);
    std::uint64_t bytes = 0;
    for (const boxed_bytes& b : after.sources) bytes += b.size;
    if (bytes > most_answered) {
      taken_ = false;
      return;
    }
    if (known != changed.told.end()) changed.old_functions.push_back(known->second);
    host_calls::function* mine =
        host_calls::with_blocks(*function, std::move(before.targets), std::move(after.sources));
    changed.told[node] = mine;
    const CUresult code = exec_ ? set(driver_.cuGraphExecHostNodeSetParams, mine, exec_, node)
                                : set(driver_.cuGraphHostNodeSetParams, mine, node);
    if (code != CUDA_SUCCESS) {
      taken_ = false;
    } else if (!exec_) {
      lent_[node] = function;
    }
  }

  const api::driver_table& driver_;
  const graph_copies& copies_;
  CUgraphExec exec_;
  exec_needs& needs_;
  std::map<CUgraphNode, host_calls::function*> lent_;
  bool taken_ = true;
};

}  // namespace

taught_graph::taught_graph(const api::driver_table& driver, const graph_copies& copies, exec_needs& needs)
    : driver_(driver) {
  walker w({driver, copies, nullptr}, needs);
  w.learn();
  lent_ = w.take_lent();
  taken_ = w.taken();
}

taught_graph::~taught_graph() {
  for (const auto& [node, function] : lent_) set(driver_.cuGraphHostNodeSetParams, function, node);
}

bool learn_change(const exec_place& of, exec_needs& needs) {
  walker w(of, needs);
  w.learn();
  return w.taken();
}

bool is_for_client(const exec_place& of, exec_needs& needs, CUgraphNode node) {
  return of.copies.any() && walker(of, needs).is_for_client(node);
}

bool has_blocks(const api::driver_table& driver, const graph_copies& copies, CUgraph graph) {
  exec_needs none;
  const copy_ends all = walker({driver, copies, nullptr}, none).all(graph);
  return !all.sources.empty() || !all.targets.empty();
}

}  // namespace outboard::backend
