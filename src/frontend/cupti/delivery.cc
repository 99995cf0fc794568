// What is known goes into the program's buffers as records, by whoever flushes or by the thread that does so
// from time to time, and always with the deliver mutex.
#include <unistd.h>

#include <utility>

#include "base/steady.hh"
#include "frontend/cupti/activities.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cupti {

bool activities::put(CUpti_ActivityKind kind, const void* record) {
  if (buffers_.put(kind, record)) return true;
  ++lost_;
  return false;
}

/// All that is known.
void activities::deliver() {
  staged now;
  {
    const std::lock_guard lock(stage_mutex_);
    std::swap(now, stage_);
    // They come once: they wait for the program's buffers.
    if (!buffers_.in_use()) std::swap(now.contexts, stage_.contexts);
  }
  put_devices();
  for (const shown_context& c : now.contexts) {
    const auto r = context_record(c.number, c.device, c.null_stream);
    put(CUPTI_ACTIVITY_KIND_CONTEXT, &r);
  }
  const auto process_id = static_cast<std::uint32_t>(::getpid());
  for (const auto& [kind, number, call] : now.external) {
    CUpti_ActivityExternalCorrelation r{};
    r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    r.externalId = number;
    r.correlationId = static_cast<std::uint32_t>(call);
    put(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, &r);
  }
  for (const noted_call& c : now.calls) {
    CUpti_ActivityAPI r{};
    r.kind = c.runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    r.cbid = c.callback;
    r.start = clock_.of(c.begin);
    r.end = clock_.of(c.end);
    r.processId = process_id;
    r.threadId = static_cast<std::uint32_t>(c.thread);
    r.correlationId = c.number;
    r.returnValue = c.result;
    put(r.kind, &r);
  }
  put_waits(now);
  put_memory(now, process_id);
  for (const noted_name& n : now.names) {
    const auto r = name_record(n.kind, n.id, kept(n.name));
    put(r.kind, &r);
  }
  for (const marker_of_thread& m : now.markers) put_marker(m, process_id);
  for (const graph_trace& t : std::exchange(graphs_over_, {})) {
    const auto r = graph_record(t, clock_.of(t.begin), clock_.of(t.end));
    put(r.kind, &r);
  }
  for (const noted_work& w : std::exchange(work_, {})) put_work(w);
  for (const api::board_sample& s : std::exchange(samples_, {})) {
    const auto r = environment_record(s, clock_.of(static_cast<std::int64_t>(s.at)));
    put(r.kind, &r);
  }
}

/// Those that have waited, and the events that they may have waited for.
void activities::put_waits(const staged& now) {
  for (const noted_wait& w : now.waits) {
    CUpti_ActivitySynchronization2 r{};
    r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    r.type = static_cast<CUpti_ActivitySynchronizationType>(w.type);
    r.start = clock_.of(w.call.begin);
    r.end = clock_.of(w.call.end);
    r.correlationId = w.call.number;
    r.contextId = w.context;
    r.streamId = w.stream;
    r.cudaEventId = w.event;
    r.returnValue = w.call.result;
    put(r.kind, &r);
  }
  for (const shown_event& e : now.events) {
    const auto r = event_record(e);
    put(r.kind, &r);
  }
}

/// How long this thread of the program has been here, most of it to ask the server.
void activities::put_flush(std::int64_t began) {
  if (!wants(CUPTI_ACTIVITY_KIND_OVERHEAD) || !buffers_.is_open()) return;
  const shown_thread here{static_cast<std::uint32_t>(::getpid()),
                          static_cast<std::uint32_t>(thread_number())};
  const auto r = flush_record(here, clock_.of(began), clock_.of(steady_nanoseconds()));
  put(r.kind, &r);
}

void activities::put_memory(staged& now, std::uint32_t process_id) {
  for (auto& [at, memory] : now.memory) {
    memory.at = clock_.of(at);
    memory.process = process_id;
    const auto r = memory_record(memory);
    put(r.kind, &r);
  }
  for (memory_life& life : now.lives) {
    life.allocation.process = process_id;
    const auto r =
        memory_life_record(life.allocation, clock_.of(life.begin), life.end != 0 ? clock_.of(life.end) : 0);
    put(r.kind, &r);
  }
  for (auto& [at, pool] : now.pools) {
    pool.at = clock_.of(at);
    pool.process = process_id;
    const auto r = pool_record(pool);
    put(r.kind, &r);
  }
}

/// Nobody says when a program has done with its records: a text stays.
const char* activities::kept(std::string_view text) {
  const auto known = texts_.find(text);
  return (known != texts_.end() ? known : texts_.emplace(text).first)->c_str();
}

void activities::put_marker(const marker_of_thread& m, std::uint32_t process_id) {
  const bool end = (m.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) != 0;
  const auto r = marker_record(m.flags, m.id, clock_.of(m.at), {process_id, m.thread}, *m.what.domain,
                               end ? nullptr : kept(m.what.text));
  put(r.kind, &r);
  if (end || !wants(CUPTI_ACTIVITY_KIND_MARKER_DATA)) return;
  const auto more = marker_data_record(m.id, m.what);
  put(more.kind, &more);
}

/// Once, as soon as they are known.
void activities::put_devices() {
  if (devices_shown_ || !wants(CUPTI_ACTIVITY_KIND_DEVICE) || !buffers_.in_use()) return;
  if (!process::instance().usable()) return;
  devices_shown_ = true;
  std::uint32_t number = 0;
  for (const marshal::device_facts& device : process::instance().facts().devices) {
    const auto r = device_record(device, number++);
    put(CUPTI_ACTIVITY_KIND_DEVICE, &r);
  }
}

void activities::put_work(const noted_work& w) {
  shown_work shown{clock_.of(w.begin), clock_.of(w.end), w.call, w.what.context, w.what.stream, false, ""};
  if (w.where) {
    shown.context = w.where->context;
    shown.stream = w.where->stream;
    shown.async = w.where->async;
  }
  if (w.what.kind == api::work_kind::kernel) {
    shown.name = kept(w.name);
    const auto r = kernel_record(w.kind, w.what, shown);
    put(w.kind, &r);
  } else if (w.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    const auto r = peer_copy_record(w.what, shown);
    put(w.kind, &r);
  } else if (w.what.kind == api::work_kind::copy) {
    const auto r = copy_record(w.what, shown);
    put(w.kind, &r);
  } else {
    const auto r = fill_record(w.what, shown);
    put(w.kind, &r);
  }
}

}  // namespace outboard::frontend::cupti
