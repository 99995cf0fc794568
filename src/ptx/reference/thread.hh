// One GPU thread of the reference machine: its calls, its registers, the memory of its frames. Used by one
// host thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/reference/arithmetic.hh"
#include "ptx/reference/machine.hh"

namespace outboard::ptx::reference {

/// A function with its instructions looked up and its variables placed.
struct prepared {
  const function* source = nullptr;
  std::vector<operation> operations;
  std::vector<std::uint64_t> offsets;  ///< of its variables, in a frame
  std::uint64_t frame_bytes = 0;
};

/// The state that all GPU threads share.
struct machine {
  const launch* of = nullptr;
  std::map<const function*, prepared> functions;
  std::map<const variable*, std::uint64_t> shared_offsets;
  std::uint64_t shared_bytes = 0;
  std::map<std::string_view, std::uint64_t> parameter_offsets;

  const prepared& function_of(const function* f) { return functions.at(f); }
};

struct frame {
  const prepared* code = nullptr;
  std::vector<std::uint64_t> registers;
  std::unique_ptr<std::uint64_t[]> memory;
  std::size_t next = 0;
  const instruction* call = nullptr;  ///< in the caller, when this frame is a callee's
};

enum class wait : std::uint8_t { none, block_barrier, warp, ended };

class thread {
 public:
  thread(machine& m, const prepared& kernel, dimensions id, dimensions block, char* shared);

  /// Runs to the next wait.
  status run();

  wait waiting = wait::none;
  std::uint32_t lane = 0, index = 0;

  // For the scheduler: the instruction that waits, and how to complete it.
  const instruction& at() const { return top().code->source->body[top().next]; }
  const operation& asks() const { return top().code->operations[top().next]; }
  std::uint64_t value(const operand& o, type t);
  void set(const operand& o, type t, std::uint64_t v, bool signed_extension = false);
  void go_on() { ++top().next, waiting = wait::none; }

 private:
  frame& top() { return frames_.back(); }
  const frame& top() const { return frames_.back(); }
  status step();
  status memory_step(const instruction& i, const operation& o);
  status call_step(const instruction& i);
  void return_step();
  void compute_step(const instruction& i, const operation& o);
  void move_step(const instruction& i, const operation& o);
  char* address(const operand& o, space where);
  std::uint64_t special(std::string_view name) const;
  char* local(std::int32_t variable) {
    return reinterpret_cast<char*>(top().memory.get()) +
           top().code->offsets[static_cast<std::size_t>(variable)];
  }
  void push(const prepared& code, const instruction* call);

  machine& machine_;
  std::deque<frame> frames_;
  dimensions id_, block_;
  char* shared_;
  bool carry_ = false;
};

}  // namespace outboard::ptx::reference
