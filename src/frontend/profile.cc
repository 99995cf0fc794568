#include "frontend/profile.hh"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.hh"
#include "base/log.hh"
#include "frontend/profile_clock.hh"
#include "frontend/profile_events.hh"
#include "frontend/profile_summary.hh"
#include "frontend/report_file.hh"
#include "frontend/session.hh"
#include "marshal/bodies.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::frontend::profile {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds pause{200};
/// A program that ends waits for its last records while a server sends them, and no longer than this for one
/// that is silent; a server that never stops sending is not waited for either.
constexpr std::chrono::seconds longest_silence{2}, longest_end{30};
/// Questions behind those that bring records: one of them is quick, and says where the clocks stand.
constexpr int further_questions = 4;
/// What the library answers by itself in less is counted, but not drawn: nine of ten calls are so.
constexpr std::int64_t short_call = 1000;
/// Devices stand below the process that uses them, under numbers that are no process's.
constexpr std::int64_t first_device_group = std::int64_t{1} << 32;

std::int64_t nanoseconds(clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

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
      began_ = nanoseconds(clock::now());
      process_ = ::getpid();
      summarise_ = how.summary;
    }
    if (!how.file.empty() && file_.open(how.file, "profile")) begin_file();
    if (file_.is_open() || how.summary) watch_calls(call_watcher::profile, true);
  }

  void attach(session& server, bool offered) {
    if (!on()) return;
    server_ = &server;
    std::string refusal = offered ? "" : "the server is older than profiles";
    if (offered && !begin_records(refusal)) refusal = "the session is lost";
    if (!refusal.empty()) {
      log::error("the profile has the program's calls alone: ", refusal);
      note(refusal);
    }
    recording_ = refusal.empty();
    const blocked_signals blocked;  // signals are the program's business
    thread_ = std::thread([this] { run(); });
  }

  void finish(const traffic& moved) {
    if (!on()) return;
    watch_calls(call_watcher::profile, false);
    const clock::time_point since = clock::now();
    const bool whole = !thread_.joinable() || fetched_in_time();
    const std::lock_guard writing(writing_);
    ended_ = true;  // a thread that still waits for an answer leaves all alone when it comes
    if (!whole) {
      const auto waited = std::chrono::round<std::chrono::seconds>(clock::now() - since);
      const std::string lack =
          "the profile lacks what the device did last: the server has not told it within " +
          std::to_string(waited.count()) + " s";
      log::error(lack);
      note(lack);
    }
    write_records();
    write_calls();
    if (file_.is_open()) {
      add_traffic(moved);
      file_.text() += "\n]\n";
      file_.close();
    }
    if (!summarise_) return;
    const std::string text =
        summary_.text({nanoseconds(clock::now()) - began_, moved.sent, moved.received, dropped_}, names_);
    std::fputs(text.c_str(), stderr);
  }

  void note_call(std::string_view name, answered how, clock::time_point begin, clock::time_point end) {
    thread_local const std::int32_t thread = ::gettid();
    const std::lock_guard lock(mutex_);
    calls_.push_back({name, how, thread, nanoseconds(begin), nanoseconds(end)});
  }

 private:
  void begin_file() {
    std::string& text = file_.text();
    profile_events::name_group(text, process_, "process " + std::to_string(process_), 0);
    text.front() = '[';  // the only event that no comma stands before
  }

  void note(std::string_view what) {
    if (file_.is_open())
      profile_events::add_note(file_.text(), process_, nanoseconds(clock::now()) - began_, what);
  }

  /// Lets our thread fetch what is left and ends it. False: the server is silent, and the thread stays where
  /// it is, asleep until the session says goodbye.
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

  template <class Reply, class Body>
  bool ask(marshal::service what, const Body* body, Reply& reply) {
    request_.clear();
    wire::writer w(request_);
    if (body) marshal::put_body(w, *body);
    lane& own = this_lane();
    const std::int64_t asked = nanoseconds(clock::now());
    if (server_->call({static_cast<std::uint32_t>(what), own.id, 0, request_, {}}, reply_) != CUDA_SUCCESS)
      return false;
    const std::int64_t answered = nanoseconds(clock::now());
    wire::reader from(reply_);
    reply = marshal::take_body<Reply>(from);
    if (!from.finished()) return server_->malformed_reply("a profile"), false;
    if constexpr (requires { reply.came; }) {
      const std::lock_guard writing(writing_);
      const auto came = static_cast<std::int64_t>(reply.came), left = static_cast<std::int64_t>(reply.left);
      if (left) clock_.note(asked, came, left, answered);
    }
    return true;
  }

  bool begin_records(std::string& refusal) {
    marshal::profile_start_reply reply;
    const marshal::profile_take_body* const nothing = nullptr;
    if (!ask(marshal::service::profile_start, nothing, reply)) return false;
    refusal = std::move(reply.refusal);
    if (refusal.empty()) fetch(false);
    return true;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
      lock.unlock();
      if (recording_) fetch(false);
      write_the_rest();
      lock.lock();
    }
    lock.unlock();
    if (recording_) fetch(true);
    lock.lock();
    over_ = true;
    changed_.notify_all();
  }

  /// What the program did since the last time.
  void write_the_rest() {
    const std::lock_guard writing(writing_);
    if (ended_) return;
    write_calls();
    add_traffic(server_->moved());
    if (file_.is_open()) file_.flush();  // a program may be killed
  }

  /// All that the server has. What lies between two looks at the clocks is written when both are known.
  void fetch(bool all) {
    {
      const std::lock_guard writing(writing_);
      clock_.begin_look();
    }
    bool more = true;
    for (int further = 0; more || further < further_questions; further += more ? 0 : 1) {
      if (!take(all, more)) break;
    }
    const std::lock_guard writing(writing_);
    if (!ended_) write_records();
  }

  /// One reply. False: there will be none.
  bool take(bool all, bool& more) {
    marshal::profile_take_reply reply;
    const marshal::profile_take_body body{all};
    if (server_->lost() || !ask(marshal::service::profile_take, &body, reply)) return false;
    const std::lock_guard writing(writing_);
    if (ended_) return false;
    for (std::string& name : reply.names) names_.push_back(profile_events::demangled(name));
    records_.insert(records_.end(), reply.records.begin(), reply.records.end());
    dropped_ = reply.dropped;
    more = reply.more;
    if (more) write_records();
    return true;
  }

  /// With the lock.
  void write_records() {
    for (const api::work_record& w : records_) {
      add(w);
      if (file_.is_open()) file_.flush_some();
    }
    records_.clear();
  }

  void add(const api::work_record& w) {
    if (w.end < w.begin) return;
    const std::int64_t at = clock_.ours(w.begin) - began_;
    if (summarise_) summary_.add_work(w, at);
    if (!file_.is_open()) return;
    const std::string name = w.kind != api::work_kind::kernel ? profile_events::name_of(w)
                             : w.name < names_.size()         ? names_[w.name]
                                                              : std::string("unknown kernel");
    const std::int64_t group = first_device_group + (std::int64_t{process_} << 8) + w.device;
    if (groups_.insert(group).second) {
      std::string title = "device " + std::to_string(w.device) + " of process " + std::to_string(process_) +
                          " (clocks agree to " + std::to_string(clock_.error() / 1000) + " us)";
      profile_events::name_group(file_.text(), group, title, 1 + static_cast<int>(w.device));
    }
    if (rows_.insert({group, w.stream}).second)
      profile_events::name_row(file_.text(), group, w.stream, "stream " + std::to_string(w.stream));
    profile_events::add_work(file_.text(), group, w, name, at);
  }

  void write_calls() {
    {
      const std::lock_guard lock(mutex_);
      written_.swap(calls_);
    }
    for (profile_events::call& c : written_) {
      if (summarise_) summary_.add_call(c.how, c.end - c.begin);
      const bool worth_drawing = c.how != answered::locally || c.end - c.begin >= short_call;
      c.begin -= began_;
      c.end -= began_;
      if (!file_.is_open() || !worth_drawing) continue;
      profile_events::add_call(file_.text(), process_, c);
      file_.flush_some();
    }
    written_.clear();
  }

  void add_traffic(const traffic& now) {
    if (!file_.is_open()) return;
    profile_events::add_traffic(file_.text(), process_, nanoseconds(clock::now()) - began_,
                                now.sent - told_.sent, now.received - told_.received);
    told_ = now;
  }

  std::mutex mutex_;                                    // guards the next five; after writing_
  bool tried_ = false, ending_ = false, over_ = false;  ///< the program ends; our thread has fetched all
  std::condition_variable changed_;
  std::vector<profile_events::call> calls_;

  // Set before our thread begins.
  session* server_ = nullptr;
  bool summarise_ = false, recording_ = false;
  std::int64_t began_ = 0;
  std::int32_t process_ = 0;

  std::mutex writing_;  // guards what follows; never held while the server is asked
  bool ended_ = false;  ///< all is written
  report_file file_;
  profile_clock clock_;
  profile_summary summary_;
  std::uint64_t dropped_ = 0;
  traffic told_{};
  std::vector<std::string> names_;
  std::vector<api::work_record> records_;
  std::set<std::int64_t> groups_;
  std::set<std::pair<std::int64_t, std::uint32_t>> rows_;
  std::vector<profile_events::call> written_;

  std::vector<std::byte> request_, reply_;  // of whoever asks: the one that attaches, then our thread
  std::thread thread_;
};

}  // namespace

void start(const profile_settings& how) { recording::instance().start(how); }
void attach(session& server, bool offered) { recording::instance().attach(server, offered); }
void finish(const traffic& moved) { recording::instance().finish(moved); }
void forked() { watch_calls(call_watcher::profile, false); }
void note_call(std::string_view name, answered how, std::chrono::steady_clock::time_point begin,
               std::chrono::steady_clock::time_point end) {
  recording::instance().note_call(name, how, begin, end);
}

}  // namespace outboard::frontend::profile
