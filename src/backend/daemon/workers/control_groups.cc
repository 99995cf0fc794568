#include "backend/daemon/workers/control_groups.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/file_bytes.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

constexpr const char* cure =
    "; give the server a group of its own (Delegate=yes in its systemd unit, or systemd-run --user --scope "
    "-p Delegate=yes outboard serve), or set worker.cgroup = \"off\"";

constexpr std::string_view group_prefix = "worker-";

/// What is killed in it ends within milliseconds, unless it sits in a driver.
constexpr auto removed_again_after = 50ms;
constexpr int attempts_to_remove = 200;

result<std::string> read_file(const std::string& path) {
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failure("cannot read " + path + ": " + errno_text(errno));
  return read_whole(file.get(), path, 1u << 20);
}

/// Files of a group are there already, and take a value in one write.
status write_file(const std::string& path, const std::string& value) {
  const unique_fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0)
    return failure("cannot write \"" + value + "\" to " + path + ": " + errno_text(errno));
  return {};
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()
             ? std::optional(number)
             : std::nullopt;
}

std::optional<std::uint64_t> number_in_file(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? number_of(*text) : std::nullopt;
}

/// Where it is, whether it can limit what a session takes, and whether it is ours alone.
result<own_group> look_at_own_group() {
  const auto groups = read_file("/proc/self/cgroup"), mounts = read_file("/proc/self/mountinfo");
  if (!groups.ok()) return groups.error();
  if (!mounts.ok()) return mounts.error();
  const auto name = own_group_in(*groups);
  if (!name) return failure("this system has no control groups of version 2");
  const auto folder = group_folder_in(*mounts, *name);
  if (!folder) return failure("the control group " + *name + " is mounted nowhere here");
  const auto has = read_file(*folder + "/cgroup.controllers");
  if (!has.ok()) return has.error();
  if (!has_word(*has, "memory") || !has_word(*has, "pids"))
    return failure("the control group " + *name + " limits no memory and no processes");
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    if (::access((*folder + file).c_str(), W_OK) != 0)
      return failure("the control group " + *name + " belongs to others: " + *folder + file + ": " +
                     errno_text(errno));
  }
  const auto inside = read_file(*folder + "/cgroup.procs");
  if (!inside.ok()) return inside.error();
  if (*inside != std::to_string(::getpid()) + "\n")
    return failure("other processes are in the control group " + *name + ", too");
  return own_group{*folder, *name, has_word(*has, "cpu")};
}

/// Of a daemon that was here before, which had no time to do it itself.
void remove_leftovers(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string path = entry.path();
    if (!entry.path().filename().string().starts_with(group_prefix)) continue;
    (void)write_file(path + "/cgroup.kill", "1").ok();
    if (::rmdir(path.c_str()) != 0) log::debug("the group ", path, " stays: ", errno_text(errno));
  }
}

/// Moves there, and has groups below it limit what they hold.
status settle_in(const own_group& own) {
  const std::string daemon = own.folder + "/daemon";
  if (::mkdir(daemon.c_str(), 0755) != 0 && errno != EEXIST)
    return failure("cannot make " + daemon + ": " + errno_text(errno));
  const std::string here = std::to_string(::getpid());
  OUTBOARD_TRY(write_file(daemon + "/cgroup.procs", here));
  const status limits =
      write_file(own.folder + "/cgroup.subtree_control", own.weighs ? "+memory +pids +cpu" : "+memory +pids");
  if (limits.ok()) return remove_leftovers(own.folder), limits;
  (void)write_file(own.folder + "/cgroup.procs", here).ok();
  ::rmdir(daemon.c_str());
  return limits;
}

result<own_group> take_own_group() {
  auto own = look_at_own_group();
  if (own.ok()) OUTBOARD_TRY(settle_in(*own));
  return own;
}

}  // namespace

result<group_choice> choose_groups(cgroup_choice choice) {
  if (choice == cgroup_choice::off) return group_choice{};
  auto own = take_own_group();
  if (own.ok()) {
    log::info("each worker has a control group of its own below ", own->name);
    return group_choice{std::move(*own), {}};
  }
  const std::string why = own.error().message + cure;
  if (choice == cgroup_choice::required) return failure("worker.cgroup is \"require\", but " + why);
  log::info("workers have no control groups: ", why);
  return group_choice{std::nullopt, why};
}

