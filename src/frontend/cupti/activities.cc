#include "frontend/cupti/activities.hh"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "api/cupti/names.hh"
#include "base/blocked_signals.hh"
#include "base/log.hh"
#include "base/steady.hh"
#include "frontend/process.hh"
#include "frontend/session.hh"

namespace outboard::frontend::cupti {
namespace {

constexpr std::chrono::milliseconds pause{100};
/// A program that ends waits for its last records no longer than this.
constexpr std::chrono::seconds longest_end{2};
/// Records of calls that wait for our thread; what is more is lost, and counted.
constexpr std::size_t most_staged = std::size_t{1} << 21;
constexpr std::string_view no_samples =
    "no samples of clocks, temperature and power for the program's profiler: ";

/// The kinds that have records here.
constexpr std::array known_kinds{CUPTI_ACTIVITY_KIND_MEMCPY2,
                                 CUPTI_ACTIVITY_KIND_MEMCPY,
                                 CUPTI_ACTIVITY_KIND_MEMSET,
                                 CUPTI_ACTIVITY_KIND_KERNEL,
                                 CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                 CUPTI_ACTIVITY_KIND_DRIVER,
                                 CUPTI_ACTIVITY_KIND_RUNTIME,
                                 CUPTI_ACTIVITY_KIND_DEVICE,
                                 CUPTI_ACTIVITY_KIND_CONTEXT,
                                 CUPTI_ACTIVITY_KIND_OVERHEAD,
                                 CUPTI_ACTIVITY_KIND_ENVIRONMENT,
                                 CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                 CUPTI_ACTIVITY_KIND_MARKER,
                                 CUPTI_ACTIVITY_KIND_MARKER_DATA,
                                 CUPTI_ACTIVITY_KIND_NAME,
                                 CUPTI_ACTIVITY_KIND_MEMORY,
                                 CUPTI_ACTIVITY_KIND_MEMORY2,
                                 CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                 CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                 CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION};
constexpr std::array device_kinds{
    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE};

/// This thread may be in one of the program's two functions for buffers, with the deliver mutex.
thread_local constinit bool delivering = false;
struct in_delivery {
  in_delivery() : before(std::exchange(delivering, true)) {}
  ~in_delivery() { delivering = before; }
  const bool before;
};

/// A place in one word; 0: none.
std::uint64_t packed(const place& p) {
  return std::uint64_t{1} << 63 | std::uint64_t{p.async} << 62 | std::uint64_t{p.one_copy} << 61 |
         std::uint64_t{p.pageable} << 60 | std::uint64_t{p.context & 0x0fffffff} << 32 | p.stream;
}
std::optional<place> unpacked(std::uint64_t word) {
  if (word == 0) return std::nullopt;
  const auto bit = [&](int n) { return (word >> n & 1) != 0; };
  return place{static_cast<std::uint32_t>(word >> 32) & 0x0fffffff,
               static_cast<std::uint32_t>(word),
               bit(62),
               bit(61),
               0,
               bit(60)};
}

/// As CUPTI answers for what it has never heard of.
CUptiResult refuse_newer(CUpti_ActivityKind kind) {
  static std::array<std::atomic<bool>, 2 * wishes::kinds> told{};
  if (!told[std::min<std::size_t>(kind, told.size() - 1)].exchange(true))
    log::warn(api::cupti::kind_name(kind), " (", static_cast<int>(kind),
              ") is of a newer CUPTI than this one, ", CUPTI_API_VERSION,
              ": it returns CUPTI_ERROR_INVALID_KIND. Profilers that ask cuptiGetVersion do without");
  return CUPTI_ERROR_INVALID_KIND;
}

/// Of what has no records here.
CUptiResult refuse(CUpti_ActivityKind kind) {
  static std::array<std::atomic<bool>, wishes::kinds> told{};
  if (!told[static_cast<std::size_t>(kind)].exchange(true))
    log::warn(api::cupti::kind_name(kind),
              " is not recorded: cuptiActivityEnable says CUPTI_ERROR_NOT_SUPPORTED");
  return CUPTI_ERROR_NOT_SUPPORTED;
}

}  // namespace

bool activities::wants_device() const {
  return std::ranges::any_of(device_kinds, [this](CUpti_ActivityKind k) { return wants(k); });
}

/// With the control mutex.
void activities::wish(CUpti_ActivityKind kind, std::uint32_t context, bool on) {
  context != 0 ? wishes_.set(kind, context, on) : wishes_.set(kind, on);
}

CUptiResult activities::enable(CUpti_ActivityKind kind, std::uint32_t context) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID) return CUPTI_ERROR_INVALID_KIND;
  if (kind >= CUPTI_ACTIVITY_KIND_COUNT) return refuse_newer(kind);
  if (std::ranges::find(known_kinds, kind) == known_kinds.end()) return refuse(kind);
  const std::lock_guard lock(control_mutex_);
  const bool serial = kind == CUPTI_ACTIVITY_KIND_KERNEL;
  if ((serial || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) &&
      wants(serial ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL))
    return CUPTI_ERROR_NOT_COMPATIBLE;
  if (!wants(kind)) {
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE) devices_shown_ = false;
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) forget_contexts();
  }
  const bool had_device = wants_device();
  wish(kind, context, true);
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) {
    if (const std::string refusal = begin_samples(false); !refusal.empty()) {
      log::error(no_samples, refusal);
      wish(kind, context, false);
      return CUPTI_ERROR_NOT_SUPPORTED;
    }
  }
  if (!had_device && wants_device()) {
    if (const std::string refusal = begin_device(false); !refusal.empty()) {
      log::error("no kernels and no copies for the program's profiler: ", refusal);
      wish(kind, context, false);
      return CUPTI_ERROR_NOT_SUPPORTED;
    }
  }
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    for (auto& wanted : calls_[kind == CUPTI_ACTIVITY_KIND_RUNTIME]) wanted = true;
  }
  refresh();
  return CUPTI_SUCCESS;
}

