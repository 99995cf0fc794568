#include "frontend/profile/profile.hh"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/blocked_signals.hh"
#include "base/log.hh"
#include "frontend/profile/profile_calls.hh"
#include "frontend/profile/profile_writer.hh"
#include "frontend/profile/work_feed.hh"
#include "frontend/settings.hh"

namespace outboard::frontend::profile {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds pause{200};
/// A program that ends waits for its last records while a server sends them, and no longer than this for one
/// that is silent; a server that never stops sending is not waited for either.
constexpr std::chrono::seconds longest_silence{2}, longest_end{30};

class recording {
 public:
  static recording& instance() {
    static recording* const one = new recording;  // never destroyed: see process::instance()
    return *one;
  }

  void start(const profile_settings& how) {
    if (tried_.exchange(true)) return;
    const bool begun = writer_.begin(how.file, how.summary, expected_since_.load());
    if (begun) watch_calls(call_watcher::profile, true);
    annotations_expected = false;
  }

  void expect(open_ranges open) {
    open_ranges_ = open;
    if (on() || tried_) return;
    const auto configured = client_settings();
    // What is wrong with the settings is said when the session begins.
    if (!configured.ok() || !configured->profile.on()) return;
    std::int64_t none = 0;
    expected_since_.compare_exchange_strong(none, profile_clock::now());
    annotations_expected = true;
  }

  void attach(session& server, bool offered, profile_services services) {
    if (!on()) {
      if (annotations_expected.exchange(false)) (void)notes().take();
      return;
    }
    server_ = &server;
    const std::string refusal =
        offered ? work_feed::instance().join(server, writer_, services) : "the server is older than profiles";
    if (refusal.empty()) {
      fetch(false);
    } else {
      log::error("the profile has the program's calls alone: ", refusal);
      writer_.note(refusal);
    }
    const blocked_signals blocked;  // signals are the program's business
    thread_ = std::thread([this] { run(); });
  }

  void finish(const traffic& moved) {
    if (!on()) return;
    watch_calls(call_watcher::profile, false);
    const clock::time_point since = clock::now();
    if (thread_.joinable() && !fetched_in_time()) {
      const auto waited = std::chrono::round<std::chrono::seconds>(clock::now() - since);
      lacks("what the device did last: the server has not told it within " + std::to_string(waited.count()) +
            " s");
    }
    writer_.add_calls(calls_.take());
    if (const open_ranges open = open_ranges_)
      for (annotated& range : open()) writer_.notes().note(std::move(range));
    writer_.end(moved);
  }

  void lacks(const std::string& what) {
    const std::string line = "the profile lacks " + what;
    log::error(line);
    writer_.note(line);
  }

  profile_calls& calls() { return calls_; }
  profile_notes& notes() { return writer_.notes(); }

 private:
  /// Lets our thread fetch what is left and ends it. False: the server is silent, and the thread stays where
  /// it is, asleep until the session says goodbye; what it brings then is dropped.
  bool fetched_in_time() {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    const auto over = [this] { return over_; };
    const clock::time_point last = clock::now() + longest_end;
    while (!over_ && clock::now() < last) {
      const std::uint64_t before = server_->moved().received;
      if (!changed_.wait_for(lock, longest_silence, over) && server_->moved().received == before) break;
    }
    const bool whole = over_;
    lock.unlock();
    whole ? thread_.join() : thread_.detach();
    return whole;
  }

  /// Where the server tells nothing, nothing comes.
  void fetch(bool all) { work_feed::instance().fetch(all, writer_); }

  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
      lock.unlock();
      fetch(false);
      writer_.add_calls(calls_.take());
      writer_.add_notes();
      writer_.add_traffic(server_->moved());
      writer_.flush();
      lock.lock();
    }
    lock.unlock();
    fetch(true);
    lock.lock();
    over_ = true;
    changed_.notify_all();
  }

  std::atomic<bool> tried_{false};

  // Set before our thread begins, which alone asks from then on.
  session* server_ = nullptr;

  std::atomic<open_ranges> open_ranges_{nullptr};  ///< none: the program has none
  std::atomic<std::int64_t> expected_since_{0};    ///< annotations came before the first call; 0: none did

  profile_calls calls_;
  profile_writer writer_;
  std::thread thread_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool ending_ = false, over_ = false;  ///< the program ends; our thread has fetched all
};

}  // namespace

void start(const profile_settings& how) { recording::instance().start(how); }
void attach(session& server, bool offered, profile_services services) {
  recording::instance().attach(server, offered, services);
}
void lacks(const std::string& what) {
  if (on()) recording::instance().lacks(what);
}
void finish(const traffic& moved) { recording::instance().finish(moved); }
void forked() {
  watch_calls(call_watcher::profile, false);
  annotations_expected = false;
}
void note_call(lane& own, std::string_view name, std::chrono::steady_clock::time_point begin,
               std::chrono::steady_clock::time_point end) {
  recording::instance().calls().note(own, name, own.how, profile_clock::at(begin), profile_clock::at(end));
}
void end_lane(lane& ended) {
  if (on()) recording::instance().calls().end(ended);
}
void expect_annotations(open_ranges open) { recording::instance().expect(open); }
void note(annotated&& about) { recording::instance().notes().note(std::move(about)); }
void note(given_name&& name) { recording::instance().notes().name(std::move(name)); }
void note_stream(std::uint32_t call, const void* stream) {
  profile_notes& notes = recording::instance().notes();
  if (notes.streams()) notes.note_stream(call, reinterpret_cast<std::uint64_t>(stream));
}

}  // namespace outboard::frontend::profile
