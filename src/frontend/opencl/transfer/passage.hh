// The way of a transfer's bytes through the blocks that its context shares with the server. Exists during the
// transfer, on the thread that requested it.
#pragma once

#include <optional>

#include "frontend/opencl/command.hh"
#include "frontend/opencl/kinds.hh"

namespace outboard::frontend::opencl {

class passage {
 public:
  /// Opens it for so many bytes. It may stay closed: another transfer uses the blocks, the server cannot
  /// share memory, or too little has been moved so far to make it worthwhile.
  passage(const command& c, std::uint64_t size);

  explicit operator bool() const { return lock_.owns_lock() && blocks_->area; }
  std::uint64_t block_size() const { return blocks_->block; }

  /// Takes a block that no command uses; nothing: there was none for a moment in which no command finished.
  /// The caller owns it from then on. It may hold at most half of all blocks that no command has used yet, so
  /// that the next block is never one of these.
  std::optional<unsigned> take();
  /// Waits until the commands on the block are complete; returns the result of the last.
  cl_int await(unsigned block);
  /// Has the server already reported this, for a block that was taken before the server was asked about
  /// another one?
  bool is_well_over(unsigned block) const { return !((blocks_->busy | failed_) & bit(block)); }
  /// The call on the block has been answered.
  void free(unsigned block) { blocks_->busy &= ~bit(block); }

  std::byte* at(unsigned block) const { return blocks_->area->at(block * blocks_->block); }
  /// The place for a command that is about to use the block.
  marshal::opencl::area_place place(unsigned block) {
    blocks_->busy |= bit(block);  // while the block had no command, the server may have reported it free
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
