#include "backend/confinement/system_calls.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "backend/confinement/allowed_calls.hh"
#include "base/check.hh"
#include "base/errno_text.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
#else
#error "the numbers of the system calls of this architecture have not been looked through"
#endif

/// The last number that was looked at (Linux 6.7). What came later, and x86's second set of numbers (x32,
/// from 2^30 on), is unknown here.
constexpr int last_known = 456;

constexpr std::uint32_t allow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t not_permitted = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t not_there = SECCOMP_RET_ERRNO | ENOSYS;
/// What a driver hears where no server of MPS runs; it then goes on without.
constexpr std::uint32_t no_such_socket = SECCOMP_RET_ERRNO | ENOENT;

// Not in the headers of every system that we are built on.
constexpr int fchmodat2 = 452;
constexpr int connect_while_sending = 0x20000000;  // MSG_FASTOPEN
constexpr unsigned set_owner_of_file = 0x8901;     // FIOSETOWN: whom it signals
constexpr unsigned set_owner_of_socket = 0x8902;   // SIOCSPGRP
constexpr unsigned control_console = 0x541c;       // TIOCLINUX

/// Refused whatever the arguments are.
constexpr int refused[] {
  // Other processes, and ways out of the group by which the daemon ends this one with all that it started.
  SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_process_mrelease,
      SYS_kcmp, SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_tkill, SYS_rt_sigqueueinfo,
      SYS_rt_tgsigqueueinfo, SYS_migrate_pages, SYS_setsid, SYS_setpgid,
      // What processes of one user share without opening a file.
      SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semctl, SYS_semtimedop, SYS_msgget,
      SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_mq_notify,
      // What Landlock lets be done to files that cannot be opened.
      SYS_truncate, SYS_fchmodat, fchmodat2, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr,
      SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat, SYS_inotify_init1,
      SYS_inotify_add_watch, SYS_fanotify_init, SYS_fanotify_mark, SYS_name_to_handle_at,
      SYS_open_by_handle_at, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_quotactl_fd, SYS_acct,
      // Other name spaces and mounts.
      SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2, SYS_move_mount,
      SYS_open_tree, SYS_mount_setattr, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
      // Who this is.
      SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid,
      SYS_setfsgid, SYS_setgroups, SYS_capset,
      // Parts of the kernel that are rich in faults, or that are the machine's.
      SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
      SYS_io_uring_register, SYS_io_setup, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_kexec_load,
      SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_syslog,
      SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
      SYS_setdomainname, SYS_vhangup, SYS_lookup_dcookie, SYS_nfsservctl,
#if defined(__x86_64__)
      // Older names for the same, and x86's own.
      SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_inotify_init, SYS_iopl,
      SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_create_module, SYS_get_kernel_syms, SYS_query_module,
      SYS__sysctl, SYS_sysfs, SYS_ustat,
#endif
};

/// To those who do their work in threads of their own. ASan's search for leaks starts a process.
constexpr int refused_to_the_threaded[] {
  SYS_execve, SYS_execveat, SYS_mknodat,
#if defined(__x86_64__)
      SYS_fork, SYS_vfork, SYS_mknod,
#endif
};

/// What is all ours has its sockets from the daemon, the gate its listeners too.
constexpr int refused_to_our_own[]{SYS_socket, SYS_bind, SYS_listen};

/// Their arguments lie in memory, where no filter can look. C libraries then take the older calls.
constexpr int hidden[]{SYS_clone3, SYS_openat2};

/// Refused where an argument's lower 32 bits, all that the kernel takes of these, under `mask` are one of
/// `values`, or, with `unless`, none of them.
struct by_argument {
  int number;
  unsigned argument;
  std::uint32_t mask;
  bool unless = false;
  std::vector<std::uint32_t> values;
};

constexpr std::uint32_t all_bits = ~0u;
constexpr std::uint32_t ioprio_of_process = 1;  // IOPRIO_WHO_PROCESS of linux/ioprio.h, which is newer

/// Who makes itself dumpable again can be read by others and leaves core files where the system hands them to
/// a program. ASan's search for leaks has to do it.
std::vector<std::uint32_t> refused_options() {
  if (under_asan) return {PR_SET_PDEATHSIG};
  return {PR_SET_PDEATHSIG, PR_SET_DUMPABLE};
}

bool is_ours(filtered who) { return !allowed_calls(who).empty(); }

bool starts_no_processes(filtered who) { return (is_ours(who) || who == filtered::nvml) && !under_asan; }

/// Threads; and where programs may be started, processes.
std::vector<std::uint32_t> what_clone_may_make(filtered who) {
  if (starts_no_processes(who)) return {CLONE_THREAD};
  return {CLONE_THREAD, 0};
}

