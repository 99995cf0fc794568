// Threads of ours take no signals: those are the program's business. A thread inherits what its maker blocks:
// make it while one of these lives.
#pragma once

#include <signal.h>

namespace outboard {

/// Blocks all signals of the calling thread; they are as before when it dies.
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
