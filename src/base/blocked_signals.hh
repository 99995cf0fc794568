// Threads of ours take no signals, because signals belong to the program. A thread inherits its maker's
// signal mask, so create it while a blocked_signals exists.
#pragma once

#include <signal.h>

namespace outboard {

/// Blocks all signals of the calling thread and restores its signal mask on destruction.
class blocked_signals {
 public:
  blocked_signals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~blocked_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace outboard
