// Lets one request at a time build a program, or ask for the results of a build: the size of a result is
// asked first, and must still be right when the bytes are asked for. Own lock; any thread, without the
// session's turn.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "api/opencl/headers.hh"

namespace outboard::backend::opencl {

class program_doors {
 public:
  /// While it lives, its owner has the program for itself.
  class stay {
   public:
    stay(program_doors& doors, cl_program program) : doors_(doors), program_(program) {
      std::unique_lock lock(doors_.mutex_);
      doors_.left_.wait(lock, [&] { return doors_.inside_.insert(program_).second; });
    }
    ~stay() {
      {
        const std::lock_guard lock(doors_.mutex_);
        doors_.inside_.erase(program_);
      }
      doors_.left_.notify_all();
    }
    stay(const stay&) = delete;
    stay& operator=(const stay&) = delete;

   private:
    program_doors& doors_;
    const cl_program program_;
  };

 private:
  std::mutex mutex_;  // guards inside_
  std::condition_variable left_;
  std::set<cl_program> inside_;
};

}  // namespace outboard::backend::opencl
