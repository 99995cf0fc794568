#include "backend/confinement/confinement.hh"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "backend/confinement/confinement_testing.hh"
#include "backend/confinement/landlock.hh"
#include "base/fd.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// Of a worker with CUDA's driver (true), of all others (false). The driver's needs no GPU.
struct confined_worker_test : confinement_test, testing::WithParamInterface<bool> {
  using confinement_test::tried;
  std::map<std::string, int> tried(const std::function<void(attempts&)>& attempt) {
    return tried(attempt, [](const std::string& folder) {
      return confine_this_process({.folders = {folder}, .cuda_driver = GetParam()}, ::getenv);
    });
  }
};

/// The exit status of a program, or 256.
int run(const char* program, const char* argument) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    ::execl(program, program, argument, nullptr);
    ::_exit(126);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

TEST_P(confined_worker_test, closes_all_files_but_those_of_drivers_and_its_own) {
  const auto found = tried([this](attempts& a) {
    a.add("read", ::open(secret.c_str(), O_RDONLY));
    a.add("write", ::open(secret.c_str(), O_WRONLY));
    a.add("empty", ::truncate(secret.c_str(), 0));
    a.add("empty_a_readable_one", ::open("/usr/bin/env", O_RDONLY | O_TRUNC));
    a.add("remove", ::unlink(secret.c_str()));
    a.add("make", ::open((base + "/new").c_str(), O_CREAT | O_WRONLY, 0600));
    a.add("take_in", ::rename(secret.c_str(), (own + "/secret").c_str()));
    a.add("give_to_all", ::chmod(secret.c_str(), 0666));
    const int readable = ::open("/usr/bin/env", O_RDONLY);
    a.add("give_a_readable_one_to_all", ::fchmod(readable, 0777));
    a.add("make_it_the_owners", ::fchmod(readable, 04700));
    a.add("meet", ::mknod((own + "/pipe").c_str(), S_IFIFO | 0600, 0));
    a.add("device", ::mknod((own + "/zero").c_str(), S_IFCHR | 0600, 0x105));
    a.add("home", ::open("/root", O_RDONLY | O_DIRECTORY));
    a.add("temporary", ::open("/tmp/outboard-was-here", O_CREAT | O_WRONLY, 0600));
    a.add("link", ::symlink(secret.c_str(), (own + "/way").c_str()));
    a.add("read_by_link", ::open((own + "/way").c_str(), O_RDONLY));
    a.add("passwords", ::open("/etc/shadow", O_RDONLY));
    a.add("list_all", ::open("/", O_RDONLY | O_DIRECTORY));
    a.add("run_on_it", run("/bin/cat", secret.c_str()) == 1 ? 0 : -1);
  });
  EXPECT_EQ(found, (codes{{"read", EACCES},
                          {"write", EACCES},
                          {"empty", EPERM},
                          {"empty_a_readable_one", EPERM},
                          {"remove", EACCES},
                          {"make", EACCES},
                          {"take_in", EACCES},
                          {"give_to_all", EPERM},
                          {"give_a_readable_one_to_all", EPERM},
                          {"make_it_the_owners", EPERM},
                          {"meet", EACCES},
                          {"device", EACCES},
                          {"home", EACCES},
                          {"temporary", EACCES},
                          {"link", 0},
                          {"read_by_link", EACCES},
                          {"passwords", EACCES},
                          {"list_all", EACCES},
                          {"run_on_it", 0}}));
  EXPECT_EQ(fs::file_size(secret), 8u);
}

TEST_P(confined_worker_test, leaves_what_drivers_and_compilers_do) {
  const auto found = tried([this](attempts& a) {
    const int file = ::open("a", O_CREAT | O_RDWR | O_TRUNC, 0600);
    a.add("make_where_it_stands", file);
    a.add("write", ::write(file, "bytes", 5));
    a.add("cut", ::ftruncate(file, 1));
    a.add("make_folder", ::mkdir((own + "/folder").c_str(), 0700));
    a.add("rename", ::rename((own + "/a").c_str(), (own + "/folder/b").c_str()));
    a.add("remove", ::unlink((own + "/folder/b").c_str()));
    a.add("programs", ::open("/usr/bin/env", O_RDONLY));
    a.add("run", run("/bin/true", "") == 0 ? 0 : -1);
    a.add("itself", ::open("/proc/self/maps", O_RDONLY));
    a.add("processors", ::open("/proc/cpuinfo", O_RDONLY));
    a.add("nothing", ::open("/dev/null", O_RDWR));
    int pair[2];
    a.add("pair", ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    a.add("send", ::send(pair[0], "x", 1, MSG_NOSIGNAL));
    const int memory = ::memfd_create("memory", MFD_CLOEXEC);
    a.add("memory", memory);
    a.add("memory_size", ::ftruncate(memory, 4096));
    void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, memory, 0);
    a.add("map", mapped == MAP_FAILED ? -1 : 0);
    int in_thread = 1;
    std::thread([&] { in_thread = ::kill(::getpid(), 0); }).join();
    a.add("thread_and_own_signals", in_thread);
  });
  for (const auto& [name, code] : found) EXPECT_EQ(code, 0) << name;
  EXPECT_EQ(found.size(), 17u);
}

