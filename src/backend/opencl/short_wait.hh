// Looks for a while, with the turn, whether commands are complete: most waits of real programs end within it,
// and to hand the turn over and back costs more. With the session's turn.
#pragma once

#include <optional>
#include <span>

#include "backend/opencl/session.hh"

namespace outboard::backend::opencl {

/// How far its command has come; nothing: the platform does not say. Any thread.
std::optional<cl_int> status_of(const api::opencl::function_table& table, cl_event event);
/// Has it ended, well or not? Also where the platform does not say: nobody waits for what will never be told.
bool is_over(const api::opencl::function_table& table, cl_event event);

/// True: they are complete, or have failed, and to wait for them takes no time. Gives their queues' commands
/// to the device.
bool complete_soon(call& c, std::span<const cl_event> events);
/// Looks on for 500 µs at most, without the turn.
void complete_in_a_moment(const api::opencl::function_table& table, cl_event event);
/// As complete_soon(), of all commands of the queue.
bool finished_soon(call& c, cl_command_queue queue);

}  // namespace outboard::backend::opencl
