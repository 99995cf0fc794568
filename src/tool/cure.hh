// The command that mends what doctor found, where one command does: what to install, start or set. It is for
// a person to read and run, and nothing here runs it. Pure but for looking which files are there; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/configuration/config.hh"
#include "base/result.hh"

namespace outboard::tool {

/// Installs the package of this product ("outboard 0.1.0"), ours or a server's; empty: that is no version.
std::string cure_by_package(std::string_view product_wanted);

/// The server at `url` gave `why` in the place of an answer. Empty: no single command mends that.
std::string cure_of_silence(const config& c, const std::string& url, const error& why);

/// The token file that `c` names cannot be used. Empty: its mode is not what is wrong.
std::string cure_of_token_file(const config& c);

/// One word for a shell: quoted where it must be.
std::string shell_word(std::string_view text);

}  // namespace outboard::tool