TEST_P(confined_worker_test, keeps_away_from_other_processes) {
  const pid_t other = ::getpid();
  const std::string process = "/proc/" + std::to_string(other);
  const std::string memory = process + "/mem", environment = process + "/environ";
  const unique_fd shared(::memfd_create("another session's", MFD_CLOEXEC));
  const std::string descriptor = process + "/fd/" + std::to_string(shared.get());
  const auto found = tried([&](attempts& a) {
    a.add("signal", ::kill(other, 0));
    a.add("signal_all", ::kill(-1, 0));
    a.add("signal_thread", ::syscall(SYS_tgkill, other, other, 0));
    a.add("signal_by_file", ::fcntl(STDIN_FILENO, F_SETOWN, other));
    a.add("hold", ::syscall(SYS_pidfd_open, other, 0));
    a.add("trace", ::ptrace(PTRACE_ATTACH, other, 0, 0));
    char byte = 0;
    iovec mine{&byte, 1}, theirs{&byte, 1};
    a.add("read", ::syscall(SYS_process_vm_readv, other, &mine, 1L, &theirs, 1L, 0L));
    a.add("memory", ::open(memory.c_str(), O_RDONLY));
    a.add("environment", ::open(environment.c_str(), O_RDONLY));
    a.add("shared_memory", ::open(descriptor.c_str(), O_RDWR));
    a.add("take_a_descriptor", ::syscall(SYS_pidfd_getfd, 0, shared.get(), 0));
    a.add("write", ::syscall(SYS_process_vm_writev, other, &mine, 1L, &theirs, 1L, 0L));
    rlimit limit{};
    a.add("limit", ::prlimit(other, RLIMIT_NOFILE, nullptr, &limit));
    a.add("slow_down", ::setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19));
    a.add("own_limit", ::getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max = limit.rlim_max == RLIM_INFINITY ? limit.rlim_max : limit.rlim_max + 1;
    a.add("more_than_its_limit",
          limit.rlim_max == RLIM_INFINITY ? (errno = EPERM, -1) : ::setrlimit(RLIMIT_NOFILE, &limit));
    a.add("leave_the_session", ::setsid());
    a.add("leave_the_group", ::setpgid(0, 0));
    a.add("outlive", ::prctl(PR_SET_PDEATHSIG, 0));
    if (!under_asan) a.add("be_dumpable", ::prctl(PR_SET_DUMPABLE, 1));
    a.add("of_one_user", ::syscall(SYS_shmget, 0, 4096, 0600));
  });
  codes expected{{"signal", EPERM},
                 {"signal_all", EPERM},
                 {"signal_thread", EPERM},
                 {"signal_by_file", EPERM},
                 {"hold", EPERM},
                 {"trace", EPERM},
                 {"read", EPERM},
                 {"memory", EACCES},
                 {"environment", EACCES},
                 {"shared_memory", EACCES},
                 {"take_a_descriptor", EPERM},
                 {"write", EPERM},
                 {"limit", EPERM},
                 {"slow_down", EPERM},
                 {"own_limit", 0},
                 {"more_than_its_limit", EPERM},
                 {"leave_the_session", EPERM},
                 {"leave_the_group", EPERM},
                 {"outlive", EPERM},
                 {"of_one_user", EPERM}};
  if (!under_asan) expected["be_dumpable"] = EPERM;
  EXPECT_EQ(found, expected);
}

