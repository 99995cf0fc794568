// Keeps the client's files on this machine's disk while builds read them, with the process's current folder
// among them (marshal/opencl/build_files.hh says where each lies). Concurrent builds share the folder as long
// as they agree on the files; a build that does not waits until the others have ended. Own lock; any thread,
// without the session's turn.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hh"

namespace outboard::backend::opencl {

using file_contents = std::shared_ptr<const std::vector<std::byte>>;

/// What one build may read. All paths are plain ones (is_plain_path).
struct files_of_build {
  std::string here, set_name;
  std::vector<std::string> folders;
  std::vector<std::pair<std::string, file_contents>> files;
};

class build_folder {
 public:
  /// Held while one build reads its files.
  class stay {
   public:
    explicit stay(build_folder& in) : in_(&in) {}
    stay(stay&& other) noexcept : in_(std::exchange(other.in_, nullptr)) {}
    stay& operator=(stay&&) = delete;
    ~stay() {
      if (in_) in_->leave();
    }
    /// Removes the folder's name from a message of the compiler.
    std::string without_folder(std::string text) const;

   private:
    build_folder* in_;
  };

  build_folder() = default;
  build_folder(const build_folder&) = delete;
  build_folder& operator=(const build_folder&) = delete;
  ~build_folder();

  /// Waits until these files do not contradict those of other builds. An error: this host has no room for
  /// them.
  result<stay> enter(const files_of_build& wanted);

 private:
  void leave();
  bool agrees(const files_of_build& wanted) const;
  status place(const files_of_build& wanted);
  void clear();

  std::mutex door_;   // held by the build that waits to enter, so that builds that agree cannot keep it out
                      // indefinitely
  std::mutex mutex_;  // guards the others
  std::condition_variable left_;
  std::size_t inside_ = 0;
  std::string folder_;  ///< empty: there is none
  std::string here_;
  std::string before_;  ///< the process's current folder
  std::map<std::string, file_contents> placed_;
  std::uint64_t bytes_ = 0;
};

}  // namespace outboard::backend::opencl
