#include "backend/confinement/allowed_calls.hh"

#include <sys/syscall.h>

#include <span>

#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

#define CALL(name) \
  { SYS_##name, #name }
/// Not in the headers of every system that we are built on; these numbers are those of all architectures.
#define NEWER_CALL(name, number) \
  { number, #name }

/// Memory, threads, signals, time, descriptors, the connections that it was given, and questions about
/// itself.
constexpr allowed_call of_all[] {
  CALL(brk), CALL(mmap), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise),
      // Threads. C libraries that ask for clone3 take clone when they hear that it is not there.
      CALL(clone), CALL(exit), CALL(exit_group), CALL(futex), NEWER_CALL(futex_waitv, 449),
      CALL(set_robust_list), CALL(get_robust_list), NEWER_CALL(rseq, 334), CALL(set_tid_address),
      CALL(gettid), CALL(membarrier), CALL(sched_yield), CALL(sched_getaffinity), CALL(sched_setaffinity),
      CALL(sched_getparam), CALL(sched_getscheduler), CALL(sched_get_priority_max),
      CALL(sched_get_priority_min), CALL(getcpu),
      // Signals, to itself.
      CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigpending),
      CALL(rt_sigtimedwait), CALL(rt_sigsuspend), CALL(sigaltstack), CALL(kill), CALL(tgkill),
      CALL(restart_syscall),
      // Time.
      CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
      CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_gettime),
      // Descriptors.
      CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(pwrite64), CALL(preadv),
      CALL(pwritev), CALL(close), NEWER_CALL(close_range, 436), CALL(dup), CALL(dup3), CALL(fcntl),
      CALL(lseek), CALL(ioctl), CALL(pipe2), CALL(eventfd2), CALL(ppoll), CALL(pselect6), CALL(epoll_create1),
      CALL(epoll_ctl), CALL(epoll_pwait), NEWER_CALL(epoll_pwait2, 441), CALL(fstat), CALL(statx),
      CALL(fstatfs), CALL(statfs),
      // Connections.
      CALL(accept), CALL(accept4), CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg), CALL(sendto), CALL(sendmsg),
      CALL(sendmmsg), CALL(shutdown), CALL(socketpair), CALL(getsockname), CALL(getpeername),
      CALL(getsockopt), CALL(setsockopt),
      // Files: Landlock says which.
      CALL(openat), CALL(faccessat), NEWER_CALL(faccessat2, 439), CALL(readlinkat), CALL(getdents64),
      CALL(getcwd),
      // Itself. What this kernel can confine is asked for the log.
      CALL(getpid), CALL(getppid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid), CALL(getresuid),
      CALL(getresgid), CALL(getgroups), CALL(getpgid), CALL(getsid), CALL(capget), CALL(prctl),
      CALL(prlimit64), CALL(getrlimit), CALL(getrusage), CALL(times), CALL(getpriority), CALL(getrandom),
      CALL(uname), CALL(sysinfo), CALL(seccomp), NEWER_CALL(landlock_create_ruleset, 444),
#if defined(__x86_64__)
      // Older names for the same, and x86's own.
      CALL(open), CALL(access), CALL(readlink), CALL(stat), CALL(lstat), CALL(newfstatat), CALL(poll),
      CALL(select), CALL(epoll_wait), CALL(dup2), CALL(getpgrp), CALL(time), CALL(arch_prctl),
#else
      CALL(newfstatat),
#endif
};

/// To remove folders, and to look after a cache.
constexpr allowed_call of_removers[] {
  CALL(unlinkat), CALL(mkdirat), CALL(renameat), CALL(renameat2), CALL(fchmodat), CALL(flock), CALL(fsync),
      CALL(fchdir),
#if defined(__x86_64__)
      CALL(unlink), CALL(rmdir), CALL(mkdir), CALL(rename), CALL(chmod),
#endif
};

/// By the numbers of descriptors, where a kernel has those.
constexpr allowed_call of_the_remover[]{CALL(pidfd_send_signal)};

/// The interpreter of PTX, and the cache of module images.
constexpr allowed_call of_the_cpu_device[] {
  CALL(memfd_create), CALL(ftruncate), CALL(fallocate), CALL(fsync), CALL(fdatasync), CALL(flock),
      CALL(msync), CALL(mincore), CALL(mlock), CALL(mlock2), CALL(munlock), CALL(unlinkat), CALL(mkdirat),
      CALL(renameat), CALL(renameat2), CALL(linkat), CALL(fadvise64), CALL(sched_setscheduler),
      CALL(sched_setparam), CALL(sched_getattr), CALL(sched_setattr), CALL(setpriority), CALL(ioprio_get),
      CALL(ioprio_set), CALL(mbind), CALL(get_mempolicy), CALL(set_mempolicy), CALL(move_pages),
#if defined(__x86_64__)
      CALL(unlink), CALL(rmdir), CALL(mkdir), CALL(rename), CALL(link),
#endif
};

/// The search for leaks traces the process from another one; what says where a fault was starts a program.
constexpr allowed_call of_sanitizers[] {
  CALL(ptrace), CALL(wait4), CALL(waitid), CALL(execve), CALL(personality), CALL(setrlimit), CALL(mlock),
      CALL(munlock), CALL(memfd_create), CALL(ftruncate), CALL(msync), CALL(mincore),
#if defined(__x86_64__)
      CALL(fork), CALL(vfork), CALL(pipe), CALL(getdents),
#endif
};

#undef CALL
#undef NEWER_CALL

}  // namespace

std::vector<allowed_call> allowed_calls(filtered who) {
  std::vector<allowed_call> all;
  const auto add = [&](std::span<const allowed_call> more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  switch (who) {
    case filtered::worker:
    case filtered::driver:
    case filtered::driver_with_mps:
    case filtered::nvml:
    case filtered::checkpoint:
      return all;
    case filtered::helper:
      break;
    case filtered::remover:
      add(of_the_remover);
      add(of_removers);
      break;
    case filtered::tidier:
      add(of_removers);
      break;
    case filtered::cpu_worker:
      add(of_the_cpu_device);
      break;
  }
  add(of_all);
  if (under_asan || under_tsan) add(of_sanitizers);
  return all;
}

}  // namespace outboard::backend