/// What those who remove folders have to do: a mode may forbid its owner everything.
void let_remove(std::vector<by_argument>& rules, filtered who) {
  rules.push_back({SYS_fchmodat, 2, all_bits, true, {0700}});
#if defined(__x86_64__)
  rules.push_back({SYS_chmod, 1, all_bits, true, {0700}});
#endif
  if (who != filtered::remover) return;
  // Ends the groups of workers whose daemon is gone, on kernels before 6.9 by their numbers.
  const auto kill = std::ranges::find(rules, SYS_kill, &by_argument::number);
  *kill = {SYS_kill, 1, all_bits, true, {SIGKILL}};
  rules.insert(kill, by_argument{SYS_kill, 0, all_bits, false, {all_bits}});  // -1: all there are
  rules.push_back({SYS_pidfd_send_signal, 1, all_bits, true, {0, SIGKILL}});
}

/// No document says by which calls NVIDIA's driver looks into a process, only that it does so by the user's
/// rights (guard.hh): those are all here, for the worker where an argument is its number. ptrace and
/// pidfd_getfd take numbers of threads and descriptors, so they reach every process that the user may trace.
void let_look_into(std::vector<by_argument>& rules, std::uint32_t own, std::uint32_t other) {
  for (const int number : {SYS_kill, SYS_tgkill})
    std::ranges::find(rules, number, &by_argument::number)->values.push_back(other);
  for (const int number : {SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_kcmp})
    rules.push_back({number, 0, all_bits, true, {own, other}});
  for (const int number : {SYS_ptrace, SYS_pidfd_getfd})
    rules.push_back({number, 0, 0, true, {0}});  // whatever the argument is
}

std::vector<by_argument> refused_by_argument(filtered who, pid_t self, pid_t other) {
  const auto own = static_cast<std::uint32_t>(self);
  constexpr std::uint32_t name_spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  // Landlock before version 3 lets whoever may read a file empty it.
  constexpr std::uint32_t how = O_ACCMODE | O_TRUNC;
  constexpr std::uint32_t empties = O_RDONLY | O_TRUNC;
  // The order matters: what is called most often comes first.
  std::vector<by_argument> rules{
      {SYS_sendmsg, 2, connect_while_sending, true, {0}},
      {SYS_sendto, 3, connect_while_sending, true, {0}},
      {SYS_ioctl,
       1,
       all_bits,
       false,
       {TIOCSTI, control_console, TIOCSCTTY, TIOCSETD, set_owner_of_file, set_owner_of_socket}},
      {SYS_sendmmsg, 3, connect_while_sending, true, {0}},
      {SYS_openat, 2, how, false, {empties}},
      {SYS_fcntl, 1, all_bits, false, {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY}},
      {SYS_clone, 0, name_spaces, true, {0}},
      {SYS_clone, 0, CLONE_THREAD, true, what_clone_may_make(who)},
      {SYS_kill, 0, all_bits, true, {own}},
      {SYS_tgkill, 0, all_bits, true, {own}},
      // Drivers talk to helpers of theirs by sockets that they bind; to make a connection is refused below.
      {SYS_socket, 0, all_bits, true, {AF_UNIX}},
      {SYS_socketpair, 0, all_bits, true, {AF_UNIX}},
      {SYS_prctl, 0, all_bits, false, refused_options()},
      // Of other processes of this user.
      {SYS_prlimit64, 0, all_bits, true, {0, own}},
      {SYS_setpriority, 0, all_bits, true, {PRIO_PROCESS}},
      {SYS_setpriority, 1, all_bits, true, {0, own}},
      {SYS_ioprio_set, 0, all_bits, true, {ioprio_of_process}},
      {SYS_ioprio_set, 1, all_bits, true, {0, own}},
      {SYS_sched_setscheduler, 0, all_bits, true, {0, own}},
      {SYS_sched_setparam, 0, all_bits, true, {0, own}},
      {SYS_sched_setattr, 0, all_bits, true, {0, own}},
      {SYS_move_pages, 0, all_bits, true, {0, own}},
  };
  // A socket for datagrams, one of a pair too, sends to any name without a connection.
  if (who != filtered::driver_with_mps) {
    for (const int number : {SYS_socket, SYS_socketpair})
      rules.insert(std::next(std::ranges::find(rules, number, &by_argument::number)),
                   by_argument{number, 1, 0xf, true, {SOCK_STREAM, SOCK_SEQPACKET}});
  }
  // A driver may set modes of what it has opened, but gives nothing of this user's to others.
  if (has_a_driver(who))
    rules.push_back({SYS_fchmod, 1, S_ISUID | S_ISGID | S_ISVTX | S_IWGRP | S_IWOTH, true, {0}});
#if defined(__x86_64__)
  rules.push_back({SYS_open, 1, how, false, {empties}});
#endif
  if (who == filtered::remover || who == filtered::tidier) let_remove(rules, who);
  if (who == filtered::checkpoint) let_look_into(rules, own, static_cast<std::uint32_t>(other));
  return rules;
}

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter give(std::uint32_t verdict) { return BPF_STMT(BPF_RET | BPF_K, verdict); }
sock_filter skip_unless_equal(std::uint32_t value, std::size_t count) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(count));
}

