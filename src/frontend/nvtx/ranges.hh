// The ranges that the program's threads have begun and not ended: a stack for each thread, and those that any
// thread may end. A range that has ended goes to the profile; the profiler in the program learns of both
// ends. One set in a process; a forked child goes on with its own thread's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "frontend/annotations.hh"

namespace outboard::frontend::nvtx {

/// Called only if a part wants the annotation: it may copy texts.
using reader = std::function<annotation()>;

/// Whether any part wants ranges and marks.
bool wanted();

void mark(const annotation_domain& domain, const reader& read);
/// How many of the domain's were open on this thread before; as nvtxDomainRangePushEx returns it.
int push(const annotation_domain& domain, const reader& read);
/// Ends the domain's last one of this thread: the same number, or a negative one where there is none.
int pop(const annotation_domain& domain);
/// A number for end(), never 0.
std::uint64_t start(const annotation_domain& domain, const reader& read);
/// A number that belongs to no range is ignored.
void end(std::uint64_t id);

void name(named_thing what, std::uint64_t handle, const std::function<std::string()>& read);

/// The open ranges of all threads, up to now.
std::vector<annotated> open_ranges();

}  // namespace outboard::frontend::nvtx
