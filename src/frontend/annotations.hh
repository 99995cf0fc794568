// What a program says of its own work by NVTX: ranges, marks, and names of its threads and handles. Two parts
// get it: the profile (profile.hh), and the profiler in the program. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace outboard::frontend {

/// A library's own annotations, apart from others'. Handles of the program point to it, and so do annotations
/// that wait to be written: it is never destroyed.
class annotation_domain {
 public:
  explicit annotation_domain(std::string name) : name_(std::move(name)) {}
  annotation_domain(const annotation_domain&) = delete;
  annotation_domain& operator=(const annotation_domain&) = delete;

  /// The one of annotations that name none.
  static annotation_domain& unnamed() {
    static annotation_domain* const one = new annotation_domain("");
    return *one;
  }

  const std::string& name() const { return name_; }
  bool is_default() const { return this == &unnamed(); }

  /// The newest name of a category counts.
  void name_category(std::uint32_t number, std::string name) {
    auto* const fresh = new category{number, std::move(name), newest_.load(std::memory_order_relaxed)};
    while (!newest_.compare_exchange_weak(fresh->older, fresh, std::memory_order_release)) {
    }
  }
  /// nullptr: it has none. Lasts as long as the process.
  const std::string* category_name(std::uint32_t number) const {
    // A list without a lock: a forked child may use it whatever its parent's threads were doing.
    const category* c = newest_.load(std::memory_order_acquire);
    while (c && c->number != number) c = c->older;
    return c ? &c->name : nullptr;
  }

 private:
  struct category {
    const std::uint32_t number;
    const std::string name;
    category* older;
  };

  const std::string name_;
  std::atomic<category*> newest_{nullptr};
};

/// What the program attaches to a range or mark. Its alternatives are NVTX's kinds of payload.
using annotation_payload =
    std::variant<std::monostate, std::uint64_t, std::int64_t, double, std::uint32_t, std::int32_t, float>;

struct annotation {
  const annotation_domain* domain = &annotation_domain::unnamed();
  std::string text;  ///< UTF-8, if the program's was
  std::uint32_t category = 0;
  std::optional<std::uint32_t> color;  ///< alpha, red, green, blue, from the highest byte on
  annotation_payload payload;
};

/// pushed: a range of its thread, inside or around that thread's others. started: a range that any thread may
/// end. mark: a moment.
enum class annotation_kind : std::uint8_t { pushed, started, mark };

/// One that is over. Times of std::chrono::steady_clock, nanoseconds.
struct annotated {
  annotation_kind kind = annotation_kind::pushed;
  annotation what;
  std::int32_t thread = 0;  ///< that began it, as the system numbers threads
  std::uint64_t id = 0;     ///< unique in the process
  std::int64_t begin = 0, end = 0;
  bool open = false;  ///< the program has not ended it yet
};

enum class named_thing : std::uint8_t { thread, device, context, stream };

struct given_name {
  named_thing what = named_thing::thread;
  std::uint64_t handle = 0;  ///< a thread's number, a device's ordinal, else the program's handle
  std::string name;
};

/// A call of NVTX, with its arguments as a struct of eight bytes for each.
struct annotation_call {
  const char* name = nullptr;  ///< lasts as long as the process
  const void* parameters = nullptr;
  const void* result = nullptr;  ///< nullptr: it returns nothing
};

/// The profiler in the program. One in a process, never destroyed; it gets its reports on the thread that
/// calls.
class annotation_observer {
 public:
  /// Of ranges, marks and names; of the calls themselves.
  virtual bool wants_annotations() const = 0;
  virtual bool wants_annotation_calls() const = 0;
  /// A range begins, or there is a mark. `about.end` is not known yet.
  virtual void annotated_now(const annotated& about) = 0;
  virtual void range_over(const annotated& about) = 0;
  virtual void named(const given_name& name) = 0;
  virtual void annotation_called(const annotation_call& call) = 0;

 protected:
  ~annotation_observer() = default;
};
inline std::atomic<annotation_observer*> annotation_tool{nullptr};

}  // namespace outboard::frontend
