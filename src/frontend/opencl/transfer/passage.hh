// The passage of a transfer's bytes through the blocks that its context shares with the server. Lives for the
// time of the transfer, on the thread that asked for it.
#pragma once

#include <optional>

#include "frontend/opencl/command.hh"
#include "frontend/opencl/kinds.hh"

namespace outboard::frontend::opencl {

class passage {
 public:
  /// For so many bytes. The passage may be closed, because another transfer uses the blocks, the server
  /// cannot share memory, or too little has been moved so far.
  passage(const command& c, std::uint64_t size);

  explicit operator bool() const { return lock_.owns_lock() && blocks_->area; }
  std::uint64_t block_size() const { return blocks_->block; }

  /// A block that no command uses; nothing: there was none while nothing made progress for a moment. From
  /// then on it belongs to the caller, who has at most half of all blocks that no command has used yet: the
  /// next one is never one of these.
  std::optional<unsigned> take();
  /// Waits until the commands on it are complete; returns the status of the last of them.
  cl_int await(unsigned block);
  /// Whether the server has reported that already, for a block that was taken before it was asked for another
  /// one.
  bool is_well_over(unsigned block) const { return !((blocks_->busy | failed_) & bit(block)); }
  /// The call on it has been answered.
  void free(unsigned block) { blocks_->busy &= ~bit(block); }

  std::byte* at(unsigned block) const { return blocks_->area->at(block * blocks_->block); }
  /// For a command, which is about to use it.
  marshal::opencl::area_place place(unsigned block) {
    blocks_->busy |= bit(block);  // while it had none, the server may have called it free
    return blocks_->area->place(block * blocks_->block);
  }

 private:
  static std::uint64_t bit(unsigned block) { return std::uint64_t{1} << block; }
  cl_int ask(unsigned block, bool patient);

  staging_blocks* blocks_ = nullptr;
  std::uint64_t failed_ = 0;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace outboard::frontend::opencl
