// Makes a failing chain small, and prints it as a program.
#pragma once

#include <functional>
#include <string>

#include "chain.hh"

namespace chains {

/// The smallest that still fails by leaving out what can be: operations, parts, blocks. `fails` runs one.
chain shrink(chain c, const std::function<bool(const chain&)>& fails);

/// A program of the driver API: its lines, from memory to the comparison that fails.
std::string program(const chain& c);

}  // namespace chains
