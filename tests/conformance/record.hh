// The file of recorded results, one line for each form, with tabs between the fields:
//   FORM  exact   HASH  one character for four threads (6 bits of their results' hash, to find differences)
//   FORM  within  HASH  the results themselves in hexadecimal; HASH is of the scratch memory
//   FORM  failed  what the device said
// Lines that begin with # are comments.
#pragma once

#include <map>
#include <string>

#include "execution.hh"
#include "kernel.hh"

namespace conformance {

struct record {
  std::string kind, hash, data;
};

record record_of(const kernel& k, const run_result& r);
std::string line_of(const std::string& form, const record& r);
std::map<std::string, record> read_records(const std::string& path);

/// Empty when they agree; else the first thread that differs, with its operands and results.
std::string difference(const kernel& k, const run_result& r, const record& expected);

/// Operands and results of one thread.
std::string thread_text(const kernel& k, const run_result& r, std::size_t thread);

}  // namespace conformance
