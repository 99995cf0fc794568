// A control group (cgroup v2) for each worker: what of the machine one session may take. They lie in the
// group that was given to the daemon, which itself moves into one beside them, because a group with groups
// below it can limit them only if it holds no process. Owned by the workers; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/daemon/event_loop.hh"
#include "base/configuration/config.hh"
#include "base/result.hh"

namespace outboard::backend {

/// The group that was given to this process, which has left it for the one that is called "daemon" below it.
struct own_group {
  std::string folder;   ///< where it is mounted
  std::string name;     ///< as the system knows it: "/system.slice/outboard.service"
  bool weighs = false;  ///< shares of processors can be weighed in it
};

/// What became of `worker.cgroup`.
struct group_choice {
  std::optional<own_group> own;  ///< nothing: workers have no groups
  std::string why_not;           ///< a sentence with its cure; empty: they have, or are to have none
};

/// Takes the process's own group over, before it has any child. Where it is not for this process alone: an
/// error with "require", else the log says so.
result<group_choice> choose_groups(cgroup_choice choice);

/// Beside what an identity's `host_memory` gives a session: its worker's own code, and what a driver needs of
/// the host for a context.
inline constexpr std::uint64_t worker_allowance = 512ull << 20;
/// Threads count, and a session may have 4096 lanes with one each; the rest is for drivers and compilers.
inline constexpr std::uint32_t most_group_processes = 8192;

struct group_limits {
  std::optional<std::uint64_t> host_memory;  ///< without the allowance; nothing: no limit
  std::optional<std::uint32_t> cpu_weight;   ///< nothing: 100, as the kernel has it
};

struct group_usage {
  std::uint64_t memory = 0;
  std::optional<std::uint64_t> most;  ///< with the allowance
};

class control_groups {
 public:
  control_groups(event_loop& loop, std::optional<own_group> own);

  bool on() const { return own_.has_value(); }
  /// A group that holds nobody yet; empty where there are none.
  result<std::string> make(std::uint64_t worker);
  static status enter(const std::string& group, pid_t process);
  status limit(const std::string& group, const group_limits& to) const;
  static std::optional<group_usage> usage(const std::string& group);
  /// Why the kernel has ended what was in it: a sentence; empty: it has not.
  static std::string end_of(const std::string& group);
  /// Ends what is left in it. It goes when that has ended, soon after.
  void remove(const std::string& group);

 private:
  void try_to_remove(const std::string& group, int attempts);

  event_loop& loop_;
  std::optional<own_group> own_;
};

// The kernel's texts, as they are read above:

/// The group of version 2 in /proc/self/cgroup: "/user.slice"; nothing: there is none.
std::optional<std::string> own_group_in(std::string_view proc_cgroup);
/// The folder of a group of version 2 by /proc/self/mountinfo; nothing: it is mounted nowhere.
std::optional<std::string> group_folder_in(std::string_view mountinfo, std::string_view group);
/// A number of a file with lines "NAME NUMBER"; 0: it has no such line.
std::uint64_t number_in_lines(std::string_view lines, std::string_view name);
/// Is `word` one of the words of this line?
bool has_word(std::string_view line, std::string_view word);

}  // namespace outboard::backend