/// All instructions of one rule; it comes with the number loaded, and leaves so where it has no verdict.
void add(std::vector<sock_filter>& program, const by_argument& rule) {
  std::vector<sock_filter> body{load(offsetof(seccomp_data, args) +
                                     rule.argument * sizeof(std::uint64_t)),  // the lower half: see above
                                BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule.mask)};
  const std::size_t n = rule.values.size();
  for (std::size_t i = 0; i < n; ++i) {
    // To the refusal behind the list if refused where equal, else over it.
    const std::size_t to_verdict = n - 1 - i + (rule.unless ? 1 : 0);
    const std::size_t otherwise = i + 1 < n || rule.unless ? 0 : 1;
    body.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule.values[i], static_cast<std::uint8_t>(to_verdict),
                            static_cast<std::uint8_t>(otherwise)));
  }
  body.push_back(give(not_permitted));
  body.push_back(load(offsetof(seccomp_data, nr)));
  program.push_back(skip_unless_equal(static_cast<std::uint32_t>(rule.number), body.size()));
  program.insert(program.end(), body.begin(), body.end());
}

void add(std::vector<sock_filter>& program, std::span<const int> numbers, std::uint32_t verdict) {
  for (const int number : numbers) {
    // The search for leaks at the end traces this process's own threads; of others Landlock keeps it away.
    if (under_asan && number == SYS_ptrace) continue;
    program.push_back(skip_unless_equal(static_cast<std::uint32_t>(number), 1));
    program.push_back(give(verdict));
  }
}

}  // namespace

bool system_calls_can_be_refused() {
  const std::uint32_t verdict = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &verdict) == 0;
}

std::vector<sock_filter> refused_system_calls(filtered who, pid_t self, pid_t other) {
  CHECK(who != filtered::checkpoint || other > 0);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "an argument's lower half lies first");
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, this_architecture, 1, 0),
                                   give(not_permitted),
                                   load(offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last_known, 0, 1),
                                   give(not_there)};
  if (starts_no_processes(who)) add(program, refused_to_the_threaded, not_permitted);
  if (starts_no_processes(who) && is_ours(who)) add(program, refused_to_our_own, not_permitted);
  // Kernels from 5.11 on keep a list of the numbers that are allowed whatever their arguments: only the
  // others pay for the length of this.
  const std::vector<allowed_call> allowed = allowed_calls(who);
  std::vector<by_argument> rules = refused_by_argument(who, self, other);
  const auto is_off_the_list = [&](int number) {
    return !allowed.empty() && std::ranges::find(allowed, number, &allowed_call::number) == allowed.end();
  };
  for (const by_argument& rule : rules)
    if (is_off_the_list(rule.number)) add(program, std::array{rule.number}, not_permitted);
  std::erase_if(rules, [&](const by_argument& rule) { return is_off_the_list(rule.number); });
  for (std::size_t i = 0; i < rules.size(); ++i) {
    add(program, rules[i]);
    if (i + 1 < rules.size() && rules[i + 1].number == rules[i].number) continue;
    program.push_back(skip_unless_equal(static_cast<std::uint32_t>(rules[i].number), 1));
    program.push_back(give(allow));
  }
  add(program, refused, not_permitted);
  // The network, and whatever listens on a socket of this host.
  if (!has_a_driver(who)) add(program, std::array{SYS_connect, SYS_fchmod}, not_permitted);
  if (has_a_driver(who) && who != filtered::driver_with_mps)
    add(program, std::array{SYS_connect}, no_such_socket);
  add(program, hidden, not_there);
  for (const allowed_call& each : allowed) {
    program.push_back(skip_unless_equal(static_cast<std::uint32_t>(each.number), 1));
    program.push_back(give(allow));
  }
  program.push_back(give(allowed.empty() ? allow : not_there));
  return program;
}

status refuse_system_calls(filtered who, bool told, pid_t other) {
  std::vector<sock_filter> program = refused_system_calls(who, ::getpid(), other);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const unsigned flags = told ? SECCOMP_FILTER_FLAG_LOG : 0u;
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) != 0)
    return failure("seccomp: " + errno_text(errno));
  return {};
}

}  // namespace outboard::backend
