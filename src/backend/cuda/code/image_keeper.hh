// Keeps images of one session for others, beside what the session does: hashing and writing take their time.
// Owned by the session; keep() with or without the turn, end() once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "backend/cuda/code/code.hh"
#include "backend/disk/image_terms.hh"

namespace outboard::backend {

class image_keeper {
 public:
  ~image_keeper() { end(std::chrono::milliseconds(0)); }

  /// Before the session begins; without it there is no cache.
  void open(image_cache* cache, const image_terms& terms);
  bool is_open() const { return cache_ != nullptr; }

  /// The image if it is here and the client has proved that it has it, too.
  std::optional<std::vector<std::byte>> find(const marshal::image_name& name,
                                             const marshal::image_proof& proof) const;

  void keep(std::shared_ptr<const loaded_code> code);
  /// What is not kept by then is given up.
  void end(std::chrono::milliseconds patience);

 private:
  void work();

  image_cache* cache_ = nullptr;
  image_terms terms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const loaded_code>> waiting_;
  bool writing_ = false, ended_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace outboard::backend
