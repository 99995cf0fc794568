// One request at a time builds a program or asks what a build made of it: how many bytes that takes is asked
// first, and must hold when the bytes come. Own lock; any thread, without the session's turn.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "api/opencl/headers.hh"

namespace outboard::backend::opencl {

class program_doors {
 public:
  /// Alone with the program until it dies.
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