TEST_P(confined_worker_test, makes_no_connections) {
  // As a daemon's own socket is, where its user comes in.
  sockaddr_un daemon{AF_UNIX, ""};
  std::snprintf(daemon.sun_path, sizeof daemon.sun_path, "%s/socket", base.c_str());
  const unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto found = tried([&](attempts& a) {
    a.add("tcp", ::socket(AF_INET, SOCK_STREAM, 0));
    a.add("udp", ::socket(AF_INET6, SOCK_DGRAM, 0));
    a.add("raw", ::socket(AF_PACKET, SOCK_RAW, 0));
    a.add("netlink", ::socket(AF_NETLINK, SOCK_RAW, 0));
    a.add("datagrams", ::socket(AF_UNIX, SOCK_DGRAM, 0));
    const int stream = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.add("local", stream);
    a.add("connect", ::connect(stream, reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon));
    int pair[2];
    a.add("datagram_pair", ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    a.add("connect_while_sending", ::sendto(pair[0], "x", 1, 0x20000000, nullptr, 0));
  });
  EXPECT_EQ(found, (codes{{"tcp", EPERM},
                          {"udp", EPERM},
                          {"raw", EPERM},
                          {"netlink", EPERM},
                          {"datagrams", EPERM},
                          {"datagram_pair", EPERM},
                          {"local", 0},
                          {"connect", GetParam() ? ENOENT : EPERM},
                          {"connect_while_sending", EPERM}}));
}

TEST_P(confined_worker_test, leaves_little_of_the_kernel) {
  const auto found = tried([](attempts& a) {
    a.add("name_space", ::unshare(CLONE_NEWUSER));
    a.add("name_space_of_a_child", ::syscall(SYS_clone, static_cast<unsigned long>(CLONE_NEWUSER | SIGCHLD),
                                             nullptr, nullptr, nullptr, 0L));
    a.add("mount", ::syscall(SYS_mount, "none", "/", "tmpfs", 0L, nullptr));
    a.add("enter", ::setns(0, 0));
    a.add("root", ::chroot("/"));
    a.add("module", ::syscall(SYS_finit_module, 0, "", 0));
    a.add("other_kernel", ::syscall(SYS_kexec_load, 0L, 0L, nullptr, 0L));
    a.add("faults_of_its_own", ::syscall(SYS_userfaultfd, 0));
    a.add("type_into_the_terminal", ::ioctl(STDIN_FILENO, TIOCSTI, "x"));
    a.add("console", ::ioctl(STDIN_FILENO, 0x541c, "\2"));
    a.add("quota", ::syscall(SYS_quotactl, 0, nullptr, 0, nullptr));
    a.add("bpf", ::syscall(SYS_bpf, 0L, nullptr, 0L));
    a.add("io_uring", ::syscall(SYS_io_uring_setup, 1L, nullptr));
    a.add("keys", ::syscall(SYS_keyctl, 0L, 0L, 0L, 0L, 0L));
    a.add("counters", ::syscall(SYS_perf_event_open, nullptr, 0L, -1L, -1L, 0L));
    a.add("user", ::syscall(SYS_setuid, 0L));
    a.add("clone3", ::syscall(SYS_clone3, nullptr, 0L));
    a.add("unheard_of", ::syscall(900L));
    a.add("unheard_of_by_other_numbers", ::syscall(0x40000000L | SYS_getpid));
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3]{};
    a.add("capabilities_asked", ::syscall(SYS_capget, &header, held));
    errno = EEXIST;
    // A driver keeps what performance counters are asked with, if it had that.
    if (GetParam()) held[1].permitted &= ~(1u << (38 - 32));
    a.add("capabilities_held", (held[0].effective | held[0].permitted | held[1].permitted) == 0 ? 0 : -1);
    errno = EEXIST;
    a.add("capabilities_to_come", ::geteuid() != 0 || ::prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0 ? 0 : -1);
    a.add("more_by_running", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1);
  });
  EXPECT_EQ(found, (codes{{"name_space", EPERM},
                          {"name_space_of_a_child", EPERM},
                          {"mount", EPERM},
                          {"enter", EPERM},
                          {"root", EPERM},
                          {"module", EPERM},
                          {"other_kernel", EPERM},
                          {"faults_of_its_own", EPERM},
                          {"type_into_the_terminal", EPERM},
                          {"console", EPERM},
                          {"quota", EPERM},
                          {"bpf", EPERM},
                          {"io_uring", EPERM},
                          {"keys", EPERM},
                          {"counters", EPERM},
                          {"user", EPERM},
                          {"clone3", ENOSYS},
                          {"unheard_of", ENOSYS},
                          {"unheard_of_by_other_numbers", ENOSYS},
                          {"capabilities_asked", 0},
                          {"capabilities_held", 0},
                          {"capabilities_to_come", 0},
                          {"more_by_running", 0}}));
}

