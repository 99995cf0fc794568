// What the program does while its server lies: calls whose replies say how much follows, where memory is, or
// how much of the program's memory a later call takes. Its buffers are as large as the calls say, so
// that the sanitizer sees the first byte beyond. One thread.
#pragma once

namespace outboard::fuzz {

/// Makes all calls, whatever they return.
void make_calls();

/// Forgets what the calls of earlier sessions have left in this process.
void forget_calls();

}  // namespace outboard::fuzz
