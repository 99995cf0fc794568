// The file in which a user's programs keep the fingerprints of servers, one line each: "host:port SHA256:…",
// as ssh keeps known hosts. A server may have several lines; "#" begins a comment. Pure functions of the
// text, and the file; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::transport::tls {

struct known_server {
  std::string fingerprint;
  std::size_t line = 0;  ///< from 1
};

/// Those of one server ("gpubox:26882"). Lines that are not understood are passed over.
std::vector<known_server> find_known(std::string_view text, std::string_view server);
std::string line_of_known(std::string_view server, std::string_view fingerprint);

/// The user's file; "" if no variable says where.
std::string default_known_servers();
/// A file that does not exist is empty.
result<std::string> read_known(const std::string& path);
/// Adds a line at the end, unless another process was faster; makes the file with mode 0600, and its folder.
status add_known(const std::string& path, std::string_view server, std::string_view fingerprint);

}  // namespace outboard::transport::tls