TEST_P(confined_worker_test, opens_what_the_operator_adds) {
  const std::string other = base + "/other";
  fs::create_directory(other);
  const auto found = tried(
      [&](attempts& a) {
        a.add("read", ::open(secret.c_str(), O_RDONLY));
        a.add("write", ::open(secret.c_str(), O_WRONLY));
        a.add("make", ::open((other + "/new").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600));
      },
      [&](const std::string& folder) {
        return confine_this_process(
            {.folders = {folder, other}, .reads = {secret}, .cuda_driver = GetParam()}, ::getenv);
      });
  EXPECT_EQ(found, (codes{{"read", 0}, {"write", EACCES}, {"make", 0}}));
}

TEST_P(confined_worker_test, of_a_driver_meets_the_server_of_mps_that_the_operator_names) {
  const std::string mps = base + "/mps";
  fs::create_directory(mps);
  sockaddr_un control{AF_UNIX, ""};
  std::snprintf(control.sun_path, sizeof control.sun_path, "%s/control", mps.c_str());
  const unique_fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&control), sizeof control), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto variable = [&](const char* name) -> const char* {
    return std::string_view(name) == "CUDA_MPS_PIPE_DIRECTORY" ? mps.c_str() : nullptr;
  };
  const auto found = tried(
      [&](attempts& a) {
        const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        a.add("connect", ::connect(socket, reinterpret_cast<const sockaddr*>(&control), sizeof control));
        a.add("pipe", ::mknod((mps + "/pipe").c_str(), S_IFIFO | 0600, 0));
        a.add("secret", ::open(secret.c_str(), O_RDONLY));
        a.add("tcp", ::socket(AF_INET, SOCK_STREAM, 0));
      },
      [&](const std::string& folder) {
        return confine_this_process({.folders = {folder}, .cuda_driver = true}, variable);
      });
  EXPECT_EQ(found, (codes{{"connect", 0}, {"pipe", 0}, {"secret", EACCES}, {"tcp", EPERM}}));
}

TEST_P(confined_worker_test, of_a_driver_leaves_what_it_does_with_files_of_its_own) {
  const auto found = tried(
      [&](attempts& a) {
        const int file = ::open("a", O_CREAT | O_RDWR, 0600);
        a.add("mode", ::fchmod(file, 0644));
        const std::string task = "/proc/self/task/" + std::to_string(::gettid());
        a.add("name_of_a_thread", ::open((task + "/comm").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666));
        const int memory = ::memfd_create("memory", MFD_CLOEXEC);
        a.add("memory_by_its_number", ::open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_RDWR));
        int ends[2];
        a.add("pipe", ::pipe(ends));
        a.add("pipe_by_its_number", ::open(("/proc/self/fd/" + std::to_string(ends[1])).c_str(), O_WRONLY));
        const std::string name = "/dev/shm/outboard-confinement-test-" + std::to_string(::getpid());
        a.add("named_memory", ::open(name.c_str(), O_CREAT | O_RDWR | O_EXCL, 0600));
        a.add("remove_it", ::unlink(name.c_str()));
      },
      [&](const std::string& folder) {
        return confine_this_process({.folders = {folder}, .cuda_driver = true}, ::getenv);
      });
  for (const auto& [name, code] : found) EXPECT_EQ(code, 0) << name;
  EXPECT_EQ(found.size(), 7u);
}

TEST(must_confine, is_for_the_cpu_device_where_nothing_else_is_said) {
  using enum confine_choice;
  EXPECT_TRUE(must_confine(automatic, {"cpu"}));
  EXPECT_FALSE(must_confine(automatic, {"vendor"}));
  EXPECT_FALSE(must_confine(automatic, {.device = "cpu", .cuda = false}));
  EXPECT_TRUE(must_confine(required, {"vendor"}));
  EXPECT_TRUE(must_confine(required, {.device = "vendor", .cuda = false}));
  EXPECT_FALSE(must_confine(possible, {"cpu"}));
  EXPECT_FALSE(must_confine(off, {"cpu"}));
}

TEST(must_confine, is_for_gpus_whose_kernels_reach_their_worker) {
  using enum confine_choice;
  EXPECT_TRUE(must_confine(automatic, {.device = "vendor", .reaches_all_memory = true}));
  EXPECT_FALSE(must_confine(automatic, {.device = "vendor", .cuda = false, .reaches_all_memory = true}))
      << "OpenCL's have their own rule";
  EXPECT_FALSE(must_confine(possible, {.device = "vendor", .reaches_all_memory = true}))
      << "the operator's wish";
  EXPECT_FALSE(must_confine(off, {.device = "vendor", .reaches_all_memory = true}));
}

