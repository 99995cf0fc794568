#include "device/cpu/graph/capture.hh"

#include <algorithm>
#include <set>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

/// One thread's own address tells it apart.
const void* this_thread() { return &own_thread(); }

bool is_blocking(const stream& s) { return s.kind() == stream_kind::blocking; }

void join(stream_capture& c, const stream_ptr& s, std::vector<graph_node*> tails) {
  c.members[s.get()] = {s, std::move(tails), {}, {}};
  if (is_blocking(*s)) s->group()->capturing.fetch_add(1);
  s->set_capturing(true);
}

/// The capture is over; its streams work again.
void leave(const capture_ptr& c) {
  c->ended = true;
  for (auto& [raw, member] : c->members) {
    raw->set_capturing(false);
    if (is_blocking(*raw)) raw->group()->capturing.fetch_sub(1);
  }
  c->members.clear();
  machine& m = here();
  std::erase(m.captures, c);
  m.captures_open.store(static_cast<int>(m.captures.size()));
}

void add_tails(std::vector<graph_node*>& to, const std::vector<graph_node*>& more) {
  for (graph_node* node : more) {
    if (std::ranges::find(to, node) == to.end()) to.push_back(node);
  }
}

/// Everything that other streams captured lies before what the origin captured last.
bool all_joined(const stream_capture& c) {
  std::set<const graph_node*> behind;
  std::vector<const graph_node*> open;
  for (const auto& [raw, member] : c.members) {
    if (raw == c.origin) open.assign(member.tails.begin(), member.tails.end());
  }
  while (!open.empty()) {
    const graph_node* node = open.back();
    open.pop_back();
    if (!behind.insert(node).second) continue;
    open.insert(open.end(), node->before.begin(), node->before.end());
  }
  for (const auto& [raw, member] : c.members) {
    for (const graph_node* tail : member.tails) {
      if (!behind.contains(tail)) return false;
    }
  }
  return true;
}

bool live(const capture_ptr& c) { return c != nullptr && !c->ended; }

}  // namespace

capture_ptr capture_of(stream& s) {
  for (const capture_ptr& c : here().captures) {
    if (c->members.contains(&s)) return c;
  }
  return nullptr;
}

CUresult capture_node(stream& s, CUgraphNodeType type, node_work work) {
  const std::lock_guard lock(here().graphs_mutex);
  const capture_ptr c = capture_of(s);
  if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;  // ended by another thread meanwhile
  if (c->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream_capture::member& member = c->members.at(&s);
  member.tails = {add_node(*c->graph, type, std::move(work), member.tails)};
  return CUDA_SUCCESS;
}

CUresult capture_begin(const stream_ptr& s, CUstreamCaptureMode mode, graph_ptr into,
                       const std::vector<graph_node*>& tails) {
  machine& m = here();
  const std::lock_guard lock(m.graphs_mutex);
  if (s->kind() == stream_kind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s->capturing()) return CUDA_ERROR_ILLEGAL_STATE;
  auto c = std::make_shared<stream_capture>();
  c->id = m.next_id.fetch_add(1);
  c->into_existing = into != nullptr;
  c->graph = into != nullptr ? std::move(into) : make_graph(false);
  c->mode = mode;
  c->thread = this_thread();
  c->origin = s.get();
  m.captures.push_back(c);
  m.captures_open.store(static_cast<int>(m.captures.size()));
  join(*c, s, tails);
  return CUDA_SUCCESS;
}

CUresult capture_end(stream& s, graph_ptr& out) {
  machine& m = here();
  const std::lock_guard lock(m.graphs_mutex);
  const capture_ptr c = capture_of(s);
  if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin != &s) return c->invalidated = true, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  CUresult result = CUDA_SUCCESS;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread()) {
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  } else if (c->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(*c)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  leave(c);
  if (result == CUDA_SUCCESS) {
    out = c->graph;
  } else if (!c->into_existing) {
    m.graphs.remove(c->graph->handle);
  }
  return result;
}

void capture_forget(stream& s) {
  machine& m = here();
  const std::lock_guard lock(m.graphs_mutex);
  const capture_ptr c = capture_of(s);
  if (c == nullptr) return;
  if (c->origin != &s) {
    c->invalidated = true;
    return;
  }
  leave(c);
  if (!c->into_existing) m.graphs.remove(c->graph->handle);
}

CUresult capture_forbids(stream& s) {
  const std::lock_guard lock(here().graphs_mutex);
  const capture_ptr c = capture_of(s);
  if (c == nullptr) return CUDA_SUCCESS;
  c->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_forbids_legacy(const stream_group& group) {
  if (group.capturing.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(here().graphs_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const capture_ptr& c : here().captures) {
    for (const auto& [raw, member] : c->members) {
      if (raw->group().get() != &group || !is_blocking(*raw)) continue;
      c->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

CUresult capture_forbids_context(const stream_group& group) {
  const std::lock_guard lock(here().graphs_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const capture_ptr& c : here().captures) {
    const bool inside = std::any_of(c->members.begin(), c->members.end(),
                                    [&](const auto& m) { return m.first->group().get() == &group; });
    if (!inside) continue;
    c->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

// cuThreadExchangeStreamCaptureMode has the table of what forbids what.
CUresult capture_forbids_unsafe() {
  machine& m = here();
  if (m.captures_open.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const CUstreamCaptureMode own = own_thread().capture_mode;
  if (own == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::lock_guard lock(m.graphs_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const capture_ptr& c : m.captures) {
    const bool ours = c->thread == this_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global = own == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!ours && !global) continue;
    c->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult capture_forbids_event(event_object& e) {
  if (!e.captured.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  const std::lock_guard lock(here().graphs_mutex);
  if (!live(e.capture)) return CUDA_ERROR_INVALID_VALUE;  // that recording has become part of a graph
  e.capture->invalidated = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult capture_record(stream& s, const std::shared_ptr<event_object>& e, CUevent handle, unsigned flags) {
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
    return capture_node(s, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_work{handle, e});
  }
  const std::lock_guard lock(here().graphs_mutex);
  const capture_ptr c = capture_of(s);
  if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  e->capture = c;
  e->tails = c->members.at(&s).tails;
  e->captured.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult capture_wait(const stream_ptr& s, const std::shared_ptr<event_object>& e, CUevent handle,
                      unsigned flags, bool& done) {
  done = true;
  const std::lock_guard lock(here().graphs_mutex);
  const capture_ptr own = capture_of(*s);
  if (own != nullptr && own->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const bool external = (flags & CU_EVENT_WAIT_EXTERNAL) != 0;
  if (e->captured.load() && !live(e->capture) && !external) return CUDA_ERROR_INVALID_VALUE;
  if (!live(e->capture)) {
    if (own == nullptr) return done = false, CUDA_SUCCESS;
    if (external) {
      return capture_node(*s, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_work{handle, e});
    }
    const std::lock_guard event_lock(e->mutex);
    if (e->point == nullptr) return CUDA_SUCCESS;  // never recorded: nothing to wait for
    own->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (e->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (own == nullptr) {
    if (s->kind() == stream_kind::legacy) {
      e->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(*e->capture, s, e->tails);
    return CUDA_SUCCESS;
  }
  if (own != e->capture) {
    own->invalidated = e->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  add_tails(own->members.at(s.get()).tails, e->tails);
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
