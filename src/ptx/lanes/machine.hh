// The machine that decoded instructions run on: plain structs shared by the lane loops (compiled once per
// instruction set level) and the scheduler (compiled once). No function here may have external linkage and a
// body: the linker would merge copies of different levels. One warp belongs to one worker thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outboard::ptx {

struct warp;
struct inst;
struct frame;
struct block;

inline constexpr std::uint32_t all_lanes = 0xffffffff;
inline constexpr int warp_lanes = 32;

/// Executes one instruction for the active lanes and returns the next, or leave() after storing an event.
using step = const inst* (*)(warp*, const inst*);

/// A register reference is an offset into the frame's register file (even) or into the function's constants
/// (odd).
struct inst {
  step run = nullptr;
  std::uint32_t r[6] = {};  ///< memory instructions: 0..3 data, 4 address
  std::int32_t jump = 0;    ///< branches: distance in instructions
  std::uint32_t aux = 0;
  std::int64_t imm = 0;  ///< address offset, or a pointer to what a control instruction needs
};

struct range {
  std::uint64_t begin = 0, size = 0;
};

enum class event : std::uint8_t {
  none,
  reschedule,  ///< the running group ended, parked or left its frame
  yield,       ///< budget used up or nanosleep
  fault,       ///< recorded in the block
};

struct warp {
  char* base[2] = {};          ///< register file; constants - 1
  const inst* stop = nullptr;  ///< lowest pc of another ready group of this frame: leave when reaching it
  std::uint32_t mask = 0;      ///< active lanes
  std::int32_t budget = 0;     ///< instructions left before the warp yields, counted at backward branches
  alignas(64) std::uint32_t lane[warp_lanes] = {};  ///< mask as 0 / ~0, only kept when mask is partial
  range read[4], write[4];  ///< ranges already found valid; an instruction uses one of them
  char* shared = nullptr;
  char* local = nullptr;  ///< lane l's local memory, with its frames, begins at local + l * local_stride
  const char* parameters = nullptr;
  std::uint64_t local_stride = 0;
  std::uint32_t shared_size = 0, parameter_size = 0;
  std::uint32_t local_base = 0;  ///< offset of the running frame in each lane's local memory
  std::uint32_t exited = 0;      ///< lanes that have ended or never existed
  event happened = event::none;
  const inst* resume = nullptr;
  frame* current = nullptr;
  block* owner = nullptr;
  std::uint32_t index = 0;  ///< of the warp in its block
  alignas(64) std::uint32_t tid[3][warp_lanes] = {};
};

/// Above every instruction, so that the run loop ends.
static inline const inst* leave() { return reinterpret_cast<const inst*>(~std::uintptr_t{63}); }

enum class fault : std::uint8_t { address, misaligned, trap, assertion, instruction, stack, deadlock, heap };

// Cold paths, in warp.cc and memory.cc (one copy, baseline instruction set).

/// Divides the running group; returns where the part with the lower pc continues.
const inst* warp_split(warp*, const inst* taken, std::uint32_t taken_mask, const inst* fall);
/// Called at a backward branch when the budget is used up.
const inst* warp_yield(warp*, const inst* next);
const inst* warp_fault(warp*, const inst*, fault, int lane, std::uint64_t address);
/// Returns nullptr when all lanes of `member` are here (and active), else what the step must return.
const inst* warp_converge(warp*, const inst*, std::uint32_t member);
/// Finds the valid range that holds [address, address + size); false, `out` untouched, when there is none.
bool warp_resolve(warp*, std::uint64_t address, std::uint32_t size, bool write, range& out);

}  // namespace outboard::ptx
