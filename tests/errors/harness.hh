// A table of wrong calls and the code that runs it. Calls run in child processes, several at once, so that a
// crash, a hang or a sticky error affects only one; results are written to a file or compared with one. Knows
// no API: the programs that include it bring their calls and prepare the process for each. One main thread
// owns everything here.
//   PROGRAM --record FILE
//     writes what the device at hand answers
//   PROGRAM --compare FILE [--known FILE --at WORD] [--most PERCENT]
//     compares; fails if a difference is not listed, or if more than 1 percent (or PERCENT) differ
//   PROGRAM --only NAME-PART, --alone (a process for each), --reverse, --jobs N, --within SECONDS, --list
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace wrong_calls {

constexpr int call_seconds = 15;      ///< a call that takes longer counts as a hang
constexpr std::size_t in_a_row = 40;  ///< the most calls that one child makes

/// The state of the process when the call is made; the program defines what each state means.
struct state {
  const char* name;
  bool alone;   ///< a process for each call, because a call may spoil the process
  bool forked;  ///< the call is made by a forked child of the prepared process
};

struct wrong_call {
  std::string name;
  const state* in;
  int (*call)();
};

struct answer {
  std::string code, after;  ///< code: may be "crash" or "hang"; after: what the next call says
  bool operator==(const answer& o) const { return code == o.code && after == o.after; }
  std::string text() const { return code + "\t" + after; }
};

/// Thrown through the call when its set-up failed.
struct not_set_up {
  int code, line;
};
#define NEED(call)                                                                                          \
  do {                                                                                                      \
    if (const int need_code = static_cast<int>(call)) throw ::wrong_calls::not_set_up{need_code, __LINE__}; \
  } while (0)

/// The program that the table belongs to.
class program {
 public:
  virtual ~program() = default;
  virtual std::vector<wrong_call> table() const = 0;
  virtual std::string device() = 0;
  /// Called before each call: brings the process into the state. Throws not_set_up.
  virtual void prepare(const state& in) = 0;
  /// Called after it: returns what the next calls report.
  virtual std::string after(const state& in) = 0;
  /// Whether further calls may be made in this process.
  virtual bool healthy(const std::string& after) = 0;
};

struct options {
  std::string record, compare, known, at, only;
  std::vector<std::string> serve;  ///< names; the child's part
  std::size_t jobs = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 8);
  bool alone = false, list = false, reverse = false;
  double most = 1.0;  ///< percent that may differ
  int within = 0;     ///< seconds after which no more children are started
};

// ---- the child

/// Distinguishes a call that hangs from a set-up that hangs.
inline void prepare(program& p, const wrong_call& c) {
  p.prepare(*c.in);
  std::printf("\nREADY\t%s\n", c.name.c_str());
  std::fflush(stdout);
}

inline answer make_call(program& p, const wrong_call& c) {
  answer a;
  try {
    prepare(p, c);
    a.code = std::to_string(c.call());
    a.after = p.after(*c.in);
  } catch (const not_set_up& failed) {
    a = {"setup:" + std::to_string(failed.code), "line:" + std::to_string(failed.line)};
  }
  return a;
}

