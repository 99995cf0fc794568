// Named tokens: each names an identity that may come over a network. The server's file has a line a token
// with what checks it, so a thief of the file can log in nowhere. The file is written whole or not at all,
// by one process at a time. Values and free functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

struct named_token {
  std::string name;
  wire::token_verifier verifier;
  std::int64_t created = 0;  ///< in seconds since 1970
  std::int64_t expires = 0;  ///< likewise; 0: never
};

/// Letters, digits, ".", "_" and "-": names stand in logs, in files and behind "token " in identities.
bool is_token_name(std::string_view name);

/// A file that does not exist has no tokens. The error names the line.
result<std::vector<named_token>> read_named_tokens(const std::string& path);

/// Makes a token and adds it to the file, whose folder is made if it is missing. Returns its text, which the
/// file does not have. Names are used once: an existing one is an error. `lifetime` 0: it never expires.
result<std::string> create_named_token(const std::string& path, std::string_view name,
                                       std::chrono::seconds lifetime);
/// Its sessions end once the server has seen the file (token_book::reload).
status revoke_named_token(const std::string& path, std::string_view name);

/// "2026-11-28 03:10 UTC", of seconds since 1970.
std::string minute_text(std::int64_t seconds);

}  // namespace outboard::backend
