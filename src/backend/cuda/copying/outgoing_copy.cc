#include "backend/cuda/copying/outgoing_copy.hh"

#include <algorithm>

#include "backend/cuda/session.hh"
#include "marshal/data_bodies.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t quick = 64u << 10;  // sending this much never waits for a client that reads

}  // namespace

outgoing_copy::outgoing_copy(call& c, CUstream stream, bool per_thread, std::uint64_t size, cut cut_at)
    : call_(c), stream_(stream), per_thread_(per_thread), size_(size), cut_(std::move(cut_at)) {}

std::size_t outgoing_copy::piece_at(std::uint64_t offset, std::size_t most) const {
  if (cut_) return cut_(offset);
  return std::min<std::uint64_t>(most, size_ - offset);
}

CUresult outgoing_copy::enqueue(std::uint64_t offset, std::size_t size, staging::block& block) const {
  staging& stage = call_.session.stage();
  const api::driver_table& driver = call_.driver();
  block = stage.take(size, call_.header.context);
  if (!block.data) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* record = per_thread_ ? driver.cuEventRecord_ptsz : driver.cuEventRecord;
  CUresult code = (*copy_)(offset, size, block.data);
  if (code == CUDA_SUCCESS && !block.done) code = driver.cuEventCreate(&block.done, CU_EVENT_DISABLE_TIMING);
  if (code == CUDA_SUCCESS) code = record(block.done, stream_);
  if (code != CUDA_SUCCESS) stage.give_back(block);
  return code;
}

/// All pieces, each sent when it is complete; the next one is under way meanwhile.
CUresult outgoing_copy::run_waiting() const {
  staging& stage = call_.session.stage();
  staging::block next;
  std::uint64_t enqueued = 0, sent = 0;
  CUresult code = CUDA_SUCCESS;
  std::deque<std::pair<staging::block, std::size_t>> under_way;
  while (code == CUDA_SUCCESS && sent < size_) {
    while (code == CUDA_SUCCESS && enqueued < size_ && under_way.size() < 2) {
      const std::size_t size = piece_at(enqueued);
      code = enqueue(enqueued, size, next);
      if (code == CUDA_SUCCESS) under_way.emplace_back(next, size), enqueued += size;
    }
    if (under_way.empty()) break;
    auto [block, size] = under_way.front();
    under_way.pop_front();
    const CUresult waited = call_.driver().cuEventSynchronize(block.done);
    if (waited == CUDA_SUCCESS) send_bytes(sent, {block.data, size});
    stage.give_back(block);
    sent += size;
    if (code == CUDA_SUCCESS) code = waited;
  }
  for (auto& [block, size] : under_way) {
    call_.driver().cuEventSynchronize(block.done);
    stage.give_back(block);
  }
  return code;
}

/// A small copy that is complete at once, as most are, needs no hand-off of the turn. False: too large,
/// run_waiting().
bool outgoing_copy::run_quickly(CUresult& code) const {
  if (size_ == 0 || size_ > quick) return false;
  staging::block block;
  code = enqueue(0, size_, block);
  if (code != CUDA_SUCCESS) return true;
  CUresult state = CUDA_ERROR_NOT_READY;
  state = call_.session.waits().for_event(call_, block.done);
  if (state == CUDA_ERROR_NOT_READY) call_.give_up_turn();
  // Also when it is complete: what kernels printed comes out of the driver when one waits, not when one asks.
  if (state == CUDA_ERROR_NOT_READY || (state == CUDA_SUCCESS && call_.session.unseen().possible())) {
    state = call_.driver().cuEventSynchronize(block.done);
  }
  if (state == CUDA_SUCCESS) send_bytes(0, {block.data, size_});
  call_.session.stage().give_back(block);
  code = state;
  return true;
}

CUresult outgoing_copy::run_posted() const {
  const bool aside = size_ >= copies_out::worth_aside && call_.core.data().has_later(call_.header.context);
  CUresult code = CUDA_SUCCESS;
  for (std::uint64_t at = 0; code == CUDA_SUCCESS && at < size_;) {
    const std::size_t size = piece_at(at, aside ? marshal::max_data_piece : piece);
    staging::block block;
    code = enqueue(at, size, block);
    if (code == CUDA_SUCCESS) call_.session.outgoing_copies().add(call_.header.ticket, at, size, block);
    at += size;
  }
  if (aside) call_.core.data().expect_later();
  return code;
}

outcome outgoing_copy::run(CUresult refused, const copy_piece& copy) {
  copy_ = &copy;
  const bool posted = call_.header.kind == wire::frame_kind::post;
  CUresult code = refused;
  if (code == CUDA_SUCCESS && posted) {
    code = run_posted();
  } else if (code == CUDA_SUCCESS && !run_quickly(code)) {
    call_.give_up_turn();
    code = run_waiting();
  }
  if (code != CUDA_SUCCESS && posted) send_bytes(wire::copy_failed, {});
  return outcome::answer(code);
}

void outgoing_copy::send_bytes(std::uint64_t offset, std::span<const std::byte> bytes) const {
  // Those that were before it in its stream go first: they may go to the same place.
  if (call_.header.kind == wire::frame_kind::call && !call_.session.outgoing_copies().empty())
    call_.session.outgoing_copies().flush();
  const wire::data_place place{call_.header.ticket, offset};
  if (bytes.size() <= goes_with_reply && call_.header.kind == wire::frame_kind::call) {
    call_.core.send_data_with_reply(call_.own, place, bytes);
  } else {
    call_.core.send_data(place, bytes);
  }
}

}  // namespace outboard::backend
