// The fifth purpose of a hello: a further connection of a session, for the bytes of its large copies. The
// daemon keeps it until the session's worker asks for it by the token that the welcome carries. Values; no
// thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"
#include "wire/hello.hh"

namespace outboard::wire {

inline constexpr purpose purpose_data{5};

/// Random; identifies the connection to client and worker.
using data_token = std::array<std::uint8_t, 32>;

/// The session that the connection is for; goes into hello.admin_question.
std::string encode_data_question(std::uint64_t session);
result<std::uint64_t> decode_data_question(const std::string& text);
/// For welcome.content.
std::vector<std::byte> encode_data_answer(const data_token& token);
result<data_token> decode_data_answer(std::span<const std::byte> content);

}  // namespace outboard::wire
