// CUDA's pieces of large copies: page-locked blocks of the session's. As data_piece.hh.
#pragma once

#include <utility>

#include "backend/cuda/copying/staging.hh"
#include "backend/session/data_piece.hh"

namespace outboard::backend {

class staged_piece final : public data_piece {
 public:
  staged_piece(const api::driver_table& driver, staging& stage, const staging::block& block, std::size_t size)
      : data_piece({block.data, size}), driver_(driver), staging_(stage), block_(block) {}
  ~staged_piece() override {
    if (block_.data) staging_.give_back(block_);
  }

  /// Its block's event.
  std::int32_t await() override;

  /// The block is the caller's.
  staging::block release() { return std::exchange(block_, {}); }

 private:
  const api::driver_table& driver_;
  staging& staging_;
  staging::block block_;
};

class staged_pieces final : public piece_memory {
 public:
  staged_pieces(const api::driver_table& driver, staging& stage) : driver_(driver), staging_(stage) {}

  std::function<void()> enter(std::uint64_t context) override;
  std::unique_ptr<data_piece> take(std::size_t size, std::uint64_t context) override;

 private:
  const api::driver_table& driver_;
  staging& staging_;
};

}  // namespace outboard::backend
