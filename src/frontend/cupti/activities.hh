// CUPTI's activity interface: which kinds the program wants, the records of its calls and of the device's
// work, and how they get into its buffers. While any kind is wanted, a thread of ours fetches what the device
// did and fills buffers. Any thread.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <array>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/recent_numbers.hh"
#include "frontend/annotations.hh"
#include "frontend/call_watch.hh"
#include "frontend/cupti/board_feed.hh"
#include "frontend/cupti/graph_traces.hh"
#include "frontend/cupti/memory_lives.hh"
#include "frontend/cupti/numbers.hh"
#include "frontend/cupti/record_buffers.hh"
#include "frontend/cupti/records.hh"
#include "frontend/cupti/tool_clock.hh"
#include "frontend/cupti/wishes.hh"
#include "frontend/lane.hh"
#include "frontend/profile/device_records.hh"
#include "frontend/profile/work_feed.hh"

namespace outboard::frontend::cupti {

/// One call that is over, of the driver or the runtime. Times of std::chrono::steady_clock, nanoseconds.
struct made_call {
  bool runtime = false;
  std::uint32_t callback = 0;  ///< CUPTI's number of the function
  std::uint32_t number = 0;
  std::int64_t begin = 0, end = 0;
  std::uint32_t result = 0;
};

/// Where and how a call's work is done, as the program sees it.
struct place {
  std::uint32_t context = 0, stream = 0;
  bool async = false;
  bool one_copy = false;    ///< it copies once, in however many parts
  std::uint32_t graph = 0;  ///< that it launches; 0: none
  bool pageable = false;    ///< from or to memory of the program's that is not page-locked
};

/// A context, by CUPTI's numbers.
struct shown_context {
  std::uint32_t number = 0, device = 0, null_stream = 0;
};

/// A call that has waited for the device.
struct noted_wait {
  std::uint8_t type = 0;  ///< CUpti_ActivitySynchronizationType
  made_call call;
  std::uint32_t context = 0, stream = 0;
  std::uint32_t event = ~std::uint32_t{0};  ///< that it waited for
};

/// A mark, or one end of a range of the program's own.
struct noted_marker {
  std::uint32_t flags = 0;  ///< CUPTI_ACTIVITY_FLAG_MARKER_*
  std::uint32_t id = 0;
  std::int64_t at = 0;
  annotation what;  ///< at an end: the domain alone
};

/// What the program calls a thing.
struct noted_name {
  CUpti_ActivityObjectKind kind = CUPTI_ACTIVITY_OBJECT_UNKNOWN;
  CUpti_ActivityObjectKindId id{};
  std::string name;
};

class activities {
 public:
  explicit activities(numbers& all) : numbers_(all) {}

  /// `context`: CUPTI's number, whose records alone it is about; 0: it is about all contexts that nothing
  /// else was said of.
  CUptiResult enable(CUpti_ActivityKind kind, std::uint32_t context = 0);
  CUptiResult disable(CUpti_ActivityKind kind, std::uint32_t context = 0);
  /// All kinds, in all contexts.
  void disable_all();
  /// One function of the driver or the runtime alone, beside what its kind says.
  CUptiResult enable_call(bool runtime, std::uint32_t callback, bool on);
  bool any() const { return any_.load(std::memory_order_relaxed); }
  bool wants_call(bool runtime, std::uint32_t callback) const;

  /// `version`: the major version of CUDA whose records the program reads from these buffers.
  void use_buffers(int version, CUpti_BuffersCallbackRequestFunc give,
                   CUpti_BuffersCallbackCompleteFunc take);
  void use_clock(tool_clock::source own);
  /// How often records are fetched and full buffers given back; 0: as we think best.
  void use_period(std::chrono::milliseconds period);
  std::uint64_t now() const { return clock_.now(); }
  void use_thread_ids(bool of_system) { system_threads_ = of_system; }
  bool system_threads() const { return system_threads_; }

  /// All records that can be had go into the program's buffers, and those back to it. `all`: also of work
  /// that the device keeps to itself.
  void flush(bool all);
  /// Lost since the last question. Takes no lock: programs ask while a buffer is given back to them.
  std::size_t take_dropped();

  /// On the thread that calls, when it begins: where its work will go.
  void note_work(std::uint32_t number, const place& where);
  /// When it is over.
  void note_call(const lane& own, const made_call& call);
  bool wants_contexts() const { return wants(CUPTI_ACTIVITY_KIND_CONTEXT); }
  /// Grows when they are wanted anew: what was noted before counts no more.
  std::uint32_t context_round() const { return context_round_.load(std::memory_order_relaxed); }
  /// A thread has it now; there is one record of each.
  void note_context(const shown_context& c);
  void note_wait(const noted_wait& wait);
  bool wants_events() const { return wants(CUPTI_ACTIVITY_KIND_CUDA_EVENT); }
  void note_event(const shown_event& event);

