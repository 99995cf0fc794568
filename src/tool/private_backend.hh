// The back-end that `run` starts for one program where no server is named: a process of its own, a Unix
// socket in a fresh folder that only this user may enter. It ends with its owner, also when that is killed.
// Owned by `run`; its one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/configuration/config.hh"
#include "base/result.hh"

namespace outboard::tool {

class private_backend {
 public:
  /// Returns once it listens. It says on stderr what is wrong if it cannot.
  static result<private_backend> start(device_choice device, const std::string& config_file);

  private_backend(private_backend&& other) noexcept;
  private_backend& operator=(private_backend&&) = delete;
  /// Ends it, waits until it is gone, removes its folder.
  ~private_backend();

  std::string url() const { return "unix:" + folder_ + "/socket"; }
  pid_t process() const { return process_; }

 private:
  explicit private_backend(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  pid_t process_ = -1;
};

}  // namespace outboard::tool