/// Makes the call in a child of this process, which has already used CUDA.
inline answer make_call_forked(program& p, const wrong_call& c) {
  prepare(p, c);
  int ends[2];
  if (pipe(ends) != 0) return {"setup:pipe", "-"};
  const pid_t child = fork();
  if (child == 0) {
    alarm(call_seconds / 2);
    char text[32];
    const int length = std::snprintf(text, sizeof text, "%d", c.call());
    _exit(write(ends[1], text, static_cast<std::size_t>(length)) == length ? 0 : 1);
  }
  close(ends[1]);
  char text[32] = "";
  const ssize_t got = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  answer a{got > 0 ? text : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hang" : "crash", ""};
  a.after = p.after(*c.in);
  return a;
}

inline int serve(program& p, const options& o) {
  std::map<std::string, wrong_call> all;
  for (auto& c : p.table()) all[c.name] = c;
  for (const auto& name : o.serve) {
    const wrong_call& c = all.at(name);
    std::printf("\nBEGIN\t%s\n", name.c_str());
    std::fflush(stdout);
    const answer a = c.in->forked ? make_call_forked(p, c) : make_call(p, c);
    std::printf("\nEND\t%s\t%s\n", name.c_str(), a.text().c_str());
    std::fflush(stdout);
    if (!p.healthy(a.after) || a.code.starts_with("setup")) break;
  }
  // Destructors and the driver's end must not change the answers.
  _exit(0);
}

// ---- the parent

class child {
 public:
  explicit child(std::vector<std::string> calls) : calls_(std::move(calls)) {
    int ends[2];
    if (pipe(ends) != 0) std::perror("pipe"), std::exit(1);
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]), close(ends[1]);
      std::vector<std::string> words = {"wrong_calls", "--serve"};
      words.insert(words.end(), calls_.begin(), calls_.end());
      std::vector<char*> arguments;
      for (auto& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  child(const child&) = delete;
  ~child() {
    kill(-process_, SIGKILL), kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(from_);
  }
  int descriptor() const { return from_; }
  const std::vector<std::string>& calls() const { return calls_; }
  bool late() const { return clock::now() - heard_ > std::chrono::seconds(call_seconds); }

  /// Takes the child's output; false if it has ended.
  bool listen(std::map<std::string, answer>& answers) {
    char bytes[65536];
    const ssize_t got = read(from_, bytes, sizeof bytes);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    heard_ = clock::now();
    for (std::size_t end; (end = buffer_.find('\n')) != std::string::npos; buffer_.erase(0, end + 1)) {
      std::istringstream line(buffer_.substr(0, end));
      std::string word, name;
      std::getline(line, word, '\t');
      std::getline(line, name, '\t');
      if (word == "BEGIN") begun_ = name, ready_ = false;
      if (word == "READY") ready_ = true;
      if (word != "END") continue;
      answer& a = answers[name];
      std::getline(line, a.code, '\t');
      std::getline(line, a.after);
      begun_.clear();
    }
    return true;
  }
  /// The call that the child was making.
  const std::string& begun() const { return begun_; }
  const char* stopped() const { return ready_ ? "hang" : "setup:hang"; }

 private:
  using clock = std::chrono::steady_clock;
  std::vector<std::string> calls_;
  pid_t process_;
  int from_;
  std::string buffer_, begun_;
  bool ready_ = false;
  clock::time_point heard_ = clock::now();
};

/// Groups the calls by state, at most as many as one child makes.
inline std::deque<std::vector<std::string>> batches(const std::vector<wrong_call>& table, const options& o) {
  std::map<std::string, std::vector<std::string>> open;
  std::deque<std::vector<std::string>> all;
  for (const auto& c : table) {
    auto& batch = open[c.in->name];
    batch.push_back(c.name);
    if (o.alone || c.in->alone || batch.size() == in_a_row) all.push_back(std::exchange(batch, {}));
  }
  for (auto& [name, batch] : open) {
    if (!batch.empty()) all.push_front(std::move(batch));
  }
  return all;
}

inline std::map<std::string, answer> run_all(const std::vector<wrong_call>& table, const options& o) {
  std::map<std::string, answer> answers;
  auto waiting = batches(table, o);
  const auto began = std::chrono::steady_clock::now();
  std::list<child> running;
  while (!waiting.empty() || !running.empty()) {
    if (o.within && std::chrono::steady_clock::now() - began > std::chrono::seconds(o.within))
      waiting.clear();
    for (; running.size() < o.jobs && !waiting.empty(); waiting.pop_front())
      running.emplace_back(waiting.front());
    std::vector<pollfd> polls;
    for (const auto& c : running) polls.push_back({c.descriptor(), POLLIN, 0});
    poll(polls.data(), polls.size(), 1000);
    std::size_t n = 0;
    for (auto c = running.begin(); c != running.end(); ++n) {
      const bool over = polls[n].revents != 0 && !c->listen(answers);
      if (!over && !c->late()) {
        ++c;
        continue;
      }
      // The call at which the child stopped has its answer; the remaining calls get a new child.
      if (!c->begun().empty()) answers[c->begun()] = {over ? "crash" : c->stopped(), "-"};
      std::vector<std::string> rest;
      for (const auto& name : c->calls()) {
        if (!answers.contains(name)) rest.push_back(name);
      }
      if (!rest.empty() && rest.size() == c->calls().size()) {
        answers[rest.front()] = {"crash", "before"};
        rest.erase(rest.begin());
      }
      if (!rest.empty()) waiting.push_back(std::move(rest));
      c = running.erase(c);
    }
  }
  for (const auto& c : table) {
    if (!answers.contains(c.name)) answers[c.name] = {"not_run", "-"};
  }
  return answers;
}

// ---- files

inline std::map<std::string, answer> read_answers(const std::string& path) {
  std::ifstream file(path);
  if (!file) std::fprintf(stderr, "cannot read %s\n", path.c_str()), std::exit(2);
  std::map<std::string, answer> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name;
    std::getline(fields, name, '\t');
    std::getline(fields, all[name].code, '\t');
    std::getline(fields, all[name].after);
  }
  return all;
}

/// Lines "NAME<tab>WHERE<tab>REASON" list known differences. WHERE is the word of --at, or `all`, which means
/// everywhere but `native`.
inline std::map<std::string, std::string> read_known(const options& o) {
  std::map<std::string, std::string> all;
  if (o.known.empty()) return all;
  std::ifstream file(o.known);
  if (!file) std::fprintf(stderr, "cannot read %s\n", o.known.c_str()), std::exit(2);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name, where, reason;
    std::getline(fields, name, '\t'), std::getline(fields, where, '\t'), std::getline(fields, reason);
    if (where == o.at || (where == "all" && o.at != "native")) all[name] = reason;
  }
  return all;
}

