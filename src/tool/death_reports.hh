// `outboard run` ends the sessions of its programs that have died without a word, so that they do not linger:
// each program holds a connection to us while it has such a session (frontend/run_report.hh). Owned
// by verb_run(); main thread.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"
#include "frontend/run_report.hh"
#include "tool/ask.hh"

namespace outboard::tool {

class death_reports {
 public:
  /// `means` outlive this object.
  static result<death_reports> make(const asking_means& means);
  death_reports(death_reports&& other) noexcept;
  /// Waits until the sessions of all that are dead have been ended, or their servers do not answer.
  ~death_reports();

  /// For the program's environment.
  const std::string& name() const { return name_; }

  /// What to wait for, besides what the caller waits for.
  void add_to(std::vector<pollfd>& list) const;
  /// Takes what has come, and has the sessions of processes that are dead ended, all at once: that takes as
  /// long as one of them. Does not wait for it.
  void look();
  /// The process is dead: so are its sessions, even if another process inherited its connections.
  void ended(pid_t process);

 private:
  struct holder {
    unique_fd held;
    pid_t process = -1;
    std::optional<frontend::run_message> session;
    bool over = false;
  };

  class endings;

  death_reports(const asking_means& means, unique_fd socket, std::string name);
  void admit();
  bool read(holder& from);
  void reap(pid_t dead);

  unique_fd socket_;
  std::string name_;
  std::list<holder> holders_;
  bool full_ = false;  ///< no descriptor is left for a further one
  std::unique_ptr<endings> endings_;
};

}  // namespace outboard::tool
