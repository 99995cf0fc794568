// The private server that `run` starts for one program if no server is named: a separate process with a Unix
// socket in a fresh folder that only this user may enter. It ends with its owner, also if that is killed.
// Owned by `run`; its one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/config.hh"
#include "base/result.hh"

namespace outboard::tool {

class private_backend {
 public:
  /// Returns once the server listens. If it cannot, it has written the reason to stderr.
  static result<private_backend> start(device_choice device, const std::string& config_file);

  private_backend(private_backend&& other) noexcept;
  private_backend& operator=(private_backend&&) = delete;
  /// Ends the server, waits until it has ended, and removes its folder.
  ~private_backend();

  std::string url() const { return "unix:" + folder_ + "/socket"; }
  pid_t process() const { return process_; }

 private:
  private_backend(std::string folder, pid_t process) : folder_(std::move(folder)), process_(process) {}

  std::string folder_;
  pid_t process_ = -1;
};

}  // namespace outboard::tool
