// Finds the functions of a program that a launch can reach. Linked programs contain libraries of which they
// use little, and a function that cannot be reached need not be decoded. Any thread.
#pragma once

#include <set>

#include "ptx/text/tree.hh"

namespace outboard::ptx {

/// The kernels, the functions whose address is in an initial value, and all functions that these name,
/// directly or not.
std::set<const function*> reached_functions(const program& p);

}  // namespace outboard::ptx
