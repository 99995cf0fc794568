// Landlock: a lock of the kernel that decides which files this thread, and all that it starts from then on,
// can reach. Root has to obey it as well, and nobody can take it off again. To be used early, by the only
// thread of a process: threads that exist already are not restricted.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// What is allowed with a file, or below a folder.
enum class permission : std::uint8_t {
  read,              ///< read, list and run
  rewrite,           ///< read, and write what exists
  device,            ///< read, write and control; not make or remove
  change,            ///< everything except running it and making special files
  change_and_pipes,  ///< that, and making named pipes
};

/// Returns which version of Landlock this kernel has; 0 if it has none, or if it is switched off.
int landlock_version();

class file_rules {
 public:
  /// Makes rules for a kernel with that version (1 or more). What that version cannot lock stays open.
  static result<file_rules> make(int version);

  /// Passes over a path that does not exist, or that this user cannot reach.
  status allow(const std::string& path, permission what);

  /// From now on nothing else can be opened, made or removed. From version 4 on, no TCP connection can be
  /// made. From version 6 on, abstract sockets and signals reach only the processes that this one starts.
  /// Needs no_new_privs.
  status enforce() const;

 private:
  file_rules(unique_fd rules, std::uint64_t handled) : rules_(std::move(rules)), handled_(handled) {}

  unique_fd rules_;
  std::uint64_t handled_;  // the rights that we know and this kernel can lock
};

}  // namespace outboard::backend
