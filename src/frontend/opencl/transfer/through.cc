// Transfers through the blocks that a context shares with its server: large ones are cut, and threads of the
// process help to copy them.
#include <atomic>
#include <cstring>
#include <functional>

#include "frontend/copying/bulk_copy.hh"
#include "frontend/copying/copy_crew.hh"
#include "frontend/copying/copy_pieces.hh"
#include "frontend/opencl/transfer/passage.hh"
#include "frontend/opencl/transfer/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Smaller ones cost less inside their frames.
constexpr std::size_t least_read_through = 1u << 10, least_write_through = 16u << 10;
/// Waking the crew takes as long as copying this much.
constexpr std::uint64_t worth_help = 4u << 20;
/// Half of the blocks, so that the next block never holds bytes that have not been taken out.
constexpr std::uint64_t under_way = staging_blocks::count / 2;

/// Copies between a block and the program's rows; the block's bytes begin at `first` of these.
template <class Copy>
void for_runs(const landing& rows, std::uint64_t first, std::uint64_t size, std::byte* block, Copy&& copy) {
  for (std::uint64_t at = 0; at < size;) {
    const std::span<std::byte> run =
        rows.run_at(static_cast<std::size_t>(first + at), static_cast<std::size_t>(size - at));
    copy(run, block + at);
    at += run.size();
  }
}

void take_out(const landing& to, std::uint64_t first, std::uint64_t size, std::byte* block) {
  for_runs(to, first, size, block, [&](std::span<std::byte> run, const std::byte* bytes) {
    copy_piece(run.data(), bytes, run.size(), to.size);
  });
}

void fill(std::byte* block, const landing& from, std::uint64_t first, std::uint64_t size) {
  for_runs(from, first, size, block, [](std::span<const std::byte> run, std::byte* bytes) {
    std::memcpy(bytes, run.data(), run.size());
  });
}

/// The pieces of one transfer, and the blocks that they pass. The program's thread talks to the server and
/// copies in between; the crew copies.
class pieces : public shared_pieces {
 public:
  pieces(command& c, passage& way, const transfer_parts& all)
      : shared_pieces(all.count()),
        blocks_(static_cast<std::size_t>(count())),
        command_(c),
        way_(way),
        parts_(all) {}

  /// Takes a block for the next piece. Returns false if there is none.
  bool take(std::uint64_t n) {
    const auto block = way_.take();
    if (block) blocks_[static_cast<std::size_t>(n)] = *block;
    return block.has_value();
  }
  std::byte* bytes(std::uint64_t n) const { return way_.at(block(n)); }
  cl_int await(std::uint64_t n) { return way_.await(block(n)); }
  bool is_well_over(std::uint64_t n) const { return way_.is_well_over(block(n)); }

  cl_int post_read(std::uint64_t n) {
    return read_into(body(n), parts_.place(n), way_.place(block(n)), false);
  }
  cl_int post_write(std::uint64_t n) {
    return write_from(body(n), parts_.place(n), way_.place(block(n)), parts_.length(n));
  }

  /// Runs `own`; other threads run `help` meanwhile, if that is worthwhile.
  template <class Help, class Drive>
  cl_int drive(Help&& help, Drive&& own) {
    if (parts_.offset(count() - 1) < worth_help) return own();
    const std::function<void()> all = help;
    const copy_crew::shift shift(copy_crew::instance(), all);
    const cl_int code = own();
    stop();
    return code;
  }

 private:
  unsigned block(std::uint64_t n) const { return blocks_[static_cast<std::size_t>(n)]; }
  marshal::opencl::command_body body(std::uint64_t n) { return command_.body(n == 0, n + 1 == count()); }

  std::vector<unsigned> blocks_;  ///< by piece; written before other threads see that the piece may begin
  command& command_;
  passage& way_;
  const transfer_parts& parts_;
};

/// Pieces on their way to the host: requested into blocks, arrived, taken out of them. The program's thread
/// leads; the crew also takes them out.
class reading {
 public:
  reading(command& c, passage& way, const transfer_parts& from, const landing& land)
      : pieces_(c, way, from), from_(from), land_(land) {}

  /// Reads as many pieces as there are blocks for; `next` is the first piece that is still to be read.
  cl_int run(std::uint64_t& next) {
    const cl_int code = pieces_.drive([this] { help(); }, [this] { return lead(); });
    next = taken_out_;
    return code;
  }

 private:
  auto is_there() {
    return [this](std::uint64_t n) { return n < arrived_.load(std::memory_order_acquire); };
  }
  auto move() {
    return [this](std::uint64_t n) { take_out(land_, from_.offset(n), from_.length(n), pieces_.bytes(n)); };
  }
  void help() { pieces_.help(is_there(), move()); }

  cl_int lead() {
    for (patience wait; !done();) {
      if (const cl_int failed = ask(); failed != CL_SUCCESS) return failed;
      bool got_on = arrived_.load() < asked_;
      if (got_on) {
        if (const cl_int failed = await_some(); failed != CL_SUCCESS) return failed;
      } else {
        got_on = pieces_.help_once(is_there(), move());
      }
      got_on ? wait.restart() : wait.pause();
      while (taken_out_ < pieces_.count() && pieces_.is_ready(taken_out_)) ++taken_out_;
    }
    return CL_SUCCESS;
  }
  bool done() const { return taken_out_ == pieces_.count() || (full_ && taken_out_ == asked_); }

