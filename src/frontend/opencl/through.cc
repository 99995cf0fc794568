// Transfers through the blocks that a context shares with its server: what is large is cut, and threads of
// the process help to copy it.
#include <atomic>
#include <cstring>
#include <functional>

#include "frontend/bulk_copy.hh"
#include "frontend/copy_crew.hh"
#include "frontend/copy_pieces.hh"
#include "frontend/opencl/passage.hh"
#include "frontend/opencl/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Smaller ones cost less inside their frames.
constexpr std::size_t least_read_through = 1u << 10, least_write_through = 16u << 10;
/// To wake the crew takes as long as to copy this much.
constexpr std::uint64_t worth_help = 4u << 20;
/// Half of the blocks: one whose bytes have not been taken out is never the next.
constexpr std::uint64_t under_way = staging_blocks::count / 2;

void scatter(const landing& land, const std::byte* bytes) {
  for (std::size_t at = 0; at < land.size;) {
    const std::span<std::byte> run = land.run_at(at, land.size - at);
    std::memcpy(run.data(), bytes + at, run.size());
    at += run.size();
  }
}

/// The pieces of one transfer, and the blocks that they pass. The program's thread talks to the server and
/// copies meanwhile; the crew copies.
class pieces : public shared_pieces {
 public:
  pieces(command& c, passage& way, const place_body& place, std::uint64_t size)
      : shared_pieces(size, way.block_size()),
        blocks_(static_cast<std::size_t>(count())),
        command_(c),
        way_(way),
        place_(place) {}

  /// A block for the next piece. False: there is none.
  bool take(std::uint64_t n) {
    const auto block = way_.take();
    if (block) blocks_[static_cast<std::size_t>(n)] = *block;
    return block.has_value();
  }
  std::byte* bytes(std::uint64_t n) const { return way_.at(block(n)); }
  cl_int await(std::uint64_t n) { return way_.await(block(n)); }
  std::size_t size(std::uint64_t n) const { return static_cast<std::size_t>(length(n)); }

  cl_int post_read(std::uint64_t n) { return read_into(body(n), part(n), way_.place(block(n)), false); }
  cl_int post_write(std::uint64_t n) { return write_from(body(n), part(n), way_.place(block(n)), length(n)); }

  /// Others run it meanwhile, where it is worth that.
  template <class Help, class Drive>
  cl_int drive(Help&& help, Drive&& own) {
    if (offset(count() - 1) < worth_help) return own();
    const std::function<void()> all = help;
    const copy_crew::shift shift(copy_crew::instance(), all);
    const cl_int code = own();
    stop();
    return code;
  }

 private:
  unsigned block(std::uint64_t n) const { return blocks_[static_cast<std::size_t>(n)]; }
  marshal::opencl::command_body body(std::uint64_t n) { return command_.body(n == 0, n + 1 == count()); }
  place_body part(std::uint64_t n) const { return part_of(place_, offset(n), way_.block_size()); }

  std::vector<unsigned> blocks_;  ///< by piece; written before others are told that the piece may begin
  command& command_;
  passage& way_;
  const place_body& place_;
};

cl_int read_pieces(command& c, passage& way, const place_body& from, const landing& land,
                   std::uint64_t& here) {
  pieces all(c, way, from, land.size);
  std::atomic<std::uint64_t> arrived{0};
  const auto is_there = [&](std::uint64_t n) { return n < arrived.load(std::memory_order_acquire); };
  const auto take_out = [&](std::uint64_t n) {
    copy_piece(land.to + all.offset(n), all.bytes(n), all.size(n), land.size);
  };
  std::uint64_t asked = 0, taken_out = 0;
  const auto count_taken_out = [&] {
    while (taken_out < all.count() && all.is_ready(taken_out)) ++taken_out;
  };
  const cl_int code =
      all.drive([&] { all.help(is_there, take_out); },
                [&]() -> cl_int {
                  bool full = false;
                  for (patience wait; taken_out < all.count() && !(full && taken_out == asked);) {
                    for (; !full && asked < all.count() && asked - taken_out < under_way; ++asked) {
                      full = !all.take(asked);
                      if (full) break;
                      if (const cl_int failed = all.post_read(asked); failed != CL_SUCCESS) return failed;
                    }
                    if (const std::uint64_t next = arrived.load(); next < asked) {
                      if (const cl_int failed = all.await(next); failed != CL_SUCCESS) return failed;
                      arrived.store(next + 1, std::memory_order_release);
                      wait.restart();
                    } else if (all.help_once(is_there, take_out)) {
                      wait.restart();
                    } else {
                      wait.pause();
                    }
                    count_taken_out();
                  }
                  return CL_SUCCESS;
                });
  here = std::min<std::uint64_t>(land.size, all.offset(taken_out));
  return code;
}

cl_int write_pieces(command& c, passage& way, const place_body& to, std::span<const std::byte> bytes,
                    std::uint64_t& here) {
  pieces all(c, way, to, bytes.size());
  std::atomic<std::uint64_t> begun{0};
  const auto has_block = [&](std::uint64_t n) { return n < begun.load(std::memory_order_acquire); };
  const auto fill = [&](std::uint64_t n) {
    std::memcpy(all.bytes(n), bytes.data() + all.offset(n), all.size(n));
  };
  std::uint64_t posted = 0;
  const cl_int code =
      all.drive([&] { all.help(has_block, fill); },
                [&]() -> cl_int {
                  bool full = false;
                  for (patience wait; posted < all.count() && !(full && posted == begun.load());) {
                    bool got_on = false;
                    for (; all.is_ready(posted); got_on = true) {
                      if (const cl_int failed = all.post_write(posted); failed != CL_SUCCESS) return failed;
                      if (++posted == all.count()) return CL_SUCCESS;
                    }
                    const std::uint64_t next = begun.load();
                    if (!full && next < all.count() && next - posted < under_way) {
                      full = !all.take(next);
                      if (!full) begun.store(next + 1, std::memory_order_release), got_on = true;
                    }
                    got_on |= all.help_once(has_block, fill);
                    got_on ? wait.restart() : wait.pause();
                  }
                  return CL_SUCCESS;
                });
  here = std::min<std::uint64_t>(bytes.size(), all.offset(posted));
  return code;
}

}  // namespace

cl_int read_through(command& c, const place_body& from, const landing& land, std::uint64_t& here) {
  if (land.size < least_read_through) return CL_SUCCESS;
  passage way(c, land.size);
  if (!way) return CL_SUCCESS;
  if (land.size > way.block_size())
    return can_be_parted(c, from) ? read_pieces(c, way, from, land, here) : CL_SUCCESS;
  const auto block = way.take();
  if (!block) return CL_SUCCESS;
  const cl_int code = read_into(c.body(), from, way.place(*block), true);
  way.free(*block);
  if (code == CL_SUCCESS) scatter(land, way.at(*block)), here = land.size;
  return code;
}

cl_int write_through(command& c, const place_body& to, std::span<const std::byte> bytes,
                     std::uint64_t& here) {
  if (bytes.size() < least_write_through) return CL_SUCCESS;
  passage way(c, bytes.size());
  if (!way) return CL_SUCCESS;
  if (bytes.size() > way.block_size())
    return can_be_parted(c, to) ? write_pieces(c, way, to, bytes, here) : CL_SUCCESS;
  const auto block = way.take();
  if (!block) return CL_SUCCESS;
  std::memcpy(way.at(*block), bytes.data(), bytes.size());
  here = bytes.size();
  return write_from(c.body(), to, way.place(*block), bytes.size());
}

}  // namespace outboard::frontend::opencl
