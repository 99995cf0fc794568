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
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        ending_ = true;
      }
      changed_.notify_all();
      thread_.join();
      if (recording_) fetch(true);
      write_calls();
    }
    if (file_.is_open()) {
      add_traffic(moved);
      file_.text() += "\n]\n";
      file_.close();
    }
    if (!summarise_) return;
    const std::string text =
        summary_.text({nanoseconds(clock::now()) - began_, moved.sent, moved.received, dropped_});
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
      write_calls();
      add_traffic(server_->moved());
      if (file_.is_open()) file_.flush();  // a program may be killed
      lock.lock();
    }
  }

  /// All that the server has. What lies between two looks at the clocks is written when both are known.
  void fetch(bool all) {
    clock_.begin_look();
    bool more = true;
    for (int further = 0; more || further < further_questions; further += more ? 0 : 1) {
      if (!take(all, more)) break;
      if (more) write_records();
    }
    write_records();
  }

  /// One reply. False: there will be none.
  bool take(bool all, bool& more) {
    marshal::profile_take_reply reply;
    const marshal::profile_take_body body{all};
    if (server_->lost() || !ask(marshal::service::profile_take, &body, reply)) return false;
    for (std::string& name : reply.names) names_.push_back(profile_events::demangled(name));
    records_.insert(records_.end(), reply.records.begin(), reply.records.end());
    dropped_ = reply.dropped;
    more = reply.more;
    return true;
  }

  void write_records() {
    for (const api::work_record& w : records_) {
      add(w);
      if (file_.is_open()) file_.flush_some();
    }
    records_.clear();
  }

  void add(const api::work_record& w) {
    if (w.end < w.begin) return;
    const std::string name = w.kind != api::work_kind::kernel ? profile_events::name_of(w)
                             : w.name < names_.size()         ? names_[w.name]
                                                              : std::string("unknown kernel");
    const std::int64_t at = clock_.ours(w.begin) - began_;
    if (summarise_) summary_.add_work(name, w, at);
    if (!file_.is_open()) return;
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

  std::mutex mutex_;  // guards the next four
  bool tried_ = false, ending_ = false;
  std::condition_variable changed_;
  std::vector<profile_events::call> calls_;

  // One thread at a time: the one that attaches, then ours, then the one that finishes.
  session* server_ = nullptr;
  bool summarise_ = false, recording_ = false;
  std::int64_t began_ = 0;
  std::int32_t process_ = 0;
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
  std::vector<std::byte> request_, reply_;
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
