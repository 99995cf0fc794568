#include "frontend/nvtx/ranges.hh"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/steady.hh"
#include "frontend/profile/profile.hh"

namespace outboard::frontend::nvtx {
namespace {

struct open_range {
  annotated about;
  bool noted = false;  ///< somebody wanted it when it began
  bool told = false;   ///< of that, the profiler in the program
};

struct thread_ranges {
  std::int32_t thread = ::gettid();
  std::mutex mutex;  // guards what follows: its thread changes it, open_ranges() looks
  std::vector<open_range> open;
};

/// All that threads share.
struct book {
  std::mutex mutex;  // guards the list; taken before a thread's own
  std::vector<std::unique_ptr<thread_ranges>> threads;
  std::mutex started_mutex;  // guards what follows
  std::unordered_map<std::uint64_t, open_range> started;
};

/// Never destroyed: threads may annotate while the process ends.
std::atomic<book*> shared{nullptr};
std::atomic<std::uint64_t> last_id{0};
thread_local constinit thread_ranges* own_ranges = nullptr;

/// Gives up a thread's ranges when it ends.
struct thread_end {
  bool used = false;
  ~thread_end();
};
thread_local thread_end at_end;

/// The locks of other threads are the parent's, and may be held for ever.
void forked() {
  auto* const fresh = new book;
  if (const thread_ranges* const before = own_ranges) {
    auto kept = std::make_unique<thread_ranges>();
    kept->open = before->open;  // nobody else changes them
    own_ranges = kept.get();
    fresh->threads.push_back(std::move(kept));
  }
  shared = fresh;
}

book& all() {
  if (book* const made = shared.load(std::memory_order_acquire)) return *made;
  auto* const fresh = new book;
  book* none = nullptr;
  if (!shared.compare_exchange_strong(none, fresh)) {
    delete fresh;
    return *none;
  }
  pthread_atfork(nullptr, nullptr, forked);
  return *fresh;
}

thread_ranges& own() {
  if (own_ranges) return *own_ranges;
  auto made = std::make_unique<thread_ranges>();
  own_ranges = made.get();
  at_end.used = true;  // makes it be there
  book& shared_by_all = all();
  const std::lock_guard lock(shared_by_all.mutex);
  shared_by_all.threads.push_back(std::move(made));
  return *own_ranges;
}

annotation_observer* observer() {
  annotation_observer* const tool = annotation_tool.load(std::memory_order_acquire);
  return tool && tool->wants_annotations() ? tool : nullptr;
}

/// One that begins now.
open_range begun(annotation_kind kind, const annotation_domain& domain, const reader& read) {
  open_range range;
  range.noted = wanted();
  annotated& a = range.about;
  if (range.noted) a.what = read();
  a.what.domain = &domain;
  a.kind = kind;
  a.thread = own().thread;
  a.id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  a.begin = a.end = steady_nanoseconds();
  if (annotation_observer* const tool = observer(); tool && range.noted) {
    tool->annotated_now(a);
    range.told = true;
  }
  return range;
}

void over(open_range&& range, std::int64_t now) {
  if (!range.noted) return;
  range.about.end = now;
  if (annotation_observer* const tool = range.told ? observer() : nullptr) tool->range_over(range.about);
  if (profile::wants_annotations()) profile::note(std::move(range.about));
}

thread_end::~thread_end() {
  thread_ranges* const ended = std::exchange(own_ranges, nullptr);
  book* const all = shared.load();
  if (!ended || !all) return;
  // What it has not ended goes as far as the thread did.
  std::vector<open_range> left;
  {
    const std::lock_guard lock(ended->mutex);
    left.swap(ended->open);
  }
  const std::int64_t now = steady_nanoseconds();
  for (open_range& range : left) {
    range.about.open = true;
    over(std::move(range), now);
  }
  const std::lock_guard lock(all->mutex);
  std::erase_if(all->threads, [&](const auto& one) { return one.get() == ended; });
}

bool is_of(const open_range& range, const annotation_domain& domain) {
  return range.about.what.domain == &domain;
}

}  // namespace

bool wanted() { return profile::wants_annotations() || observer(); }

void mark(const annotation_domain& domain, const reader& read) {
  if (!wanted()) return;
  annotated about = begun(annotation_kind::mark, domain, read).about;
  if (profile::wants_annotations()) profile::note(std::move(about));
}

int push(const annotation_domain& domain, const reader& read) {
  open_range range = begun(annotation_kind::pushed, domain, read);
  thread_ranges& mine = own();
  const std::lock_guard lock(mine.mutex);
  const auto level =
      std::ranges::count_if(mine.open, [&](const open_range& one) { return is_of(one, domain); });
  mine.open.push_back(std::move(range));
  return static_cast<int>(level);
}

int pop(const annotation_domain& domain) {
  constexpr int nothing_to_pop = -1;
  const std::int64_t now = steady_nanoseconds();
  thread_ranges& mine = own();
  open_range ended;
  int level = nothing_to_pop;
  {
    const std::lock_guard lock(mine.mutex);
    const auto of_domain = [&](const open_range& one) { return is_of(one, domain); };
    const auto found = std::find_if(mine.open.rbegin(), mine.open.rend(), of_domain);
    if (found == mine.open.rend()) return nothing_to_pop;
    ended = std::move(*found);
    // One of another domain began in it and goes on: they do not lie in each other, so a row cannot hold
    // both.
    if (found != mine.open.rbegin()) ended.about.kind = annotation_kind::started;
    mine.open.erase(std::next(found).base());
    level = static_cast<int>(std::ranges::count_if(mine.open, of_domain));
  }
  over(std::move(ended), now);
  return level;
}

std::uint64_t start(const annotation_domain& domain, const reader& read) {
  open_range range = begun(annotation_kind::started, domain, read);
  const std::uint64_t id = range.about.id;
  book& shared_by_all = all();
  const std::lock_guard lock(shared_by_all.started_mutex);
  shared_by_all.started.emplace(id, std::move(range));
  return id;
}

void end(std::uint64_t id) {
  const std::int64_t now = steady_nanoseconds();
  open_range ended;
  {
    book& shared_by_all = all();
    const std::lock_guard lock(shared_by_all.started_mutex);
    const auto found = shared_by_all.started.find(id);
    if (found == shared_by_all.started.end()) return;
    ended = std::move(found->second);
    shared_by_all.started.erase(found);
  }
  over(std::move(ended), now);
}

void name(named_thing what, std::uint64_t handle, const std::function<std::string()>& read) {
  if (!wanted()) return;
  given_name given{what, handle, read()};
  if (annotation_observer* const tool = observer()) tool->named(given);
  if (profile::wants_annotations()) profile::note(std::move(given));
}

std::vector<annotated> open_ranges() {
  const std::int64_t now = steady_nanoseconds();
  std::vector<annotated> out;
  const auto take = [&](const open_range& range) {
    if (!range.noted) return;
    out.push_back(range.about);
    out.back().end = now;
    out.back().open = true;
  };
  book& shared_by_all = all();
  {
    const std::lock_guard lock(shared_by_all.mutex);
    for (const auto& one : shared_by_all.threads) {
      const std::lock_guard of_thread(one->mutex);
      std::ranges::for_each(one->open, take);
    }
  }
  const std::lock_guard lock(shared_by_all.started_mutex);
  for (const auto& [id, range] : shared_by_all.started) take(range);
  return out;
}

}  // namespace outboard::frontend::nvtx
