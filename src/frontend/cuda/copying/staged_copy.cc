#include "frontend/cuda/copying/staged_copy.hh"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "frontend/copying/bulk_copy.hh"
#include "frontend/copying/copy_crew.hh"
#include "frontend/copying/copy_pieces.hh"
#include "frontend/copying/staging_area.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

/// The area of the current context, locked, if there is one and copies may go through it.
class use_of_area {
 public:
  use_of_area(lane& own, std::uint64_t size) : own_(own) {
    if (!may_pass_shared() || process::instance().server()->callbacks_expected()) return;
    staging_area& area = own.owner()->staging;
    if (!area.use.try_lock()) return;
    area_ = &area;
    if (is_good() || make(size)) return;
    area.use.unlock();
    area_ = nullptr;
  }
  ~use_of_area() {
    if (area_) area_->use.unlock();
  }
  use_of_area(const use_of_area&) = delete;

  explicit operator bool() const { return area_ != nullptr; }
  staging_area* operator->() { return area_; }

  /// What is under way may write to it still: the server lets go of it when that has ended.
  void abandon() {
    release_shared(own_, area_->base, staging_area::size);
    area_->base = 0;
  }

 private:
  /// A reset of the context takes away what the server shared.
  bool is_good() {
    if (!area_->base) return false;
    const bool good = is_shared_still(own_, area_->base);
    if (!good) abandon();
    return good;
  }
  bool make(std::uint64_t size) {
    area_->wanted += size;
    if (area_->wanted < worth_preparing) return false;
    area_->wanted = 0;
    std::uint64_t at = 0;
    if (allocate_shared(own_, staging_area::size, at) != CUDA_SUCCESS) return false;
    area_->open(at);
    return true;
  }

  lane& own_;
  staging_area* area_ = nullptr;
};

/// One copy: what its threads share.
class work : public even_pieces {
 public:
  work(lane& own, use_of_area& area, const staged_copy& copy)
      : even_pieces(copy.size, piece_of(copy.size, staging_area::block_size)),
        own_(own),
        area_(area),
        copy_(copy) {}

  std::byte* block(std::uint64_t n) { return reinterpret_cast<std::byte*>(area_->place(n)); }

  CUresult post(std::uint64_t n, bool to_device) {
    const std::uint64_t there = copy_.device + offset(n), here = area_->place(n);
    const auto how =
        marshal::per_thread(copy_.how) ? marshal::flavour::stream_per_thread : marshal::flavour::stream;
    request_of<api::opcode::cuMemcpyAsync> r(
        own_, marshal::copy_across_body{to_device ? there : here, to_device ? here : there, length(n),
                                        value_of(copy_.stream), how, area_->word(n), area_->value(n)});
    r.copies_to(to_device ? there : here, copy_.stream, how);
    return r.post();
  }

  /// CUDA_SUCCESS: what is waited for may still come.
  CUresult ask_stream() {
    const CUresult code = marshal::per_thread(copy_.how)
                              ? remote<api::opcode::cuStreamQuery_ptsz>(copy_.stream)
                              : remote<api::opcode::cuStreamQuery>(copy_.stream);
    return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
  }

 private:
  lane& own_;
  use_of_area& area_;
  const staged_copy& copy_;
};

/// A device that is at work on other blocks frees one in less time than this; then its stream is busy.
constexpr auto soon = std::chrono::microseconds(500);

/// Runs `step` until it says that all is done; it returns whether it got on. Errors end the copy, with the
/// helpers, and so does a stream that is busy where `waits` is false.
template <class Step>
CUresult drive(work& shared, bool waits, Step&& step) {
  using clock = std::chrono::steady_clock;
  CUresult code = CUDA_SUCCESS;
  auto moved = waits ? clock::time_point{} : clock::now();
  for (patience wait; code == CUDA_SUCCESS;) {
    bool got_on = false;
    if (step(got_on, code)) return code;
    if (got_on) {
      wait.restart();
      if (!waits) moved = clock::now();
      continue;
    }
    if (!waits && clock::now() - moved > soon) break;
    wait.pause();
    if (code == CUDA_SUCCESS && wait.doubtful()) code = shared.ask_stream();
  }
  shared.stop();
  return code;
}