CUptiResult activities::disable(CUpti_ActivityKind kind, std::uint32_t context) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return CUPTI_ERROR_INVALID_KIND;
  const std::lock_guard lock(control_mutex_);
  const bool of_device = std::ranges::find(device_kinds, kind) != device_kinds.end();
  if (of_device && wants(kind)) fetch(false);  // of what ran while it was wanted
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
    const std::lock_guard buffers_lock(deliver_mutex_);
    graph_traces_.take_all(graphs_over_);
  }
  wish(kind, context, false);
  if (wants(kind)) return CUPTI_SUCCESS;  // in another context
  if (kind == CUPTI_ACTIVITY_KIND_MEMORY) end_lives();
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) end_samples();
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    for (auto& wanted : calls_[kind == CUPTI_ACTIVITY_KIND_RUNTIME]) wanted = false;
  }
  if (!wants_device()) {
    const std::lock_guard buffers_lock(deliver_mutex_);
    if (std::exchange(fed_, false)) work_feed::instance().leave(records_);
  }
  refresh();
  return CUPTI_SUCCESS;
}

void activities::disable_all() {
  wishes_.forget_contexts();
  for (int kind = CUPTI_ACTIVITY_KIND_INVALID + 1; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind)
    (void)disable(static_cast<CUpti_ActivityKind>(kind));
}

CUptiResult activities::enable_call(bool runtime, std::uint32_t callback, bool on) {
  if (callback == 0 || callback >= most_callbacks) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(control_mutex_);
  calls_[runtime][callback] = on;
  refresh();
  return CUPTI_SUCCESS;
}

bool activities::wants_call(bool runtime, std::uint32_t callback) const {
  return callback != 0 && callback < most_callbacks &&
         calls_[runtime][callback].load(std::memory_order_relaxed);
}

/// With the control mutex. `connected`: there is a session since just now. Why the device records nothing;
/// empty: it does, or will when there is a session.
std::string activities::begin_device(bool connected) {
  process& p = process::instance();
  session* const server = connected || p.usable() ? p.server() : nullptr;
  if (!server || ended_) return {};
  const std::lock_guard lock(deliver_mutex_);
  if (fed_) return {};
  if (!p.records_work()) return "the server is older than profiles";
  std::string refusal = work_feed::instance().join(*server, records_);
  fed_ = refusal.empty();
  return refusal;
}

/// With the control mutex, as begin_device(): what the server's sensors say.
std::string activities::begin_samples(bool connected) {
  process& p = process::instance();
  session* const server = connected || p.usable() ? p.server() : nullptr;
  if (!server || ended_) return {};
  const std::lock_guard lock(deliver_mutex_);
  if (boards_.on()) return {};
  return p.samples_boards() ? boards_.start(*server) : "the server is older than that";
}

/// With the deliver mutex.
void activities::fetch_samples() {
  if (!boards_.on()) return;
  const std::vector<api::board_sample> samples = boards_.fetch();
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  lost_ += boards_.take_dropped();
}

void activities::end_samples() {
  const std::lock_guard lock(deliver_mutex_);
  clock_.look();
  fetch_samples();
  boards_.stop();
}

/// With the control mutex.
void activities::refresh() {
  const bool any = std::ranges::any_of(known_kinds, [this](CUpti_ActivityKind k) { return wants(k); }) ||
                   std::ranges::any_of(calls_, [](const auto& of_domain) {
                     return std::ranges::any_of(of_domain, [](const auto& wanted) { return wanted.load(); });
                   });
  any_ = any;
  if (!any || ended_ || thread_.joinable()) return;
  {
    const std::lock_guard lock(deliver_mutex_);
    clock_.look();
  }
  const blocked_signals blocked;  // signals are the program's business
  thread_ = std::thread([this] { run(); });
}

