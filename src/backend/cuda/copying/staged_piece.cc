#include "backend/cuda/copying/staged_piece.hh"

#include "backend/cuda/relaxed_capture.hh"
#include "marshal/data_bodies.hh"

namespace outboard::backend {
namespace {

/// What a client keeps on the way, and what the device still reads.
constexpr std::size_t blocks_prepared = 24;

}  // namespace

std::int32_t staged_piece::await() {
  const relaxed_capture relaxed(driver_);
  return driver_.cuEventSynchronize(block_.done);
}

std::function<void()> staged_pieces::enter(std::uint64_t context) {
  CUcontext native = nullptr;
  if (driver_.cuCtxGetCurrent(&native) != CUDA_SUCCESS) return {};
  return [this, native, context] {
    driver_.cuCtxSetCurrent(native);
    staging_.prepare(marshal::max_data_piece, blocks_prepared, context);
  };
}

std::unique_ptr<data_piece> staged_pieces::take(std::size_t size, std::uint64_t context) {
  const staging::block block = staging_.take(size, context);
  if (!block.data) return nullptr;
  return std::make_unique<staged_piece>(driver_, staging_, block, size);
}

}  // namespace outboard::backend
