// Control flow of warps: groups of lanes that diverged, frames of device functions, barriers. One block
// belongs to one worker thread at a time; nothing here is locked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/lanes/machine.hh"
#include "ptx/run/code.hh"
#include "ptx/run/executor.hh"

namespace outboard::ptx {

class child_grids;

/// Registers of one activation of a function by some lanes of a warp. Groups of one frame may merge.
struct frame {
  const function_code* function = nullptr;
  frame* caller = nullptr;
  const call_site* site = nullptr;
  const inst* back = nullptr;
  lane_memory registers;
  std::uint32_t lanes = 0;  ///< that have not returned
  std::uint32_t local_base = 0;
  std::uint32_t depth = 0;
  std::uint32_t dynamic = 0;  ///< bytes of alloca behind the function's own
};

enum class wait : std::uint8_t { none, barrier, converge, warp_barrier };

/// Lanes at one pc of one frame. The running group lives in the warp; this is one of the others.
struct group {
  const inst* pc = nullptr;
  std::uint32_t mask = 0;
  frame* where = nullptr;
  wait waits = wait::none;
  std::uint32_t member = 0;  ///< converge: lanes awaited; barrier: its number
};

struct warp_state : warp {
  std::vector<group> groups;
  std::vector<std::unique_ptr<frame>> frames, spare;
  std::uint64_t frame_bytes = 0;    ///< registers of frames and spare
  std::uint32_t cluster_phase = 0;  ///< a bit a lane: when it came to barrier.cluster
  const inst* released = nullptr;   ///< a warp-wide instruction that goes on although lanes are missing
};

struct barrier_state {
  std::uint32_t arrived = 0, expected = 0;    ///< threads; expected 0 = all that have not exited
  std::uint32_t all = 1, any = 0, count = 0;  ///< bar.red over what arrived
};

/// What all blocks of one launch share.
struct launch_state {
  const function_code* kernel = nullptr;
  const code* module = nullptr;
  const address_space* memory = nullptr;
  device_heap* heap = nullptr;
  const texture_source* textures = nullptr;
  dimensions grid{}, block{};
  std::uint32_t threads = 0, warps = 0;
  std::uint32_t dynamic_base = 0, shared_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< per thread
  std::vector<char> parameters;
  void* grid_workspace = nullptr;  ///< cooperative launches: what envreg1/2 lead to
  const std::function<void(std::string_view)>* print = nullptr;
  const std::function<void(std::uint64_t, std::uint32_t)>* set_conditional = nullptr;
  child_grids* children = nullptr;
  std::uint64_t id = 0;
};

/// Ranges that were found valid lately; kept by a worker for one launch.
struct range_cache {
  struct entry {
    range where;
    bool writable = false;
  };
  std::array<entry, 8> entries{};
  std::uint32_t used = 0, next = 0;
};

struct block {
  launch_state* launch = nullptr;
  dimensions index{};
  std::uint64_t number = 0;  ///< linear index
  lane_memory shared, local;
  std::vector<warp_state> warps;
  std::array<barrier_state, 17> barriers{};  ///< the last is the cluster's
  bool cluster_phase = false;
  std::uint32_t exited = 0;  ///< threads
  std::uint32_t next_warp = 0, slices = 0;
  range_cache ranges;
  std::map<std::uint32_t, std::uint32_t> runtime_errors;  ///< cudaGetLastError of threads that launch grids
  launch_result failed;                                   ///< kind ok until something fails
};

/// Steps that need more than lanes: decode puts them into the code.
struct control_steps {
  step exit, ret, call, barrier, arrive, warp_barrier, trap, breakpoint, jump_indexed, nanosleep, special;
  step cluster_arrive, cluster_wait, allocate, stack_save, stack_restore, in_space;
};
const control_steps& control();

enum class special : std::uint32_t {
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clock,
  clock_hi,
  clock64,
  timer,
  timer_lo,
  timer_hi,
  envreg1,
  envreg2,
  dynamic_shared,
  total_shared,
  dynamic_base,
  zero,
  zero8,
  one,
};

/// Runs one warp until it ends, waits, fails or has used up its budget; false when it could not run at all.
bool warp_run(warp_state& w, std::int32_t budget);
/// The frame of the kernel itself, with registers; nullptr when memory ran out. Forgets what ran before.
frame* warp_base_frame(warp_state& w, const function_code* kernel);
void warp_begin(warp_state& w, std::uint32_t lanes);

enum class block_progress { finished, waiting, failed };

/// Prepares `b` for the block with the given linear number; reuses its memory. False when memory ran out.
bool block_start(block& b, launch_state& launch, std::uint64_t number);
/// Runs until the block ends, fails, or the deadline (steady clock, ns) has passed or `stop` is set.
block_progress block_run(block& b, std::int64_t deadline, const std::atomic<bool>& stop);
const inst* block_special(warp* w, const inst* i);
/// isspacep: r[0] = r[1] is an address of constant memory (aux 0) or of a kernel parameter (1).
const inst* block_in_space(warp* w, const inst* i);
std::int64_t steady_now();

}  // namespace outboard::ptx