std::string activities::connected() {
  const std::lock_guard lock(control_mutex_);
  if (wants(CUPTI_ACTIVITY_KIND_ENVIRONMENT)) {
    if (const std::string refusal = begin_samples(true); !refusal.empty()) log::error(no_samples, refusal);
  }
  const std::string refusal = wants_device() ? begin_device(true) : std::string();
  if (refusal.empty()) return {};
  log::error("no kernels and no copies for the program's profiler: ", refusal);
  return "no kernels and no copies: " + refusal;
}

void activities::ending() {
  std::thread ours;
  {
    const std::lock_guard lock(control_mutex_);
    if (std::exchange(ended_, true)) return;
    end_lives();
    ours = std::move(thread_);
  }
  if (!ours.joinable()) return;
  std::unique_lock lock(wake_mutex_);
  stopping_ = true;
  wake_.notify_all();
  const bool whole = wake_.wait_for(lock, longest_end, [this] { return last_fetched_; });
  lock.unlock();
  whole ? ours.join() : ours.detach();
}

void activities::use_period(std::chrono::milliseconds period) {
  const std::lock_guard lock(wake_mutex_);
  period_ = period;
  new_period_ = true;
  wake_.notify_all();
}

void activities::run() {
  std::unique_lock lock(wake_mutex_);
  for (;;) {
    const auto next = std::chrono::steady_clock::now() + (period_.count() != 0 ? period_ : pause);
    if (wake_.wait_until(lock, next, [this] { return stopping_ || new_period_; })) {
      if (stopping_) break;
      new_period_ = false;
      continue;
    }
    lock.unlock();
    fetch(false);
    const std::lock_guard buffers_lock(deliver_mutex_);
    const in_delivery mark;
    deliver();
    lock.lock();
  }
  lock.unlock();
  fetch(true);
  lock.lock();
  last_fetched_ = true;
  wake_.notify_all();
}

void activities::use_buffers(int version, CUpti_BuffersCallbackRequestFunc give,
                             CUpti_BuffersCallbackCompleteFunc take) {
  if (delivering) return;  // in the program's own function, to which a buffer is given back
  const std::lock_guard lock(deliver_mutex_);
  const in_delivery mark;
  buffers_.use(version, give, take);
}

void activities::use_clock(tool_clock::source own) {
  const std::lock_guard lock(deliver_mutex_);
  clock_.use(own);
  clock_.look();
}

void activities::flush(bool all) {
  if (delivering) return;  // in the program's own function, to which a buffer is given back
  const std::int64_t began = steady_nanoseconds();
  fetch(all);
  const std::lock_guard lock(deliver_mutex_);
  const in_delivery mark;
  graph_traces_.take_all(graphs_over_);
  deliver();
  put_flush(began);
  buffers_.flush();
}

std::size_t activities::take_dropped() {
  const std::uint64_t lost = lost_.load() + device_lost_.load();
  const std::uint64_t told = told_lost_.exchange(lost);
  return lost > told ? lost - told : 0;
}

