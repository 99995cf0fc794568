// Transfers through the blocks that a context shares with its server: what is large is cut, and threads of
// the process help to copy it.
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
/// To wake the crew takes as long as to copy this much.
constexpr std::uint64_t worth_help = 4u << 20;
/// Half of the blocks: one whose bytes have not been taken out is never the next.
constexpr std::uint64_t under_way = staging_blocks::count / 2;

/// Between a block and the program's rows, of whose bytes these begin at `first`.
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
/// copies meanwhile; the crew copies.
class pieces : public shared_pieces {
 public:
  pieces(command& c, passage& way, const parts& all)
      : shared_pieces(all.count()),
        blocks_(static_cast<std::size_t>(count())),
        command_(c),
        way_(way),
        parts_(all) {}

  /// A block for the next piece. False: there is none.
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

  /// Others run it meanwhile, where it is worth that.
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

  std::vector<unsigned> blocks_;  ///< by piece; written before others are told that the piece may begin
  command& command_;
  passage& way_;
  const parts& parts_;
};

cl_int read_pieces(command& c, passage& way, const parts& from, const landing& land, std::uint64_t& next) {
  pieces all(c, way, from);
  std::atomic<std::uint64_t> arrived{0};
  const auto is_there = [&](std::uint64_t n) { return n < arrived.load(std::memory_order_acquire); };
  const auto move = [&](std::uint64_t n) { take_out(land, from.offset(n), from.length(n), all.bytes(n)); };
  std::uint64_t asked = 0, taken_out = 0;
  const auto count_taken_out = [&] {
    while (taken_out < all.count() && all.is_ready(taken_out)) ++taken_out;
  };
  const cl_int code =
      all.drive([&] { all.help(is_there, move); },
                [&]() -> cl_int {
                  bool full = false;
                  for (patience wait; taken_out < all.count() && !(full && taken_out == asked);) {
                    for (; !full && asked < all.count() && asked - taken_out < under_way; ++asked) {
                      full = !all.take(asked);
                      if (full) break;
                      if (const cl_int failed = all.post_read(asked); failed != CL_SUCCESS) return failed;
                    }
                    if (const std::uint64_t n = arrived.load(); n < asked) {
                      if (!all.is_well_over(n))
                        if (const cl_int failed = all.await(n); failed != CL_SUCCESS) return failed;
                      std::uint64_t more = n + 1;
                      while (more < asked && all.is_well_over(more)) ++more;
                      arrived.store(more, std::memory_order_release);
                      wait.restart();
                    } else if (all.help_once(is_there, move)) {
                      wait.restart();
                    } else {
                      wait.pause();
                    }
                    count_taken_out();
                  }
                  return CL_SUCCESS;
                });
  next = taken_out;
  return code;
}

cl_int write_pieces(command& c, passage& way, const parts& to, const landing& from, std::uint64_t& next) {
  pieces all(c, way, to);
  std::atomic<std::uint64_t> begun{0};
  const auto has_block = [&](std::uint64_t n) { return n < begun.load(std::memory_order_acquire); };
  const auto move = [&](std::uint64_t n) { fill(all.bytes(n), from, to.offset(n), to.length(n)); };
  std::uint64_t posted = 0;
  const cl_int code =
      all.drive([&] { all.help(has_block, move); },
                [&]() -> cl_int {
                  bool full = false;
                  for (patience wait; posted < all.count() && !(full && posted == begun.load());) {
                    bool got_on = false;
                    for (; all.is_ready(posted); got_on = true) {
                      if (const cl_int failed = all.post_write(posted); failed != CL_SUCCESS) return failed;
                      if (++posted == all.count()) return CL_SUCCESS;
                    }
                    const std::uint64_t n = begun.load();
                    if (!full && n < all.count() && n - posted < under_way) {
                      full = !all.take(n);
                      if (!full) begun.store(n + 1, std::memory_order_release), got_on = true;
                    }
                    got_on |= all.help_once(has_block, move);
                    got_on ? wait.restart() : wait.pause();
                  }
                  return CL_SUCCESS;
                });
  next = posted;
  return code;
}

}  // namespace

cl_int read_through(command& c, const parts& from, const landing& land, std::uint64_t& next) {
  if (land.size < least_read_through) return CL_SUCCESS;
  passage way(c, land.size);
  if (!way) return CL_SUCCESS;
  if (from.count() > 1) return read_pieces(c, way, from, land, next);
  const auto block = land.size <= way.block_size() ? way.take() : std::nullopt;
  if (!block) return CL_SUCCESS;
  const cl_int code = read_into(c.body(), from.place(0), way.place(*block), true);
  way.free(*block);
  if (code == CL_SUCCESS) take_out(land, 0, land.size, way.at(*block)), next = 1;
  return code;
}

cl_int write_through(command& c, const parts& to, const landing& from, std::uint64_t& next) {
  if (from.size < least_write_through) return CL_SUCCESS;
  passage way(c, from.size);
  if (!way) return CL_SUCCESS;
  if (to.count() > 1) return write_pieces(c, way, to, from, next);
  const auto block = from.size <= way.block_size() ? way.take() : std::nullopt;
  if (!block) return CL_SUCCESS;
  fill(way.at(*block), from, 0, from.size);
  next = 1;
  return write_from(c.body(), to.place(0), way.place(*block), from.size);
}

}  // namespace outboard::frontend::opencl
