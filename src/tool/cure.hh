// The command that mends what doctor found, where one command does: what to install, start or set. It is for
// a person to read and run, and nothing here runs it. Pure but for looking which files are there; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/configuration/config.hh"
#include "base/result.hh"

namespace outboard::tool {

struct cure {
  std::string command;     ///< empty: no single command mends that
  std::string_view about;  ///< the section of the documents; empty: none says more. tests/house/sections.py
};

/// Installs the package of this product ("outboard 0.1.0"), ours or a server's. No command: that is no
/// version.
cure cure_by_package(std::string_view product_wanted);

/// The server at `url` gave `why` in the place of an answer.
cure cure_of_silence(const config& c, const std::string& url, const error& why);

/// The token file that `c` names cannot be used. No command: its mode is not what is wrong.
cure cure_of_token_file(const config& c);

/// The server begins no session for this client now.
cure cure_of_no_place();

/// The server, or this machine, has no device of the kind that was asked for.
cure cure_of_no_device();

/// The transports cannot be made of the configuration.
cure cure_of_transports();

/// One word for a shell: quoted where it must be.
std::string shell_word(std::string_view text);

}  // namespace outboard::tool