  bool wants_markers() const { return wants(CUPTI_ACTIVITY_KIND_MARKER); }
  bool wants_names() const { return wants(CUPTI_ACTIVITY_KIND_NAME); }
  /// On the thread that annotates.
  void note_marker(noted_marker&& marker);
  void note_name(noted_name&& name);

  bool wants_memory() const {
    return wants(CUPTI_ACTIVITY_KIND_MEMORY2) || wants(CUPTI_ACTIVITY_KIND_MEMORY);
  }
  /// `at`: the call's begin, on our clock; of the rest the process is not known yet.
  void note_memory(std::int64_t at, shown_memory&& memory);

  bool wants_pools() const { return wants(CUPTI_ACTIVITY_KIND_MEMORY_POOL); }
  /// The same of a pool.
  void note_pool(std::int64_t at, const shown_pool& pool);

  /// There is a session now. Returns why the device records nothing of what is wanted; empty: it does.
  std::string connected();
  /// There will be none soon: what the device did is fetched, as long as the server answers.
  void ending();

 private:
  struct noted_call : made_call {
    std::uint64_t thread = 0;
  };
  struct marker_of_thread : noted_marker {
    std::uint32_t thread = 0;
  };
  struct noted_work {
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
    api::work_record what;
    std::string_view name;
    std::int64_t begin = 0, end = 0;
    std::uint32_t call = 0;
    std::optional<place> where;  ///< none: not known
  };
  struct staged {
    std::vector<noted_call> calls;
    std::vector<std::array<std::uint64_t, 3>> external;  ///< kind, number, call
    std::vector<noted_wait> waits;
    std::vector<shown_context> contexts;
    std::vector<marker_of_thread> markers;
    std::vector<noted_name> names;
    std::vector<std::pair<std::int64_t, shown_memory>> memory;
    std::vector<memory_life> lives;
    std::vector<std::pair<std::int64_t, shown_pool>> pools;
    std::vector<shown_event> events;
    std::size_t size() const {
      return calls.size() + external.size() + waits.size() + markers.size() + names.size() + memory.size() +
             lives.size() + pools.size() + events.size();
    }
  };

  bool wants(CUpti_ActivityKind kind) const { return wishes_.has(kind); }
  void wish(CUpti_ActivityKind kind, std::uint32_t context, bool on);
  void put_waits(const staged& now);
  void put_flush(std::int64_t began);
  void put_memory(staged& now, std::uint32_t process_id);
  void end_lives();
  std::uint64_t thread_number() const;
  bool wants_device() const;
  CUpti_ActivityKind kind_of(const api::work_record& w) const;
  std::string begin_device(bool connected);
  std::string begin_samples(bool connected);
  void fetch_samples();
  void end_samples();
  void refresh();
  void fetch(bool all);
  void forget_contexts();
  void put_devices();
  void ask_for_buffer();
  void deliver();
  void take_work(const device_work& w);
  void put_work(const noted_work& w);
  bool take_node(const noted_work& w);
  void put_marker(const marker_of_thread& m, std::uint32_t process_id);
  const char* kept(std::string_view text);
  bool put(CUpti_ActivityKind kind, const void* record);
  void run();

  numbers& numbers_;

  static constexpr std::size_t most_callbacks = 2048;

  std::atomic<bool> any_{false}, system_threads_{false};
  wishes wishes_;
  /// By domain and function: wanted.
  std::array<std::array<std::atomic<bool>, most_callbacks>, 2> calls_{};

  std::mutex control_mutex_;  // held while kinds change
  bool ended_ = false;
  std::thread thread_;

  std::mutex stage_mutex_;  // guards what threads of the program leave here
  staged stage_;
  std::set<std::uint32_t> noted_contexts_;
  memory_lives lives_;
  std::atomic<std::uint32_t> context_round_{1};
  std::atomic<std::uint64_t> lost_{0}, device_lost_{0}, told_lost_{0};

  std::mutex deliver_mutex_;  // guards what follows; held while the server is asked and buffers are filled
  tool_clock clock_;
  bool fed_ = false;  ///< the device's work comes here
  device_records records_{[this](const device_work& w) { take_work(w); }};
  std::vector<noted_work> work_;
  board_feed boards_;
  std::vector<api::board_sample> samples_;
  graph_traces graph_traces_;
  std::vector<graph_trace> graphs_over_;
  std::atomic<bool> devices_shown_{false};
  record_buffers buffers_;
  std::set<std::string, std::less<>> texts_;  ///< for ever: records point to them

  /// Context, stream and manner of the newest calls, and the graphs of those that launch one.
  recent_numbers<std::uint64_t> places_{std::size_t{1} << 20};
  recent_numbers<std::uint32_t> graphs_{std::size_t{1} << 16};

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, last_fetched_ = false;
  std::chrono::milliseconds period_{0};
  bool new_period_ = false;
};

}  // namespace outboard::frontend::cupti