control_groups::control_groups(event_loop& loop, std::optional<own_group> own)
    : loop_(loop), own_(std::move(own)) {}

result<std::string> control_groups::make(std::uint64_t worker) {
  if (!own_) return std::string();
  std::string group = own_->folder + "/" + std::string(group_prefix) + std::to_string(worker);
  if (::mkdir(group.c_str(), 0755) != 0)
    return outboard::error{action::retry,
                           "cannot make the control group " + group + ": " + errno_text(errno)};
  status set = write_file(group + "/pids.max", std::to_string(most_group_processes));
  // What a worker has started ends with it: half a session is none.
  if (set.ok()) set = write_file(group + "/memory.oom.group", "1");
  if (set.ok()) return group;
  ::rmdir(group.c_str());
  return set.error();
}

status control_groups::enter(const std::string& group, pid_t process) {
  return write_file(group + "/cgroup.procs", std::to_string(process));
}

status control_groups::limit(const std::string& group, const group_limits& to) const {
  const std::string most = to.host_memory ? std::to_string(*to.host_memory + worker_allowance) : "max";
  OUTBOARD_TRY(write_file(group + "/memory.max", most));
  // Else what is above the limit would lie in the swap space. A system without that has no such file.
  if (const status set = write_file(group + "/memory.swap.max", to.host_memory ? "0" : "max"); !set.ok())
    log::debug(set.error().message);
  if (!own_ || !own_->weighs) return {};
  return write_file(group + "/cpu.weight", std::to_string(to.cpu_weight.value_or(100)));
}

std::optional<group_usage> control_groups::usage(const std::string& group) {
  const auto held = number_in_file(group + "/memory.current");
  if (!held) return std::nullopt;
  return group_usage{*held, number_in_file(group + "/memory.max")};
}

std::string control_groups::end_of(const std::string& group) {
  const auto events = read_file(group + "/memory.events");
  if (!events.ok() || number_in_lines(*events, "oom_kill") == 0) return {};
  // "oom" counts what this group's own limit has refused.
  const auto most = number_in_file(group + "/memory.max");
  if (!most || number_in_lines(*events, "oom") == 0)
    return "the server had no memory left for all its sessions together, and the kernel has ended this one's "
           "worker";
  return "it took more of the server's own memory than the " + mebibytes(*most) +
         " that a session of its identity may have (host_memory, and " + mebibytes(worker_allowance) +
         " for its worker): the kernel has ended its worker";
}

void control_groups::remove(const std::string& group) {
  // Also what has left the worker's process group.
  if (const status killed = write_file(group + "/cgroup.kill", "1"); !killed.ok())
    log::debug(killed.error().message);  // before Linux 5.14
  try_to_remove(group, attempts_to_remove);
}

void control_groups::try_to_remove(const std::string& group, int attempts) {
  if (::rmdir(group.c_str()) == 0 || errno == ENOENT) return;
  if (errno != EBUSY || attempts == 0)
    return log::warn("the control group ", group, " stays: ", errno_text(errno));
  loop_.after(removed_again_after, [this, group, attempts] { try_to_remove(group, attempts - 1); });
}

std::optional<std::string> own_group_in(std::string_view proc_cgroup) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = next_line(proc_cgroup);
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

/// A line has number, parent, device, root, mount point, options, further fields, "-", type and more.
std::optional<std::string> group_folder_in(std::string_view mountinfo, std::string_view group) {
  while (!mountinfo.empty()) {
    std::string_view line = next_line(mountinfo);
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos || !line.substr(dash).starts_with(" - cgroup2 ")) continue;
    for (int i = 0; i < 3; ++i) next_word(line);
    std::string_view root = next_word(line);
    const std::string folder(next_word(line));
    if (!folder.starts_with('/')) continue;
    if (root == "/") root = "";
    // A name space may have mounted a part of the tree alone.
    if (!group.starts_with(root)) continue;
    const std::string_view below = group.substr(root.size());
    if (below.empty() || below == "/") return folder;
    if (below.front() == '/') return folder + std::string(below);
  }
  return std::nullopt;
}

std::uint64_t number_in_lines(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    std::string_view line = next_line(lines);
    if (next_word(line) == name) return number_of(next_word(line)).value_or(0);
  }
  return 0;
}

bool has_word(std::string_view line, std::string_view word) {
  line = next_line(line);
  while (!line.empty()) {
    if (next_word(line) == word) return true;
  }
  return false;
}

}  // namespace outboard::backend
