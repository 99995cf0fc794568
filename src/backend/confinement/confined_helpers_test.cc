// The daemon's helpers, as confine_a_helper() of confinement.hh leaves them.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "backend/confinement/confinement_testing.hh"
#include "backend/confinement/landlock.hh"
#include "base/fd.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

struct confined_helper_test : confinement_test {
  using confinement_test::tried;
  codes tried(const helper_terms& terms, const std::function<void(attempts&)>& attempt) {
    return tried(attempt, [&](const std::string&) {
      return confine_a_helper(terms, ::getenv) ? status() : status(failure("not confined"));
    });
  }
};

/// Waits until it is killed.
class sleeper {
 public:
  sleeper() : process(::fork()) {
    while (process == 0) ::pause();
  }
  ~sleeper() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  sleeper(const sleeper&) = delete;

  const pid_t process;
};

/// What no helper can do, whatever it is for.
void try_what_none_may(attempts& a, pid_t other) {
  a.add("tcp", ::socket(AF_INET, SOCK_STREAM, 0));
  a.add("netlink", ::socket(AF_NETLINK, SOCK_RAW, 0));
  int pair[2];
  a.add("datagram_pair", ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  a.add("signal", ::kill(other, 0));
  a.add("slow_down_many", ::setpriority(PRIO_PGRP, 0, ::getpriority(PRIO_PROCESS, 0)));
  a.add("name_space", ::unshare(CLONE_NEWUSER));
  a.add("mount", ::syscall(SYS_mount, "none", "/", "tmpfs", 0L, nullptr));
  a.add("bpf", ::syscall(SYS_bpf, 0L, nullptr, 0L));
  a.add("io_uring", ::syscall(SYS_io_uring_setup, 1L, nullptr));
  a.add("user", ::syscall(SYS_setuid, 0L));
  errno = EEXIST;
  a.add("more_by_running", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1);
  a.add("capabilities_to_come", ::geteuid() != 0 || ::prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0 ? 0 : -1);
}
const codes what_none_may{{"tcp", EPERM},
                          {"netlink", EPERM},
                          {"datagram_pair", EPERM},

                          {"slow_down_many", EPERM},
                          {"signal", EPERM},
                          {"name_space", EPERM},
                          {"mount", EPERM},
                          {"bpf", EPERM},
                          {"io_uring", EPERM},
                          {"user", EPERM},
                          {"more_by_running", 0},
                          {"capabilities_to_come", 0}};

void try_to_start_a_program(attempts& a) {
  if (under_asan) return;  // whose search for leaks starts a process
  char* const none[]{nullptr};
  a.add("run", ::execve("/bin/true", none, none));
  const pid_t made = ::fork();
  if (made == 0) ::_exit(0);
  a.add("fork", made);
}
void expect_no_programs(codes& expected) {
  if (!under_asan) expected.merge(codes{{"run", EPERM}, {"fork", EPERM}});
}

/// With NVIDIA's library (true), on all other devices (false). The library's needs no GPU.
struct confined_nvml_test : confined_helper_test, testing::WithParamInterface<bool> {};

TEST_P(confined_nvml_test, reads_what_its_library_needs_and_reaches_nothing_else) {
  const pid_t other = ::getpid();
  const std::string process = "/proc/" + std::to_string(other);
  const std::string library = base + "/library";
  fs::create_directory(library);
  const auto found =
      tried({.kind = helper_kind::nvml, .vendor = GetParam(), .reads = {library}}, [&](attempts& a) {
        a.add("read", ::open(secret.c_str(), O_RDONLY));
        a.add("write", ::open(secret.c_str(), O_WRONLY));
        a.add("make", ::open((own + "/file").c_str(), O_CREAT | O_WRONLY, 0600));
        a.add("named_memory", ::open("/dev/shm/outboard-was-here", O_CREAT | O_RDWR, 0600));
        a.add("passwords", ::open("/etc/shadow", O_RDONLY));
        a.add("home", ::open("/root", O_RDONLY | O_DIRECTORY));
        a.add("another_process", ::open((process + "/stat").c_str(), O_RDONLY));
        a.add("its_memory", ::open((process + "/mem").c_str(), O_RDONLY));
        a.add("trace", ::ptrace(PTRACE_ATTACH, other, 0, 0));
        a.add("connect", ::connect(0, nullptr, 0));
        try_what_none_may(a, other);
        try_to_start_a_program(a);
        // What it does:
        a.add("its_library", ::open(library.c_str(), O_RDONLY | O_DIRECTORY));
        a.add("nothing", ::open("/dev/null", O_RDWR));
        a.add("programs", ::open("/usr/bin/env", O_RDONLY));
        clockid_t clock = 0;
        timespec used{};
        a.add("another_processs_time",
              ::clock_getcpuclockid(other, &clock) == 0 ? ::clock_gettime(clock, &used) : -1);
        int in_thread = 1;
        std::thread([&] { in_thread = ::kill(::getpid(), 0); }).join();
        a.add("thread_and_own_signals", in_thread);
      });
  codes expected{{"read", EACCES},
                 {"write", EACCES},
                 {"make", EACCES},
                 {"named_memory", EACCES},
                 {"passwords", EACCES},
                 {"home", EACCES},
                 {"another_process", EACCES},
                 {"its_memory", EACCES},
                 {"trace", EPERM},
                 {"connect", GetParam() ? ENOENT : EPERM},
                 {"its_library", 0},
                 {"nothing", 0},
                 {"programs", GetParam() ? 0 : EACCES},
                 {"another_processs_time", 0},
                 {"thread_and_own_signals", 0}};
  expected.merge(codes(what_none_may));
  expect_no_programs(expected);
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(of, confined_nvml_test, testing::Bool(),
                         [](const auto& about) { return about.param ? "nvidias_library" : "others"; });

TEST_F(confined_helper_test, for_a_checkpoint_looks_into_its_worker_and_signals_nobody_else) {
  const pid_t other = ::getpid();
  const sleeper worker;
  const std::string memory = "/proc/" + std::to_string(worker.process) + "/mem";
  const auto found = tried({.kind = helper_kind::checkpoint, .worker = worker.process}, [&](attempts& a) {
    int byte = 0;
    iovec mine{&byte, sizeof byte}, theirs{&byte, sizeof byte};
    a.add("look_into_its_worker",
          ::syscall(SYS_process_vm_readv, worker.process, &mine, 1L, &theirs, 1L, 0L));
    a.add("its_memory", ::open(memory.c_str(), O_RDWR));
    a.add("signal_its_worker", ::kill(worker.process, 0));
    a.add("hold_its_worker", ::syscall(SYS_pidfd_open, worker.process, 0));
    a.add("look_into_another", ::syscall(SYS_process_vm_readv, other, &mine, 1L, &theirs, 1L, 0L));
    a.add("hold_another", ::syscall(SYS_pidfd_open, other, 0));
    const std::string folder = "/proc/" + std::to_string(other);
    const int as_held = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    a.add("signal_by_its_folder", ::syscall(SYS_pidfd_send_signal, as_held, 0, nullptr, 0));
    try_what_none_may(a, other);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3]{};
    (void)::syscall(SYS_capget, &header, held);
    errno = EEXIST;
    a.add("capabilities",
          (held[0].permitted & ~(1u << CAP_SYS_PTRACE)) == 0 && (held[1].permitted & ~(1u << (38 - 32))) == 0
              ? 0
              : -1);
  });
  codes expected{{"look_into_its_worker", 0},     {"its_memory", 0},
                 {"signal_its_worker", 0},        {"hold_its_worker", 0},
                 {"look_into_another", EPERM},    {"hold_another", EPERM},
                 {"signal_by_its_folder", EPERM}, {"capabilities", 0}};
  expected.merge(codes(what_none_may));
  EXPECT_EQ(found, expected);
}

/// Why no helper for checkpoints locks its files: it could not do its work.
TEST_F(confined_helper_test, that_landlock_holds_would_look_into_no_worker_though_every_file_is_open) {
  const sleeper worker;
  const std::string process = "/proc/" + std::to_string(worker.process);
  const auto found = tried(
      [&](attempts& a) {
        a.add("any_file", ::open(secret.c_str(), O_RDWR));
        a.add("of_the_worker", ::open((process + "/stat").c_str(), O_RDONLY));
        a.add("its_memory", ::open((process + "/mem").c_str(), O_RDONLY));
        a.add("its_descriptors", ::open((process + "/fd").c_str(), O_RDONLY | O_DIRECTORY));
        int byte = 0;
        iovec mine{&byte, sizeof byte}, theirs{&byte, sizeof byte};
        a.add("look_into", ::syscall(SYS_process_vm_readv, worker.process, &mine, 1L, &theirs, 1L, 0L));
      },
      [](const std::string&) -> status {
        auto rules = file_rules::make(landlock_version(), {.local_sockets = true, .signals = true});
        if (!rules.ok()) return rules.error();
        for (const permission each : {permission::read, permission::device, permission::meet})
          OUTBOARD_TRY(rules->allow("/", each));
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return rules->enforce();
      });
  codes without_lists = found;
  without_lists.erase("its_descriptors");  // which kernels refuse when it is opened, or when it is listed
  EXPECT_EQ(without_lists,
            (codes{{"any_file", 0}, {"of_the_worker", 0}, {"its_memory", EACCES}, {"look_into", EPERM}}));
}

TEST_F(confined_helper_test, that_removes_opens_no_file_and_removes_in_its_folder_alone) {
  if (landlock_version() < 2) GTEST_SKIP() << "before its second version Landlock lets nobody move a folder";
  for (const helper_kind kind : {helper_kind::remover, helper_kind::tidier}) {
    const std::string above = base + "/above", deep = above + "/1/deep";
    fs::create_directories(deep);
    std::ofstream(deep + "/file") << "of a tenant";
    const pid_t other = ::getpid();
    const sleeper left;
    const auto found = tried({.kind = kind, .folder = above}, [&](attempts& a) {
      a.add("read", ::open(secret.c_str(), O_RDONLY));
      a.add("remove", ::unlink(secret.c_str()));
      a.add("read_in_it", ::open((deep + "/file").c_str(), O_RDONLY));
      a.add("write_in_it", ::open((deep + "/file").c_str(), O_WRONLY));
      a.add("make_in_it", ::open((above + "/new").c_str(), O_CREAT | O_WRONLY, 0600));
      a.add("take_in", ::rename(own.c_str(), (above + "/own").c_str()));
      a.add("give_to_all", ::chmod(secret.c_str(), 0666));
      a.add("shut", ::chmod(secret.c_str(), 0700));
      try_what_none_may(a, other);
      try_to_start_a_program(a);
      // What it does:
      a.add("list", ::open(above.c_str(), O_RDONLY | O_DIRECTORY));
      a.add("open_a_mode", ::chmod(deep.c_str(), 0700));
      a.add("move", ::rename(deep.c_str(), (above + "/2").c_str()));
      a.add("remove_in_it", ::unlink((above + "/2/file").c_str()));
      a.add("remove_folders", ::rmdir((above + "/2").c_str()) + ::rmdir((above + "/1").c_str()));
      a.add("end_what_is_left", ::kill(left.process, SIGKILL));
      a.add("remove_all", ::rmdir(above.c_str()));
    });
    const bool remover = kind == helper_kind::remover;
    codes expected{{"read", EACCES},
                   {"remove", EACCES},
                   {"read_in_it", EACCES},
                   {"write_in_it", EACCES},
                   {"make_in_it", EACCES},
                   {"take_in", remover ? EXDEV : EACCES},
                   {"give_to_all", EPERM},
                   {"shut", 0},  // no filter sees of which file
                   {"list", 0},
                   {"open_a_mode", 0},
                   {"move", 0},
                   {"remove_in_it", 0},
                   {"remove_folders", 0},
                   {"end_what_is_left", remover ? 0 : EPERM},
                   {"remove_all", remover ? 0 : EACCES}};
    expected.merge(codes(what_none_may));
    expect_no_programs(expected);
    EXPECT_EQ(found, expected) << name(kind);
    EXPECT_TRUE(fs::exists(secret));
    fs::remove_all(above);
  }
}

TEST(why_no_helper, is_for_require_alone_and_for_kernels_that_lack_something) {
  using enum confine_choice;
  for (const confine_choice each : {automatic, possible, off})
    EXPECT_EQ(why_no_helper(each, helper_kind::nvml), "");
  if (confinement_lacks().empty()) {
    EXPECT_EQ(why_no_helper(required, helper_kind::nvml), "");
  } else {
    EXPECT_NE(why_no_helper(required, helper_kind::nvml).find("worker.confine is \"require\""),
              std::string::npos);
  }
}

}  // namespace
}  // namespace outboard::backend
