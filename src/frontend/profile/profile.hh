// OUTBOARD_PROFILE=file, OUTBOARD_PROFILE_SUMMARY=1: what the program's threads called and what the device
// did, both on the program's clock. Calls are noted as they return. A thread of ours asks the server five
// times a second for what its device has recorded, and writes. A killed program leaves a file that can be
// read up to then. Any thread; costs one load of a flag when off.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/annotations.hh"
#include "frontend/call_watch.hh"
#include "frontend/lane.hh"
#include "frontend/profile/profile_services.hh"

namespace outboard::frontend {

class session;
struct traffic;

struct profile_settings {
  std::string file;  ///< as trace::start() takes it; empty: none
  bool summary = false;
  bool on() const { return summary || !file.empty(); }
};

namespace profile {

inline bool on() { return calls_watched_by(call_watcher::profile); }

/// Opens the file. Once a process; a second time nothing happens.
void start(const profile_settings& how);
/// From now on the server is asked. `offered`: it can report its device's work. The session must outlive
/// finish(). Once.
void attach(session& server, bool offered, profile_services services = cuda_profiles);
/// What the profile lacks: on stderr and in the file.
void lacks(const std::string& what);
/// Fetches what is left, writes the end. Before the session says goodbye.
void finish(const traffic& moved);
/// In a forked child: the profile is the parent's.
void forked();

/// A call of this thread, which its lane says how it was answered. `name` lasts as long as the process.
void note_call(lane& own, std::string_view name, std::chrono::steady_clock::time_point begin,
               std::chrono::steady_clock::time_point end);
/// This thread ends.
void end_lane(lane& ended);

/// Ranges that are not over yet, up to now.
using open_ranges = std::vector<annotated> (*)();
/// The program annotates its work from now on: annotations from before its first call of CUDA are in the
/// profile, too, if the settings ask for one.
void expect_annotations(open_ranges open);
inline std::atomic<bool> annotations_expected{false};
inline bool wants_annotations() { return on() || annotations_expected.load(std::memory_order_relaxed); }
void note(annotated&& about);
void note(given_name&& name);
/// A call begins whose work goes to this stream.
void note_stream(std::uint32_t call, const void* stream);

}  // namespace profile
}  // namespace outboard::frontend
