// Is exit() under way? Then clean-up, of runtimes for example, waits for nothing. Any thread.
#pragma once

namespace outboard::frontend {

bool leaving();

}  // namespace outboard::frontend
