#include "wire/resume.hh"

#include <string_view>

#include "base/sha256.hh"
#include "wire/cursor.hh"

namespace outboard::wire {
namespace {

proof prove(std::string_view what, const session_secret& secret, const handshake_challenges& fresh,
            std::span<const std::byte> said) {
  std::vector<std::byte> message;
  writer w(message);
  w.text(what);
  w.bytes(fresh.server);
  w.bytes(fresh.client);
  w.bytes(said);
  return hmac_sha256(secret, message);
}

std::vector<std::byte> said_by(const resume_question& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(m.session);
  w.put(m.wish);
  w.put(m.stream);
  w.put(m.arrived);
  return out;
}

constexpr std::string_view asks = "outboard resume", answers = "outboard resumed";

}  // namespace

std::vector<std::byte> encode(const resume_terms& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.bytes(m.secret);
  w.put(m.linger_milliseconds);
  return out;
}

result<resume_terms> decode_resume_terms(std::span<const std::byte> bytes) {
  reader r(bytes);
  resume_terms m;
  m.secret = r.get<session_secret>();
  m.linger_milliseconds = r.get<std::uint32_t>();
  if (!r.finished()) return failure("malformed terms of a session");
  return m;
}

std::string encode_resume_question(const resume_question& m, const session_secret& secret,
                                   const handshake_challenges& fresh) {
  std::vector<std::byte> out = said_by(m);
  const proof proven = prove(asks, secret, fresh, out);
  writer(out).bytes(proven);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

result<proven_question> decode_resume_question(const std::string& text) {
  reader r(std::as_bytes(std::span(text)));
  proven_question m;
  m.question.session = r.get<std::uint64_t>();
  m.question.wish = r.get<resume_wish>();
  m.question.stream = r.get<stream_name>();
  m.question.arrived = r.get<std::uint64_t>();
  m.proof = r.get<wire::proof>();
  const bool known = m.question.wish == resume_wish::resume || m.question.wish == resume_wish::end_session;
  if (!r.finished() || !known) return failure("malformed request to resume a session");
  return m;
}

bool is_proven(const proven_question& m, const session_secret& secret, const handshake_challenges& fresh) {
  return equal_in_constant_time(m.proof, prove(asks, secret, fresh, said_by(m.question)));
}

std::vector<std::byte> encode_resume_answer(std::uint64_t arrived, const session_secret& secret,
                                            const handshake_challenges& fresh) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(arrived);
  const proof proven = prove(answers, secret, fresh, out);
  w.bytes(proven);
  return out;
}

result<std::uint64_t> decode_resume_answer(std::span<const std::byte> content, const session_secret& secret,
                                           const handshake_challenges& fresh) {
  reader r(content);
  const auto arrived = r.get<std::uint64_t>();
  const auto given = r.get<proof>();
  if (!r.finished()) return failure("malformed answer to a resumed session");
  if (!equal_in_constant_time(given, prove(answers, secret, fresh, content.first(sizeof arrived))))
    return failure("the server does not know the session's secret");
  return arrived;
}

}  // namespace outboard::wire
