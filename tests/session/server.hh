// A back-end process for one test, on a Unix socket of its own, and this process's front-end connected to it.
// The front-end is a singleton, so a process can have only one, and each test runs in a forked process of its
// own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace outboard::tests {

class server {
 public:
  /// `device`: cpu or mock.
  explicit server(const std::string& device);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// The process that serves the first session (a child of the daemon); -1 if there is no session.
  pid_t session_worker() const;
  bool kill_worker() const;          ///< sends SIGKILL to the first session's worker; false: there is none
  bool has_no_session_left() const;  ///< waits until all sessions have ended; false: one is left after 20 s
  const std::string& url() const { return url_; }

 private:
  pid_t process_ = -1;
  std::string folder_, url_;
};

/// Runs `body` in a forked child whose front-end is fresh; true if it returned without a failed expectation.
bool in_fresh_process(const std::function<void()>& body);

/// Boots the front-end of this process with this server.
void boot(const server& s);

}  // namespace outboard::tests
