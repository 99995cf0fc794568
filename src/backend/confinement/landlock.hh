// Landlock: which files this thread, and all that it starts from then on, can reach. For one thread, early:
// threads that are there already go free. The kernel's own lock, which root has to obey as well and nobody
// can take off again.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// What may be done with a file, or below a folder.
enum class permission : std::uint8_t {
  read,    ///< read, list and run
  device,  ///< read, write, empty and control; nothing is made or removed
  change,  ///< everything but running it and making special files
  meet,    ///< change, and make sockets and pipes: where processes of one service meet
  clear,   ///< list and make folders, move and remove all there is; no file can be opened
  vanish,  ///< empty folders in it can be removed
};

/// The version of Landlock that this kernel has; 0: none, or it is not switched on.
int landlock_version();

/// What stays open that is no file.
struct open_scopes {
  bool local_sockets = false;  ///< abstract ones
  bool signals = false;
};

class file_rules {
 public:
  /// Of a kernel with that version (1 or more): what it cannot lock stays open.
  static result<file_rules> make(int version, open_scopes open = {});

  /// A path that is not there, or that this user cannot reach, is passed over.
  status allow(const std::string& path, permission what);

  /// From now on nothing else can be opened, made or removed; from version 4 no TCP connection is made, and
  /// from version 6 abstract sockets and signals stay among the processes that this one starts. Wants
  /// no_new_privs.
  status enforce() const;

 private:
  file_rules(unique_fd rules, std::uint64_t handled) : rules_(std::move(rules)), handled_(handled) {}

  unique_fd rules_;
  std::uint64_t handled_;  // what the kernel locks of what we know
};

}  // namespace outboard::backend
