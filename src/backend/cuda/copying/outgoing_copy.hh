// Bytes of the device on their way to the client, piece by piece through staging blocks, in stream order. A
// call gets them as data frames before its reply; those of a post go out when they are there (copies_out).
// Lives on the lane's thread for the time of the request.
#pragma once

#include <functional>

#include "backend/cuda/call.hh"
#include "backend/cuda/copying/staging.hh"

namespace outboard::backend {

class outgoing_copy {
 public:
  /// Enqueues the copy of packed bytes [offset, offset + size) to page-locked memory.
  using copy_piece = std::function<CUresult(std::uint64_t offset, std::size_t size, std::byte* to)>;
  /// How many bytes the piece that begins at `offset` may have.
  using cut = std::function<std::size_t(std::uint64_t offset)>;

  /// Of a copy to the host: small enough to overlap, large enough for full speed.
  static constexpr std::size_t piece = 4u << 20;

  outgoing_copy(call& c, CUstream stream, bool per_thread, std::uint64_t size, cut cut_at = {});

  /// `refused`: why it cannot even begin; the client then expects no bytes.
  outcome run(CUresult refused, const copy_piece& copy);

 private:
  std::size_t piece_at(std::uint64_t offset, std::size_t most = piece) const;
  CUresult enqueue(std::uint64_t offset, std::size_t size, staging::block& block) const;
  bool run_quickly(CUresult& code) const;
  CUresult run_waiting() const;
  CUresult run_posted() const;
  void send_bytes(std::uint64_t offset, std::span<const std::byte> bytes) const;

  call& call_;
  CUstream stream_;
  bool per_thread_;
  std::uint64_t size_;
  cut cut_;
  const copy_piece* copy_ = nullptr;
};

}  // namespace outboard::backend
