// Which functions of a program a launch can get to. Linked programs carry libraries of which they use little,
// and what nobody reaches need not be understood. Any thread.
#pragma once

#include <set>

#include "ptx/text/tree.hh"

namespace outboard::ptx {

/// The kernels, the functions whose address an initial value holds, and what the bodies of these name, and so
/// on.
std::set<const function*> reached_functions(const program& p);

}  // namespace outboard::ptx