inline int write_record(const std::vector<wrong_call>& table, const std::map<std::string, answer>& answers,
                        const std::string& device, const options& o) {
  std::ofstream file(o.record);
  file << "# What " << device << " answers: the call, its code, what comes after it.\n";
  std::map<std::string, std::size_t> kinds;
  for (const auto& c : table) {
    const answer& a = answers.at(c.name);
    file << c.name << "\t" << a.text() << "\n";
    ++kinds[a.code == "crash" || a.code == "hang" || a.code == "0" ? a.code
                                                                   : a.code.substr(0, a.code.find(':'))];
  }
  std::printf("%zu calls recorded\n", table.size());
  for (const auto& [kind, count] : kinds) std::printf("%6zu  %s\n", count, kind.c_str());
  return file.good() ? 0 : 1;
}

inline int compare(const std::vector<wrong_call>& table, const std::map<std::string, answer>& answers,
                   const options& o) {
  const auto recorded = read_answers(o.compare);
  const auto known = read_known(o);
  std::size_t compared = 0, equal = 0, listed = 0, unlisted = 0, crashes = 0, missing = 0, stale = 0;
  for (const auto& c : table) {
    const answer& ours = answers.at(c.name);
    const auto native = recorded.find(c.name);
    const auto reason = known.find(c.name);
    if (native == recorded.end()) {
      std::printf("NOT RECORDED  %s: here %s\n", c.name.c_str(), ours.text().c_str());
      ++missing;
      continue;
    }
    if (native->second.code == "crash" || native->second.code == "hang") {
      ++crashes;
      continue;
    }
    ++compared;
    if (ours == native->second) {
      ++equal;
      if (reason == known.end()) continue;
      std::printf("NO DIFFERENCE %s: take it off the list\n", c.name.c_str());
      ++stale;
      continue;
    }
    ++(reason == known.end() ? unlisted : listed);
    std::printf("%s %-60s native %s, here %s  %s\n",
                reason == known.end() ? "DIFFERS      " : "known        ", c.name.c_str(),
                native->second.text().c_str(), ours.text().c_str(),
                reason == known.end() ? "" : reason->second.c_str());
  }
  const double percent =
      compared ? 100.0 * static_cast<double>(listed + unlisted) / static_cast<double>(compared) : 0;
  std::printf(
      "%zu calls compared, %zu equal, %zu differ (%.2f %%), %zu of them listed with their reason; %zu left "
      "out "
      "that crash or hang natively\n",
      compared, equal, listed + unlisted, percent, listed, crashes);
  const bool whole = o.only.empty();
  const bool good = unlisted == 0 && missing == 0 && (!whole || percent <= o.most);
  std::printf("%s\n", good ? "PASS" : "FAIL");
  return good ? 0 : 1;
}

inline options parse(int count, char** values) {
  options o;
  for (int n = 1; n < count; ++n) {
    const std::string flag = values[n];
    const auto value = [&] { return n + 1 < count ? std::string(values[++n]) : std::string(); };
    if (flag == "--record") {
      o.record = value();
    } else if (flag == "--compare") {
      o.compare = value();
    } else if (flag == "--known") {
      o.known = value();
    } else if (flag == "--at") {
      o.at = value();
    } else if (flag == "--only") {
      o.only = value();
    } else if (flag == "--jobs") {
      o.jobs = std::max(1ul, std::strtoul(value().c_str(), nullptr, 10));
    } else if (flag == "--alone") {
      o.alone = true;
    } else if (flag == "--reverse") {
      o.reverse = true;
    } else if (flag == "--most") {
      o.most = std::atof(value().c_str());
    } else if (flag == "--within") {
      o.within = std::atoi(value().c_str());
    } else if (flag == "--list") {
      o.list = true;
    } else if (flag == "--serve") {
      while (++n < count) o.serve.push_back(values[n]);
    } else {
      std::fprintf(stderr, "unknown flag %s\n", flag.c_str()), std::exit(2);
    }
  }
  return o;
}

inline int run(program& p, int count, char** values) {
  const options o = parse(count, values);
  if (!o.serve.empty()) return serve(p, o);
  auto table = p.table();
  std::set<std::string> names;
  for (const auto& c : table) {
    if (!names.insert(c.name).second)
      std::fprintf(stderr, "%s is there twice\n", c.name.c_str()), std::exit(2);
  }
  std::erase_if(table, [&](const wrong_call& c) { return c.name.find(o.only) == std::string::npos; });
  if (o.reverse) std::reverse(table.begin(), table.end());
  if (o.list) {
    for (const auto& c : table) std::printf("%s\t%s\n", c.name.c_str(), c.in->name);
    return 0;
  }
  const auto answers = run_all(table, o);
  if (!o.record.empty()) return write_record(table, answers, p.device(), o);
  if (!o.compare.empty()) return compare(table, answers, o);
  for (const auto& c : table) std::printf("%s\t%s\n", c.name.c_str(), answers.at(c.name).text().c_str());
  return 0;
}

}  // namespace wrong_calls
