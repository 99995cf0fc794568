// Running a graph: its nodes in an order that respects the edges, as one operation of the stream.
#include "device/cpu/graph/graph_handles.hh"
#include "device/cpu/graph/running_node.hh"
#include "device/cpu/machine.hh"
#include "device/cpu/memory/memory_operations.hh"
#include "device/node_names.hh"

namespace outboard::device::cpu {
namespace {

/// What one launch adds to the plan: the points of its event nodes, in the order in which they are met.
struct launch_points {
  std::vector<point_ptr> points;
  std::size_t next = 0;
  group_ptr group;
};

CUresult run_plan(const plan& p, launch_points& events);

struct run_step {
  const plan_step& step;
  launch_points& events;
  const stream_group& group = *events.group;

  CUresult operator()(std::monostate) const { return CUDA_SUCCESS; }
  CUresult operator()(const kernel_work& w) const { return run_kernel(w); }
  CUresult operator()(const copy_work& w) const { return w.run(); }
  CUresult operator()(const fill_work& w) const { return w.run(); }
  CUresult operator()(const host_work& w) const {
    const callback_scope scope;
    w.function(w.data);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const child_work&) const { return run_plan(*step.bodies.front(), events); }
  CUresult operator()(const event_work&) const {
    const point_ptr& point = events.points[events.next++];
    if (point == nullptr) return CUDA_SUCCESS;
    if (step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      here().work.reach(point);
    } else {
      here().work.synchronize(point);
    }
    return CUDA_SUCCESS;
  }
  // The memory is there as long as the plan; who may use it is said at the launch (graph_memory).
  CUresult operator()(const allocation_work&) const { return CUDA_SUCCESS; }
  CUresult operator()(const release_work&) const { return CUDA_SUCCESS; }
  CUresult operator()(const conditional_work& w) const {
    // Bodies hold no event nodes, so a body that is left out or run again takes no points.
    const auto run_body = [&](std::size_t i) {
      return i < step.bodies.size() ? run_plan(*step.bodies[i], events) : CUDA_SUCCESS;
    };
    const unsigned value = w.value->value.load(std::memory_order_acquire);
    if (w.type == CU_GRAPH_COND_TYPE_IF) return run_body(value != 0 ? 0 : 1);
    if (w.type == CU_GRAPH_COND_TYPE_SWITCH) return run_body(value);
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && w.value->value.load(std::memory_order_acquire) != 0) {
      if (group.error.load(std::memory_order_acquire) != CUDA_SUCCESS) break;  // the device closes
      result = run_body(0);
    }
    return result;
  }
  CUresult operator()(const memory_operations_work& w) const {
    return run_memory_operations(w.operations, w.owner->group);
  }
};

CUresult run_plan(const plan& p, launch_points& events) {
  for (const plan_step& step : p.steps) {
    if (!step.enabled) continue;
    const std::uint64_t around = std::exchange(running_node(), step.shown);
    const CUresult result = std::visit(run_step{step, events}, step.work);
    running_node() = around;
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

/// Event nodes act as if their calls were made now, one after the other.
void take_points(const plan& p, std::vector<point_ptr>& points) {
  for (const plan_step& step : p.steps) {
    if (!step.enabled) continue;
    if (const auto* w = std::get_if<event_work>(&step.work)) {
      const std::lock_guard lock(w->event->mutex);
      if (step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        w->event->point = std::make_shared<event_point>();
        w->event->captured.store(false, std::memory_order_release);
      }
      points.push_back(w->event->point);
    }
    for (const plan_ptr& body : step.bodies) take_points(*body, points);
  }
}

/// What a failed or dropped launch never came to must not hold up those that wait for it.
class launch_task final : public task {
 public:
  launch_task(plan_ptr work, std::vector<graph_block_ptr> freed, std::vector<point_ptr> points,
              group_ptr group)
      : work_(std::move(work)), freed_(std::move(freed)) {
    events_.points = std::move(points);
    events_.group = std::move(group);
  }
  ~launch_task() override {
    for (const point_ptr& point : events_.points) {
      if (point != nullptr && !point->done.load()) leftover_ = true;
    }
    if (leftover_) release_points(*work_);
  }
  CUresult run() override {
    for (const auto& c : work_->conditions) {
      if (c->assign_initial) c->value.store(c->initial, std::memory_order_release);
    }
    return run_plan(*work_, events_);
  }

 private:
  void release_points(const plan& p) {
    for (const plan_step& step : p.steps) {
      if (!step.enabled) continue;
      if (std::holds_alternative<event_work>(step.work)) {
        const point_ptr& point = events_.points[index_++];
        const bool ours = step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
        if (ours && !point->done.load()) here().work.reach(point);
      }
      for (const plan_ptr& body : step.bodies) release_points(*body);
    }
  }

  plan_ptr work_;
  std::vector<graph_block_ptr> freed_;
  launch_points events_;
  std::size_t index_ = 0;
  bool leftover_ = false;
};

}  // namespace

std::shared_ptr<plan> make_plan(const graph_object& graph) {
  auto made = std::make_shared<plan>();
  const std::vector<graph_node*> order = ordered(graph);
  if (order.size() != graph.nodes.size()) return nullptr;
  for (const auto& [object, count] : graph.objects) made->objects.push_back(object);
  for (const graph_node* node : order) {
    plan_step step{node->handle, node->type, node->work, true, {}, node->handle};
    if (const node_names* names = nodes_under_way) {
      if (const std::uint64_t name = names->name_of(handle_of(*node))) step.shown = name;
    }
    std::vector<graph_ptr> inside;
    if (const auto* child = std::get_if<child_work>(&node->work)) inside = {child->graph};
    if (const auto* conditional = std::get_if<conditional_work>(&node->work)) {
      inside = conditional->bodies;
      made->conditions.push_back(conditional->value);
    }
    for (const graph_ptr& body : inside) {
      const auto part = make_plan(*body);
      if (part == nullptr) return nullptr;
      made->objects.insert(made->objects.end(), part->objects.begin(), part->objects.end());
      made->conditions.insert(made->conditions.end(), part->conditions.begin(), part->conditions.end());
      step.bodies.push_back(part);
    }
    made->steps.push_back(std::move(step));
  }
  return made;
}

CUresult launch_plan(graph_exec& exec, const stream_ptr& on) {
  scheduler& work = here().work;
  std::vector<graph_block_ptr> freed;
  const bool frees_itself = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (const CUresult r = here().graph_blocks.launch(*exec.work, frees_itself, freed); r != CUDA_SUCCESS)
    return r;
  std::vector<point_ptr> points;
  take_points(*exec.work, points);
  if (exec.last != nullptr) work.wait_event(on, exec.last);
  work.submit(on, std::make_unique<launch_task>(exec.work, std::move(freed), std::move(points), on->group()));
  exec.last = work.record(on);
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
