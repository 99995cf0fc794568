// How a session's connections are resumed: the seventh purpose of a hello. Behind its welcome a session gets
// a secret, which never travels again: a hello that resumes proves it, for this one greeting and hello. What
// the server answers proves the same. Values; no thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"
#include "wire/data_connection.hh"
#include "wire/hello.hh"

namespace outboard::wire {

inline constexpr purpose purpose_resume{7};

using session_secret = std::array<std::byte, 32>;

/// Follow the welcome of a session that has feature_resume.
struct resume_terms {
  session_secret secret{};
  std::uint32_t linger_milliseconds = 0;  ///< how long the server keeps a session whose client is not there
};
inline constexpr std::size_t resume_terms_size = 36;
std::vector<std::byte> encode(const resume_terms& m);
result<resume_terms> decode_resume_terms(std::span<const std::byte> bytes);

/// Names a stream of a session: the token of a data connection, or zeros for the session's own.
using stream_name = data_token;

enum class resume_wish : std::uint8_t {
  resume = 1,       ///< this connection carries the stream from now on
  end_session = 2,  ///< the program is dead; `stream` and `arrived` say nothing
};

/// Goes into hello.admin_question.
struct resume_question {
  std::uint64_t session = 0;
  resume_wish wish = resume_wish::resume;
  stream_name stream{};
  std::uint64_t arrived = 0;  ///< bytes of the stream that the client has got
};
/// The two challenges of a handshake, by which a proof is good for it alone.
struct handshake_challenges {
  nonce server{}, client{};
};

std::string encode_resume_question(const resume_question& m, const session_secret& secret,
                                   const handshake_challenges& fresh);
struct proven_question {
  resume_question question;
  wire::proof proof{};
};
result<proven_question> decode_resume_question(const std::string& text);
/// In constant time.
bool is_proven(const proven_question& m, const session_secret& secret, const handshake_challenges& fresh);

/// For welcome.content: how many bytes of the stream the server has got, with its proof.
std::vector<std::byte> encode_resume_answer(std::uint64_t arrived, const session_secret& secret,
                                            const handshake_challenges& fresh);
/// An error: malformed, or not from who has the secret.
result<std::uint64_t> decode_resume_answer(std::span<const std::byte> content, const session_secret& secret,
                                           const handshake_challenges& fresh);

}  // namespace outboard::wire
