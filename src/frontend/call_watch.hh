// Which parts want to see every API call: the shim looks at one word, which is usually zero. Calls are
// numbered while a part watches, and requests to the server are known by the call that sent them. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace outboard::frontend {

struct lane;

/// tool: a profiler in the program (frontend/cupti).
enum class call_watcher : unsigned { trace = 1, profile = 2, tool = 4 };

inline std::atomic<unsigned> call_watchers{0};

inline bool calls_watched() { return call_watchers.load(std::memory_order_relaxed) != 0; }
inline bool calls_watched_by(call_watcher who) {
  return (call_watchers.load(std::memory_order_relaxed) & static_cast<unsigned>(who)) != 0;
}
void watch_calls(call_watcher who, bool on);

/// How often a tool began to watch: what it noted of calls under way before that holds no more.
inline std::atomic<std::uint32_t> tool_watch{0};
/// The number of the CUDA runtime's call that this thread is in, as reported to a tool that watches; 0: none.
std::uint32_t runtime_call_of(const lane& own);

/// The number of a call that begins now: from 1 on.
std::uint32_t next_call_number();

/// A request leaves: it belongs to the call that this thread makes. For the parts that watch.
void note_request(std::uint64_t ticket, std::uint32_t call);
/// The call that sent this request; 0: not known, or long ago.
std::uint32_t call_of_request(std::uint64_t ticket);

/// One API call of the program, as its tool sees it, on the thread that makes it.
struct tool_call {
  std::uint32_t function = 0;        ///< opcode
  const char* name = nullptr;        ///< lasts as long as the process
  const void* parameters = nullptr;  ///< its arguments, laid out as a struct of them
  const void* stream = nullptr;      ///< the program's handle of where its work goes
  std::uint32_t number = 0;          ///< shared with the call of the runtime that makes it
  void* result = nullptr;            ///< of the API's own type; when it returns
  std::uint64_t of_tool = 0;         ///< the tool's own, from one time to the other
  std::chrono::steady_clock::time_point begin{}, end{};  ///< end: when it returns
};

/// The program's tool. One in a process; never destroyed.
class call_observer {
 public:
  virtual void entered(lane& own, tool_call& call) = 0;
  virtual void left(lane& own, tool_call& call) = 0;
  /// The process has a session now, and no other thread has a call of its own yet. Returns why nothing can be
  /// recorded of what the tool wants; empty: it can. With the process's lock: the tool is not called.
  virtual std::string connected() = 0;
  /// Reports that to the tool, whose function may call the driver.
  virtual void cannot_record(const std::string& why) = 0;
  /// The process is about to lose its session.
  virtual void ending() = 0;

 protected:
  ~call_observer() = default;
};
inline std::atomic<call_observer*> tool{nullptr};

/// A call of the program while a part watches, from its begin to over(). On its thread.
class watched_call {
 public:
  explicit watched_call(const tool_call& about);
  /// `result`: of the API's own type. Reports to all that watch, except to the trace.
  void over(void* result);

  /// A call that the program makes, not another call or a callback of one.
  bool outermost() const { return outermost_; }
  const lane& own() const { return own_; }
  std::chrono::steady_clock::duration took() const { return call_.end - call_.begin; }

 private:
  lane& own_;
  const bool outermost_;
  call_observer* tool_ = nullptr;
  tool_call call_;
};

}  // namespace outboard::frontend