  /// Requests pieces as far ahead as there are blocks.
  cl_int ask() {
    for (; asked_ < pieces_.count() && asked_ - taken_out_ < under_way; ++asked_) {
      full_ = full_ || !pieces_.take(asked_);
      if (full_) break;
      if (const cl_int failed = pieces_.post_read(asked_); failed != CL_SUCCESS) return failed;
    }
    return CL_SUCCESS;
  }

  /// Waits for at most one piece, and notes those that have arrived with it.
  cl_int await_some() {
    const std::uint64_t n = arrived_.load();
    if (!pieces_.is_well_over(n))
      if (const cl_int failed = pieces_.await(n); failed != CL_SUCCESS) return failed;
    std::uint64_t more = n + 1;
    while (more < asked_ && pieces_.is_well_over(more)) ++more;
    arrived_.store(more, std::memory_order_release);
    return CL_SUCCESS;
  }

  pieces pieces_;
  const transfer_parts& from_;
  const landing& land_;
  std::atomic<std::uint64_t> arrived_{0};  ///< written by the program's thread, read by the crew
  std::uint64_t asked_ = 0, taken_out_ = 0;
  bool full_ = false;  ///< no more blocks: the requested pieces are read to the end
};

/// Pieces on their way to the device: given a block, filled, posted in order. The program's thread leads; the
/// crew also fills.
class writing {
 public:
  writing(command& c, passage& way, const transfer_parts& to, const landing& from)
      : pieces_(c, way, to), to_(to), from_(from) {}

  /// Writes as many pieces as there are blocks for; `next` is the first piece that is still to be written.
  cl_int run(std::uint64_t& next) {
    const cl_int code = pieces_.drive([this] { help(); }, [this] { return lead(); });
    next = posted_;
    return code;
  }

 private:
  auto has_block() {
    return [this](std::uint64_t n) { return n < begun_.load(std::memory_order_acquire); };
  }
  auto move() {
    return [this](std::uint64_t n) { fill(pieces_.bytes(n), from_, to_.offset(n), to_.length(n)); };
  }
  void help() { pieces_.help(has_block(), move()); }

  cl_int lead() {
    for (patience wait; !done();) {
      bool got_on = false;
      if (const cl_int failed = post_filled(got_on); failed != CL_SUCCESS) return failed;
      if (posted_ == pieces_.count()) break;
      got_on |= begin_another();
      got_on |= pieces_.help_once(has_block(), move());
      got_on ? wait.restart() : wait.pause();
    }
    return CL_SUCCESS;
  }
  bool done() const { return posted_ == pieces_.count() || (full_ && posted_ == begun_.load()); }

  cl_int post_filled(bool& got_on) {
    for (; posted_ < pieces_.count() && pieces_.is_ready(posted_); ++posted_, got_on = true)
      if (const cl_int failed = pieces_.post_write(posted_); failed != CL_SUCCESS) return failed;
    return CL_SUCCESS;
  }

  /// Finds a block for the next piece. Returns false if there is none, or enough are under way.
  bool begin_another() {
    const std::uint64_t n = begun_.load();
    if (full_ || n == pieces_.count() || n - posted_ >= under_way) return false;
    full_ = !pieces_.take(n);
    if (!full_) begun_.store(n + 1, std::memory_order_release);
    return !full_;
  }

  pieces pieces_;
  const transfer_parts& to_;
  const landing& from_;
  std::atomic<std::uint64_t> begun_{0};  ///< written by the program's thread, read by the crew
  std::uint64_t posted_ = 0;
  bool full_ = false;  ///< no more blocks: pieces that have one are written to the end
};

}  // namespace

cl_int read_through(command& c, const transfer_parts& from, const landing& land, std::uint64_t& next) {
  if (land.size < least_read_through) return CL_SUCCESS;
  passage way(c, land.size);
  if (!way) return CL_SUCCESS;
  if (from.count() > 1) return reading(c, way, from, land).run(next);
  const auto block = land.size <= way.block_size() ? way.take() : std::nullopt;
  if (!block) return CL_SUCCESS;
  const cl_int code = read_into(c.body(), from.place(0), way.place(*block), true);
  way.free(*block);
  if (code == CL_SUCCESS) take_out(land, 0, land.size, way.at(*block)), next = 1;
  return code;
}

cl_int write_through(command& c, const transfer_parts& to, const landing& from, std::uint64_t& next) {
  if (from.size < least_write_through) return CL_SUCCESS;
  passage way(c, from.size);
  if (!way) return CL_SUCCESS;
  if (to.count() > 1) return writing(c, way, to, from).run(next);
  const auto block = from.size <= way.block_size() ? way.take() : std::nullopt;
  if (!block) return CL_SUCCESS;
  fill(way.at(*block), from, 0, from.size);
  next = 1;
  return write_from(c.body(), to.place(0), way.place(*block), from.size);
}

}  // namespace outboard::frontend::opencl
