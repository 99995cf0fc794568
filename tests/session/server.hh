// A back-end process for one test, on a Unix socket of its own; and this process' front-end connected to it.
// One a test program, because the front-end is a singleton: gtest runs each test of this program in a process
// of its own (fork).
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

  /// The processes that serve sessions (children of the daemon that have a session); -1 when there is none.
  pid_t session_worker() const;
  bool kill_worker() const;  ///< SIGKILL to the one session's worker; false: there is none
  const std::string& url() const { return url_; }

 private:
  pid_t process_ = -1;
  std::string folder_, url_;
};

/// Runs `body` in a forked child whose front-end is fresh; true if it returned without a failed expectation.
bool in_fresh_process(const std::function<void()>& body);

/// Boots the front-end of this process towards the server.
void boot(const server& s);

}  // namespace outboard::tests
