// Functions of the program that the server asks for: host functions, stream callbacks, destructors of user
// objects. The program's pointers never travel: the server knows the functions by number. All run on one
// thread, which exists from the first such function on. They may not make CUDA calls, as with the real
// driver. Owned by the process state; any thread may add.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>

#include "frontend/session.hh"

namespace outboard::frontend {

/// Host memory of a copy in a graph; rows of `width` bytes. The server sees its bytes without gaps.
struct host_box {
  std::byte* base = nullptr;
  std::uint64_t width = 0, height = 1, depth = 1, pitch = 0, slice = 0;
  std::uint64_t size() const { return width * height * depth; }
  /// The program's place of bytes [offset, offset + size); nullptr: not in one row.
  std::byte* place(std::uint64_t offset, std::uint64_t size) const;
  bool gapless() const;
  std::span<const std::byte> extent() const;  ///< from its first byte to its last
};

class host_functions {
 public:
  using function = std::function<void(std::int32_t status)>;

  /// The number by which the server asks for it, until forget(). `pointers`: the program's own names for it.
  std::uint64_t add(session& from, function run, std::pair<void*, void*> pointers = {});
  std::uint64_t add(session& from, const host_box& box);
  void forget(std::uint64_t id);
  /// What is done on the functions' thread before and after each of them: bytes that they may read arrive
  /// before, and bytes that they wrote leave before the work behind them. Set before the first add().
  void surround(std::function<void()> before, std::function<void()> after);

  std::pair<void*, void*> pointers(std::uint64_t id) const;  ///< null: no such function
  std::optional<host_box> box(std::uint64_t id) const;
  /// Whether a graph's copy reads or writes there.
  bool in_a_box(std::span<const std::byte> memory) const;

  /// The process ends: waits a moment for the thread, unless it is inside the program's code.
  void end();
  /// In a forked child there is no such thread.
  void forked();

 private:
  struct entry {
    std::shared_ptr<const function> run;
    std::pair<void*, void*> pointers;
    host_box box;
  };
  std::uint64_t keep(session& from, entry e);
  void work(session& from);
  void run(const callback_order& order);
  std::vector<std::byte> bytes_of(const std::vector<std::uint64_t>& boxes) const;

  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> before_, after_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, entry> entries_;
  bool started_ = false;
  std::atomic<std::size_t> boxes_{0};  ///< among them
  std::atomic<bool> gone_{true};
  std::atomic<bool> in_program_{false};
};

}  // namespace outboard::frontend
