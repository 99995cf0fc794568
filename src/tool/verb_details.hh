// What each verb does, in more words than a line of the help has: for its own help, its man page, and the
// table in docs/command.md. Constants; any thread.
#pragma once

#include <string>
#include <string_view>

namespace outboard::tool {

/// As Markdown for docs/command.md: code in backticks, and links only as "([text](target))". Every verb that
/// users see has some.
std::string_view details_of(std::string_view verb);

/// The same for a terminal or a man page, where a link is the name of its document and section.
std::string details_without_links(std::string_view verb);

/// Broken into lines that fit a terminal.
std::string wrapped(std::string_view text);

}  // namespace outboard::tool
