// The program's own buffers for records: requested when there is something to write, given back when full or
// flushed. The program's two functions are called without any lock of ours but the owner's. One thread at a
// time.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace outboard::frontend::cupti {

class record_buffers {
 public:
  /// `version`: the major version of CUDA whose records the program reads.
  void use(int version, CUpti_BuffersCallbackRequestFunc give, CUpti_BuffersCallbackCompleteFunc take) {
    flush();  // what holds records of another version goes to whom it was asked from
    version_ = version;
    give_ = give;
    take_ = take;
  }

  /// The program has said where they come from.
  bool in_use() const { return give_ != nullptr; }

  /// `record` is of the newest version. False: the program has no room for it, and it is lost.
  bool put(CUpti_ActivityKind kind, const void* record);
  /// Gives back what is begun.
  void flush();
  /// Asks for one, if none is begun. False: there is none.
  bool open();
  /// Any thread.
  bool is_open() const { return open_.load(std::memory_order_relaxed); }

  /// The record behind `*record` (null: the first one) of a buffer filled by us for programs of this version.
  static CUptiResult next(int version, std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record);
  /// What a record takes in a buffer: the size of its struct, and of what later versions of the same CUDA
  /// have behind that, which is zeros.
  static std::size_t room_of(int version, CUpti_ActivityKind kind);
  /// The size of a record that this front-end makes; 0: it makes none of this kind.
  static std::size_t size_of(int version, CUpti_ActivityKind kind);

 private:
  int version_ = 13;
  CUpti_BuffersCallbackRequestFunc give_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc take_ = nullptr;
  std::atomic<bool> open_{false};
  std::uint8_t* buffer_ = nullptr;
  std::size_t size_ = 0, used_ = 0, records_ = 0, most_records_ = 0;
};

}  // namespace outboard::frontend::cupti
