// The pieces of OpenCL's large transfers over data connections. They are blocks of locked memory if some are
// free, else ordinary memory, because a device that waits for something must not stop the others. Own lock;
// any thread.
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
  /// A piece that came from the client.
  explicit moved_piece(host_bytes memory)
      : data_piece({memory.data, memory.size}), memory_(std::move(memory)) {}
  /// A piece that leaves when `done` is complete. The piece owns `done` from now on.
  moved_piece(host_bytes memory, session* from, cl_command_queue queue, cl_event done)
      : data_piece({memory.data, memory.size}),
        memory_(std::move(memory)),
        session_(from),
        queue_(queue),
        done_(done) {}
  /// Keeps the memory alive, because the device may still use it.
  ~moved_piece() override;

  std::int32_t await() override;

  /// The memory is the caller's.
  host_bytes release() { return std::exchange(memory_, {}); }

 private:
  host_bytes memory_;
  session* const session_ = nullptr;
  const cl_command_queue queue_ = nullptr;  // only for comparison: it may be gone
  const cl_event done_ = nullptr;
};

class data_pieces final : public piece_memory {
 public:
  /// `let_go` gives back the blocks of commands that are complete.
  data_pieces(block_pool& blocks, std::function<void()> let_go)
      : blocks_(blocks), let_go_(std::move(let_go)) {}

  /// Allows connections for this context, which the client calls `id`.
  void add(std::uint64_t id, cl_context context);
  /// To be called before the context is released. Returns its id; 0 if it had no connections.
  std::uint64_t remove(cl_context context);

  std::function<void()> enter(std::uint64_t context) override;
  std::unique_ptr<data_piece> take(std::size_t size, std::uint64_t context) override;

 private:
  host_bytes wait_for_block(cl_context context, std::size_t size);

  block_pool& blocks_;
  const std::function<void()> let_go_;
  std::atomic<bool> stuck_{false};  ///< a wait for a block was in vain, and none has come back since
  std::mutex mutex_;                // guards contexts_
  std::map<std::uint64_t, cl_context> contexts_;
};

}  // namespace outboard::backend::opencl
