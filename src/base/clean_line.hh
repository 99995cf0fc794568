// Makes a text that a peer sent fit for one line of a log or of a terminal. Values; any thread.
#pragma once

#include <string>
#include <string_view>

namespace outboard {

/// Replaces by '?' whatever could make the text more than a part of one line: control characters (C0 and C1),
/// line separators, marks that change the direction of writing and so make a line read differently than it
/// is, and bytes that are not UTF-8.
std::string clean_line(std::string_view text);

}  // namespace outboard