CUresult ended(use_of_area& area, std::uint64_t count, CUresult code) {
  if (code == CUDA_SUCCESS) {
    area->end_copy(count);
  } else {
    area.abandon();
  }
  return code;
}

}  // namespace

CUresult copy_beginning(lane& own, staged_copy& copy) {
  request_of<api::opcode::cuMemcpyDtoH_v2> first(
      own, marshal::copy_out_body{copy.device, copy_head, value_of(copy.stream), copy.how});
  const landing land{copy.host, copy_head};
  const CUresult code = first.call({}, &land);
  copy.device += copy_head, copy.host += copy_head, copy.size -= copy_head;
  return code;
}

std::optional<CUresult> stage_in(lane& own, const staged_copy& copy, std::uint64_t* done) {
  use_of_area area(own, copy.size);
  if (!area) return std::nullopt;
  work shared(own, area, copy);
  const auto free = [&](std::uint64_t n) { return area->is_free(n); };
  const auto fill = [&](std::uint64_t n) {
    std::memcpy(shared.block(n), copy.host + shared.offset(n), shared.length(n));
  };
  const std::function<void()> help = [&] { shared.help(free, fill); };
  std::uint64_t posted = 0;
  CUresult code = CUDA_SUCCESS;
  const auto post_ready = [&](CUresult& failed) {
    const std::uint64_t before = posted;
    for (; posted < shared.count() && shared.is_ready(posted); ++posted) {
      if ((failed = shared.post(posted, true)) != CUDA_SUCCESS) break;
    }
    return posted != before;
  };
  {
    const copy_crew::shift shift(copy_crew::instance(), help);
    code = drive(shared, done == nullptr, [&](bool& got_on, CUresult& failed) {
      got_on = post_ready(failed);
      if (failed != CUDA_SUCCESS) return false;
      if (posted == shared.count()) return true;
      got_on |= shared.help_once(free, fill);
      return false;
    });
  }
  if (code == CUDA_SUCCESS) (void)post_ready(code);  // what the helpers had in hand
  if (done) *done = std::min(copy.size, shared.offset(posted));
  return ended(area, posted, code);
}

std::optional<CUresult> stage_out(lane& own, const staged_copy& whole) {
  use_of_area area(own, whole.size);
  if (!area) return std::nullopt;
  staged_copy copy = whole;
  if (const CUresult code = copy_beginning(own, copy); code != CUDA_SUCCESS) return code;
  work shared(own, area, copy);
  std::atomic<std::uint64_t> posted{0};
  const auto arrived = [&](std::uint64_t n) {
    return n < posted.load(std::memory_order_acquire) && area->is_done(n);
  };
  const auto empty = [&](std::uint64_t n) {
    copy_piece(copy.host + shared.offset(n), shared.block(n), shared.length(n), copy.size);
  };
  const std::function<void()> help = [&] { shared.help(arrived, empty); };
  std::uint64_t emptied = 0;
  CUresult code = CUDA_SUCCESS;
  {
    const copy_crew::shift shift(copy_crew::instance(), help);
    code = drive(shared, true, [&](bool& got_on, CUresult& failed) {
      for (std::uint64_t n = posted; n < shared.count() && area->is_free(n); ++n) {
        if (n >= staging_area::blocks && !shared.is_ready(n - staging_area::blocks))
          break;  // still being copied out
        if ((failed = shared.post(n, false)) != CUDA_SUCCESS) return false;
        posted.store(n + 1, std::memory_order_release);
        got_on = true;
      }
      while (emptied < shared.count() && shared.is_ready(emptied)) ++emptied, got_on = true;
      if (emptied == shared.count()) return true;
      got_on |= shared.help_once(arrived, empty);
      return false;
    });
  }
  return ended(area, shared.count(), code);
}

}  // namespace outboard::frontend::cuda