CUpti_ActivityKind activities::kind_of(const api::work_record& w) const {
  if (w.kind == api::work_kind::copy)
    return w.peer != 0 ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
  if (w.kind == api::work_kind::fill) return CUPTI_ACTIVITY_KIND_MEMSET;
  return wants(CUPTI_ACTIVITY_KIND_KERNEL) ? CUPTI_ACTIVITY_KIND_KERNEL
                                           : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

/// What the device did comes here, and waits for a buffer.
void activities::fetch(bool all) {
  const std::lock_guard lock(deliver_mutex_);
  clock_.look();
  if (!fed_ && !boards_.on()) return;
  fetch_samples();
  if (fed_) work_feed::instance().fetch(all, records_);
  device_lost_ = records_.dropped();
  clock_.look();
}

/// True: it is part of a graph that is told of as a whole.
bool activities::take_node(const noted_work& w) {
  if (w.call == 0) return false;
  const place where = w.where.value_or(place{w.what.context, w.what.stream});
  if (!wishes_.has(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, w.where ? where.context : 0)) return false;
  graph_traces_.take_before(w.call, where.context, where.stream, graphs_over_);
  const std::uint32_t graph = graphs_.find(w.call);
  if (graph == 0) return false;
  graph_traces_.add(
      {w.call, graph, where.context, where.stream, w.what.device, w.what.device, w.begin, w.end});
  return true;
}

void activities::take_work(const device_work& w) {
  const CUpti_ActivityKind kind = kind_of(w.what);
  if (!wants(kind) && !wants(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) return;
  noted_work noted{kind, w.what, w.name, w.begin, w.end, w.call, unpacked(places_.find(w.call))};
  if (take_node(noted) || !wishes_.has(kind, noted.where ? noted.where->context : 0)) return;
  if (noted.what.graph_node != 0) {
    const std::uint32_t graph = graphs_.find(w.call);
    if (graph != 0) noted.what.graph = graph;
    noted.what.graph_node = numbers_.of_clone(graph, w.what.graph_node);
  }
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY && noted.where) {
    // What passes through blocks of ours is the program's one copy of its own memory.
    if (noted.where->pageable) {
      for (api::memory_side* const side : {&noted.what.from, &noted.what.to})
        if (*side == api::memory_side::pinned) *side = api::memory_side::pageable;
    }
    if (noted.where->one_copy && !work_.empty() && work_.back().kind == kind &&
        work_.back().call == noted.call) {
      noted_work& first = work_.back();
      first.begin = std::min(first.begin, noted.begin);
      first.end = std::max(first.end, noted.end);
      first.what.bytes += noted.what.bytes;
      return;
    }
  }
  work_.push_back(noted);
}

/// A program that sees that no buffer was asked for takes it that nothing happened, and does not flush.
void activities::ask_for_buffer() {
  if (buffers_.is_open()) return;
  if (delivering) return;
  const std::unique_lock lock(deliver_mutex_, std::try_to_lock);
  const in_delivery mark;
  if (lock) (void)buffers_.open();
}

void activities::note_work(std::uint32_t number, const place& where) {
  ask_for_buffer();
  places_.note(number, packed(where));
  if (where.graph != 0) graphs_.note(number, where.graph);
}

/// As the program wants them numbered.
std::uint64_t activities::thread_number() const {
  thread_local const std::uint64_t system_id = static_cast<std::uint64_t>(::gettid());
  return system_threads_ ? system_id : static_cast<std::uint64_t>(::pthread_self());
}

void activities::note_call(const lane& own, const made_call& call) {
  const auto kind = call.runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  // Where single functions are wanted, nothing is said of the kind.
  if (wishes_.differ() && wants(kind) && !wishes_.has(kind, numbers_.of_context(own.context_handle())))
    return;
  const std::uint64_t thread = thread_number();
  ask_for_buffer();
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.calls.push_back({call, thread});
  if (!wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  // Of each kind the one pushed last.
  const auto& pushed = own.tool.external;
  for (std::size_t i = 0; i < pushed.size(); ++i) {
    const auto same = [&](const auto& later) { return later.first == pushed[i].first; };
    if (std::none_of(pushed.begin() + static_cast<std::ptrdiff_t>(i) + 1, pushed.end(), same))
      stage_.external.push_back({pushed[i].first, pushed[i].second, call.number});
  }
}

/// All of them have a record again.
void activities::forget_contexts() {
  const std::lock_guard lock(stage_mutex_);
  noted_contexts_.clear();
  ++context_round_;
}

void activities::note_context(const shown_context& c) {
  const std::lock_guard lock(stage_mutex_);
  if (wishes_.has(CUPTI_ACTIVITY_KIND_CONTEXT, c.number) && noted_contexts_.insert(c.number).second)
    stage_.contexts.push_back(c);
}

void activities::note_wait(const noted_wait& wait) {
  if (!wishes_.has(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, wait.context)) return;
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.waits.push_back(wait);
}

void activities::note_event(const shown_event& event) {
  if (!wishes_.has(CUPTI_ACTIVITY_KIND_CUDA_EVENT, event.context)) return;
  ask_for_buffer();
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.events.push_back(event);
}

void activities::note_marker(noted_marker&& marker) {
  ask_for_buffer();
  const auto thread = static_cast<std::uint32_t>(thread_number());
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.markers.push_back({std::move(marker), thread});
}

void activities::note_memory(std::int64_t at, shown_memory&& memory) {
  ask_for_buffer();
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  if (wishes_.has(CUPTI_ACTIVITY_KIND_MEMORY, memory.context)) {
    if (auto life = lives_.note(at, memory)) stage_.lives.push_back(std::move(*life));
  }
  if (wishes_.has(CUPTI_ACTIVITY_KIND_MEMORY2, memory.context))
    stage_.memory.emplace_back(at, std::move(memory));
}

/// What is not released by now has a record all the same.
void activities::end_lives() {
  const std::lock_guard lock(stage_mutex_);
  for (memory_life& life : lives_.take_open()) stage_.lives.push_back(std::move(life));
}

void activities::note_pool(std::int64_t at, const shown_pool& pool) {
  ask_for_buffer();
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.pools.emplace_back(at, pool);
}

void activities::note_name(noted_name&& name) {
  const std::lock_guard lock(stage_mutex_);
  if (stage_.size() >= most_staged) return ++lost_, void();
  stage_.names.push_back(std::move(name));
}

}  // namespace outboard::frontend::cupti
