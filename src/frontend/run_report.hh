// How a program under `outboard run` tells it how to end a session that would outlive the program's death.
// The program holds a connection to `outboard run` for as long as the session lives; when the program dies,
// the kernel closes the connection, and `outboard run` ends the session (tool/death_reports.hh). Owned by the
// reconnector; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.hh"
#include "base/result.hh"
#include "marshal/fields.hh"
#include "wire/resume.hh"

namespace outboard::frontend {

/// Names the abstract Unix socket of `outboard run` to its program.
inline constexpr const char* run_variable = "OUTBOARD_RUN";

struct run_message {
  std::string url;
  std::uint64_t session = 0;
  wire::session_secret secret{};
  OUTBOARD_FIELDS(url, session, secret)
};
result<run_message> decode_run_message(std::span<const std::byte> bytes);

/// A connection to `outboard run`; empty without one, or if it belongs to another user.
unique_fd report_to_run(const run_message& m);
/// The session has ended: nothing is left to do for `outboard run`.
void report_end(const unique_fd& held);

}  // namespace outboard::frontend
