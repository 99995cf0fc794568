// Polls for a short time whether commands are complete, and keeps the turn meanwhile: most waits of real
// programs end within this time, and handing the turn over and back costs more. Called with the session's
// turn.
#pragma once

#include <optional>
#include <span>

#include "backend/opencl/session.hh"

namespace outboard::backend::opencl {

/// Returns the state of the event's command; nothing if the platform does not report it. Any thread.
std::optional<cl_int> status_of(const api::opencl::function_table& table, cl_event event);
/// Returns whether the command has ended, successfully or not. True also if the platform does not report it,
/// so that nobody waits for an answer that never comes.
bool is_over(const api::opencl::function_table& table, cl_event event);

/// True: all are complete or have failed, so waiting for them takes no time. Gives the commands of their
/// queues to the device.
bool complete_soon(call& c, std::span<const cl_event> events);
/// Polls for at most another 500 µs, without the turn.
void complete_in_a_moment(const api::opencl::function_table& table, cl_event event);
/// Like complete_soon(), for all commands of the queue.
bool finished_soon(call& c, cl_command_queue queue);

}  // namespace outboard::backend::opencl
