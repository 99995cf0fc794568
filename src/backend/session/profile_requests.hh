// Carries out what a program that is profiled asks: what the device did for it, its own worker's work and
// nobody else's. Whatever the session speaks. With the turn, which they give up.
#pragma once

#include <cstdint>

#include "backend/session/request_at_hand.hh"
#include "device/work_recorder.hh"

namespace outboard::backend {

/// `recorder` may be null: the device tells nothing of its work.
outcome start_profile(request_at_hand& request, device::work_recorder* recorder);
outcome stop_profile(request_at_hand& request, device::work_recorder* recorder);
outcome take_profile(request_at_hand& request, device::work_recorder* recorder);
/// The client has the first `devices` of those that the worker's libraries may know.
outcome sample_boards(request_at_hand& request, device::work_recorder* recorder, std::uint32_t devices);

}  // namespace outboard::backend
