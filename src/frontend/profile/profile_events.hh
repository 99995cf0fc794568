// A profile as text: events in Chrome's format, which Perfetto and chrome://tracing open. Times are
// nanoseconds since the profile began. Each function appends a comma and one event to
// `out`. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/cuda/work_record.hh"
#include "frontend/annotations.hh"
#include "frontend/lane.hh"

namespace outboard::frontend::profile_events {

struct call {
  std::string_view name;
  answered how = answered::locally;
  std::int32_t thread = 0;
  std::int64_t begin = 0, end = 0;
  std::uint32_t number = 0;  ///< call_watch.hh's
};

/// The title at the left of all rows of a process or device, or of a thread or stream (`row`) of it.
void name_group(std::string& out, std::int64_t group, std::string_view name, int order);
void name_row(std::string& out, std::int64_t group, std::int64_t row, std::string_view name);

void add_call(std::string& out, std::int64_t process, const call& c);
/// `number`: of the call that it was done for, 0: not known; viewers draw an arrow from there. `name`: of a
/// kernel, for people. `begin`, `end`: on our clock; rates are by the device's own.
void add_work(std::string& out, std::int64_t group, const api::work_record& w, std::string_view name,
              std::int64_t begin, std::int64_t end, std::uint32_t number = 0);
/// One of the program's annotations. A pushed range is in its thread's row, around the calls that were made
/// in it; a started one has a row of its own, because it may end anywhere.
void add_annotation(std::string& out, std::int64_t process, const annotated& a);
/// Bytes since the last one.
void add_traffic(std::string& out, std::int64_t process, std::int64_t at, std::uint64_t sent,
                 std::uint64_t received);
/// Something to be known, at one moment.
void add_note(std::string& out, std::int64_t process, std::int64_t at, std::string_view text);

/// "memcpy HtoD (pinned -> device)", "memset (device)".
std::string name_of(const api::work_record& w);
/// What a module calls a kernel, as its source does.
std::string demangled(const std::string& name);

}  // namespace outboard::frontend::profile_events
