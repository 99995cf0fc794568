// What the verbs print: tables, sizes and times as people read them, and the way to the standard output. Pure
// functions but for print(); main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::tool {

/// Rows as lines whose columns are aligned and two blanks apart. The first row is the header.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "512 MiB", "1.5 GiB".
std::string size_text(double bytes);

/// "12 s", "5 min", "3 h 20 min", "2 days 4 h".
std::string duration_text(double seconds);

/// Writes to the standard output; returns the exit status, and complains if that fails.
int print(std::string_view text);

}  // namespace outboard::tool
