#include "wire/data_connection.hh"

#include "wire/cursor.hh"

namespace outboard::wire {

std::string encode_data_question(std::uint64_t session) {
  std::vector<std::byte> out;
  writer(out).put(session);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

result<std::uint64_t> decode_data_question(const std::string& text) {
  reader r(std::as_bytes(std::span(text)));
  const auto session = r.get<std::uint64_t>();
  if (!r.finished()) return failure("malformed request for a data connection");
  return session;
}

std::vector<std::byte> encode_data_answer(const data_token& token) {
  std::vector<std::byte> out;
  writer(out).put(token);
  return out;
}

result<data_token> decode_data_answer(std::span<const std::byte> content) {
  reader r(content);
  const auto token = r.get<data_token>();
  if (!r.finished()) return failure("malformed answer to a data connection");
  return token;
}

}  // namespace outboard::wire
