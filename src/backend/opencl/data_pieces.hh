// OpenCL's pieces of large transfers over data connections: blocks of locked memory where some are free, else
// ordinary memory, because a device that waits for something must not stop what is beside it. Own lock; any
// thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "backend/opencl/block_pool.hh"
#include "backend/session/data_piece.hh"

namespace outboard::backend::opencl {

class session;

class moved_piece final : public data_piece {
 public:
  /// That came.
  explicit moved_piece(host_bytes memory)
      : data_piece({memory.data, memory.size}), memory_(std::move(memory)) {}
  /// That leaves when `done`, which is the piece's from now on, is complete.
  moved_piece(host_bytes memory, session* from, cl_command_queue queue, cl_event done)
      : data_piece({memory.data, memory.size}),
        memory_(std::move(memory)),
        session_(from),
        queue_(queue),
        done_(done) {}
  /// The device may still be at work on the memory: it lives so long.
  ~moved_piece() override;

  std::int32_t await() override;

  /// The memory is the caller's.
  host_bytes release() { return std::exchange(memory_, {}); }

 private:
  host_bytes memory_;
  session* const session_ = nullptr;
  const cl_command_queue queue_ = nullptr;  // its name alone: it may be gone
  const cl_event done_ = nullptr;
};

class data_pieces final : public piece_memory {
 public:
  /// `let_go` gives back what commands have used that are complete.
  data_pieces(block_pool& blocks, std::function<void()> let_go)
      : blocks_(blocks), let_go_(std::move(let_go)) {}

  /// Connections of this context may be made. The client calls it `id`.
  void add(std::uint64_t id, cl_context context);
  /// The context is about to go. Its id; 0: it had no connections.
  std::uint64_t remove(cl_context context);

  std::function<void()> enter(std::uint64_t context) override;
  std::unique_ptr<data_piece> take(std::size_t size, std::uint64_t context) override;

 private:
  host_bytes wait_for_block(cl_context context, std::size_t size);

  block_pool& blocks_;
  const std::function<void()> let_go_;
  std::atomic<bool> stuck_{false};  ///< blocks were waited for in vain, and none has come back since
  std::mutex mutex_;                // guards contexts_
  std::map<std::uint64_t, cl_context> contexts_;
};

}  // namespace outboard::backend::opencl
