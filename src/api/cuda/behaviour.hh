// What is done with each function besides carrying it out: when it must wait for the server, what it begins,
// where it runs. docs/coverage.md has the words for every line, and a test compares, because a change of one
// is a change of behaviour. Any thread.
#pragma once

#include <string>

#include "api/cuda/functions.hh"

namespace outboard::api {

/// Words and values with blanks between them, empty for a function that is merely carried out.
std::string behaviour_of(const function_info& f);

}  // namespace outboard::api
