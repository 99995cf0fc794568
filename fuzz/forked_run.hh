// Runs one input in a child process, for what can be begun only once in a process (the front-end's state).
// What the child has covered counts for libFuzzer in the parent, and a child that dies makes the parent die
// with the same input.
#pragma once

#include <functional>

namespace outboard::fuzz {

void run_forked(const std::function<void()>& body);

}  // namespace outboard::fuzz
