#include "frontend/profile.hh"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/blocked_signals.hh"
#include "base/log.hh"
#include "frontend/profile_calls.hh"
#include "frontend/profile_source.hh"
#include "frontend/profile_writer.hh"

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
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(tried_, true)) return;
    }
    if (writer_.begin(how.file, how.summary)) watch_calls(call_watcher::profile, true);
  }

  void attach(session& server, bool offered) {
    if (!on()) return;
    server_ = &server;
    source_.emplace(server);
    const std::string refusal = offered ? source_->start() : "the server is older than profiles";
    if (refusal.empty()) {
      source_->fetch(false, writer_);
    } else {
      log::error("the profile has the program's calls alone: ", refusal);
      writer_.note(refusal);
      source_.reset();
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
      const std::string lack =
          "the profile lacks what the device did last: the server has not told it within " +
          std::to_string(waited.count()) + " s";
      log::error(lack);
      writer_.note(lack);
    }
    writer_.add_calls(calls_.take());
    writer_.end(moved);
  }

  profile_calls& calls() { return calls_; }

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

  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
      lock.unlock();
      if (source_) source_->fetch(false, writer_);
      writer_.add_calls(calls_.take());
      writer_.add_traffic(server_->moved());
      writer_.flush();
      lock.lock();
    }
    lock.unlock();
    if (source_) source_->fetch(true, writer_);
    lock.lock();
    over_ = true;
    changed_.notify_all();
  }

  // Set before our thread begins, which alone asks from then on.
  session* server_ = nullptr;
  std::optional<profile_source> source_;  ///< none: the server tells nothing

  profile_calls calls_;
  profile_writer writer_;
  std::thread thread_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool tried_ = false, ending_ = false, over_ = false;  ///< the program ends; our thread has fetched all
};

}  // namespace

void start(const profile_settings& how) { recording::instance().start(how); }
void attach(session& server, bool offered) { recording::instance().attach(server, offered); }
void finish(const traffic& moved) { recording::instance().finish(moved); }
void forked() { watch_calls(call_watcher::profile, false); }
void note_call(lane& own, std::string_view name, std::chrono::steady_clock::time_point begin,
               std::chrono::steady_clock::time_point end) {
  recording::instance().calls().note(own, name, own.how, profile_clock::at(begin), profile_clock::at(end));
}
void end_lane(lane& ended) {
  if (on()) recording::instance().calls().end(ended);
}

}  // namespace outboard::frontend::profile
