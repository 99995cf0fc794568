#include "frontend/cuda/copying/later_copy.hh"

#include <algorithm>

#include "frontend/copying/copy_pieces.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

/// The memory is page-locked for it: a program that copies less so does without.
constexpr std::uint64_t worth_an_area = 4 * worth_preparing;

bool may_drain(const lane& own, const staged_copy& copy) {
  if (!may_pass_shared()) return false;
  const auto block = process::instance().memory().addresses().find(copy.device);
  return block && block->context == own.owner()->handle;
}

/// A reset of the context takes away what the server shared.
bool is_good(lane& own, later_area& area) {
  if (!area.base()) return false;
  process& p = process::instance();
  if (is_shared_still(own, area.base())) return true;
  p.server()->drains().drop(own.context_handle());
  release_shared(own, area.base(), later_area::size);
  area.close();
  return false;
}

bool prepare(lane& own, later_copies& later, later_area& area, std::uint64_t size) {
  if (is_good(own, area)) return true;
  later.wanted += size;
  if (later.tried || later.wanted < worth_an_area) return false;
  later.tried = true;
  std::uint64_t at = 0;
  unique_fd file;
  if (allocate_shared(own, later_area::size, at, &file) != CUDA_SUCCESS) return false;
  area.open(at, std::move(file));
  return true;
}

drains::stream_key key_of(const lane& own, const staged_copy& copy) {
  const std::uint64_t stream = value_of(copy.stream);
  const bool per_thread = marshal::per_thread(copy.how) ? stream == 0 : copy.stream == CU_STREAM_PER_THREAD;
  if (per_thread) return {own.context_handle(), value_of(CU_STREAM_PER_THREAD), own.id};
  return {own.context_handle(), stream ? stream : value_of(CU_STREAM_LEGACY), 0};
}

CUresult wait_for_word(const staged_copy& copy, std::uint64_t word, std::uint32_t value) {
  return marshal::per_thread(copy.how)
             ? remote<api::opcode::cuStreamWaitValue32_v2_ptsz>(copy.stream, word, value,
                                                                CU_STREAM_WAIT_VALUE_EQ)
             : remote<api::opcode::cuStreamWaitValue32_v2>(copy.stream, word, value, CU_STREAM_WAIT_VALUE_EQ);
}

CUresult post_piece(lane& own, const staged_copy& copy, std::uint64_t base, const later_area::turn& turn,
                    std::uint64_t from, std::uint64_t size) {
  if (turn.wait) {
    const CUresult code = wait_for_word(copy, base + turn.freed, turn.value - 1);
    if (code != CUDA_SUCCESS) return code;
  }
  const auto how =
      marshal::per_thread(copy.how) ? marshal::flavour::stream_per_thread : marshal::flavour::stream;
  request_of<api::opcode::cuMemcpyAsync> r(
      own, marshal::copy_across_body{base + turn.offset, from, size, value_of(copy.stream), how,
                                     base + turn.done, turn.value});
  r.copies_to(base + turn.offset, copy.stream, how);
  return r.post();
}

std::uint32_t* word_at(std::uint64_t address) { return reinterpret_cast<std::uint32_t*>(address); }

}  // namespace

drained drain_later(lane& own, const staged_copy& copy) {
  drained result;
  if (copy.size < least_drained || !may_drain(own, copy)) return result;
  later_copies& later = own.owner()->later;
  const std::lock_guard lock(later.use);
  later_area& area = own.owner()->later_blocks;
  if (!prepare(own, later, area, copy.size)) return result;
  drains& to = process::instance().server()->drains();
  const drains::stream_key key = key_of(own, copy);
  const std::uint64_t piece = piece_of(copy.size, later_area::block_size), base = area.base();
  while (result.done < copy.size) {
    const auto turn = area.next(key);
    if (!turn) break;
    const std::uint64_t size = std::min(piece, copy.size - result.done);
    const bool added = to.add(key, {word_at(base + turn->done),
                                    word_at(base + turn->freed),
                                    turn->value,
                                    area.file(),
                                    turn->offset,
                                    {copy.host + result.done, size}});
    if (added) result.code = post_piece(own, copy, base, *turn, copy.device + result.done, size);
    if (!added || result.code != CUDA_SUCCESS) {
      if (added) to.take_back(key);
      area.take_back(*turn);
      return result;
    }
    result.done += size;
  }
  process::instance().server()->send_posts();
  return result;
}

}  // namespace outboard::frontend::cuda