TEST_P(confined_worker_test, is_refused_where_a_thread_would_go_free) {
  const auto found =
      tried([](attempts& a) { a.add("confined", 0); },
            [](const std::string& folder) {
              std::jthread other([](const std::stop_token& stop) {
                while (!stop.stop_requested()) ::usleep(1000);
              });
              return confine_this_process({.folders = {folder}, .cuda_driver = GetParam()}, ::getenv);
            });
  EXPECT_EQ(found, codes{}) << "what it says is no attempt";
}

/// A listener of this machine, and the port it has.
std::pair<int, sockaddr_in> listening() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(::bind(made, reinterpret_cast<const sockaddr*>(&at), size) == 0 && ::listen(made, 8) == 0);
  CHECK(::getsockname(made, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  return {made, at};
}

TEST_F(confinement_test, leaves_the_gate_the_sockets_that_it_is_given_and_nothing_else) {
  const pid_t other = ::getpid();
  const auto [given, at] = listening();
  const int unconnected = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  const auto found = tried(
      [&, given = given, at = at](attempts& a) {
        const int accepted = ::accept4(given, nullptr, nullptr, SOCK_CLOEXEC);
        a.add("accept", accepted);
        a.add("answer", ::send(accepted, "x", 1, MSG_NOSIGNAL));
        int pair[2];
        a.add("pair", ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        a.add("time_zone", ::access("/etc/localtime", F_OK) != 0 ? 0 : ::open("/etc/localtime", O_RDONLY));
        a.add("connect", ::connect(unconnected, reinterpret_cast<const sockaddr*>(&at), sizeof at));
        a.add("tcp", ::socket(AF_INET, SOCK_STREAM, 0));
        a.add("read", ::open(secret.c_str(), O_RDONLY));
        a.add("read_own_folder", ::open((own + "/a").c_str(), O_CREAT | O_RDWR, 0600));
        a.add("programs", ::open("/usr/bin/env", O_RDONLY));
        a.add("memory", ::open(("/proc/" + std::to_string(other) + "/mem").c_str(), O_RDONLY));
        a.add("signal", ::kill(other, 0));
        a.add("trace", ::ptrace(PTRACE_ATTACH, other, 0, 0));
        if (under_asan) return;  // its run time needs some of what follows
        a.add("listen", ::listen(unconnected, 1));
        a.add("local", ::socket(AF_UNIX, SOCK_STREAM, 0));
        char* const none[]{nullptr};
        a.add("run", ::execve("/bin/true", none, none));
        const pid_t made = ::fork();
        if (made == 0) ::_exit(0);
        a.add("fork", made);
      },
      [](const std::string&) { return confine_the_gate(); });
  codes expected{{"accept", 0},        {"answer", 0},      {"pair", 0},       {"time_zone", 0},
                 {"connect", EPERM},   {"tcp", EPERM},     {"read", EACCES},  {"read_own_folder", EACCES},
                 {"programs", EACCES}, {"memory", EACCES}, {"signal", EPERM}, {"trace", EPERM}};
  if (!under_asan)
    expected.merge(codes{{"listen", EPERM}, {"local", EPERM}, {"run", EPERM}, {"fork", EPERM}});
  EXPECT_EQ(found, expected);
  for (const int each : {given, unconnected, client}) ::close(each);
}

TEST_F(confinement_test, locks_files_on_every_version_of_landlock_up_to_this_kernels) {
  for (int version = 1; version <= landlock_version(); ++version) {
    const auto found = tried(
        [this](attempts& a) {
          a.add("secret", ::open(secret.c_str(), O_RDONLY));
          a.add("own", ::open((own + "/file").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600));
        },
        [version](const std::string& folder) -> status {
          auto rules = file_rules::make(version);
          if (!rules.ok()) return rules.error();
          OUTBOARD_TRY(rules->allow(folder, permission::change));
          OUTBOARD_TRY(rules->allow(folder + "/not_there", permission::read));
          OUTBOARD_TRY(rules->allow("/dev/null", permission::device));
          ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
          return rules->enforce();
        });
    EXPECT_EQ(found, (codes{{"secret", EACCES}, {"own", 0}})) << "version " << version;
  }
}

INSTANTIATE_TEST_SUITE_P(of, confined_worker_test, testing::Bool(),
                         [](const auto& about) { return about.param ? "cuda_drivers" : "others"; });

}  // namespace
}  // namespace outboard::backend
