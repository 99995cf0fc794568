#include "wire/hello.hh"

#include "wire/checkpoint.hh"
#include "wire/cursor.hh"
#include "wire/data_connection.hh"
#include "wire/features.hh"
#include "wire/monitor.hh"
#include "wire/opencl_session.hh"
#include "wire/resume.hh"

namespace outboard::wire {
namespace {

/// Variables and names in a hello: generous for what is real, small for what is hostile.
constexpr std::size_t max_text = 4096;
constexpr std::uint32_t max_variables = 64;

std::string take_text(reader& r) { return std::string(r.text(max_text)); }

template <class T>
result<T> finish(const reader& r, T message, const char* name) {
  if (!r.finished()) return failure(std::string("malformed ") + name);
  return message;
}

}  // namespace

std::vector<std::byte> encode(const greeting& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(magic);
  w.put(m.protocol_lowest);
  w.put(m.protocol_highest);
  w.put(m.features);
  w.put(m.token_required);
  w.bytes(m.challenge);
  w.text(m.product);
  return out;
}

result<greeting> decode_greeting(std::span<const std::byte> payload) {
  reader r(payload);
  greeting m;
  if (r.get<std::uint64_t>() != magic) return failure("this is not an Outboard server");
  m.protocol_lowest = r.get<std::uint16_t>();
  m.protocol_highest = r.get<std::uint16_t>();
  m.features = r.get<std::uint64_t>();
  m.token_required = r.flag();
  m.challenge = r.get<nonce>();
  m.product = take_text(r);
  return finish(r, std::move(m), "greeting");
}

std::vector<std::byte> encode(const hello& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(magic);
  w.put(m.protocol);
  w.put(m.features);
  w.put(m.wanted);
  w.bytes(m.answer);
  w.bytes(m.token);
  w.bytes(m.challenge);
  for (const std::string* s : {&m.product, &m.host, &m.user, &m.program}) w.text(*s);
  w.put(m.process);
  w.put(m.window_base);
  w.put(m.window_slot_size);
  w.text(m.admin_question);
  w.put(static_cast<std::uint32_t>(m.environment.size()));
  for (const auto& [name, value] : m.environment) w.text(name), w.text(value);
  if ((m.features & feature_munge) != 0) w.text(m.credential);
  return out;
}

result<hello> decode_hello(std::span<const std::byte> payload) {
  reader r(payload);
  hello m;
  if (r.get<std::uint64_t>() != magic) return failure("this is not an Outboard client");
  m.protocol = r.get<std::uint16_t>();
  m.features = r.get<std::uint64_t>();
  m.wanted = r.get<purpose>();
  if (m.wanted != purpose::session && m.wanted != purpose::admin && m.wanted != purpose_monitor &&
      m.wanted != purpose_checkpoint && m.wanted != purpose_data && m.wanted != purpose_opencl &&
      m.wanted != purpose_resume)
    return failure("hello with unknown purpose");
  m.answer = r.get<proof>();
  m.token = r.get<token_id>();
  m.challenge = r.get<nonce>();
  for (std::string* s : {&m.product, &m.host, &m.user, &m.program}) *s = take_text(r);
  m.process = r.get<std::int32_t>();
  m.window_base = r.get<std::uint64_t>();
  m.window_slot_size = r.get<std::uint64_t>();
  m.admin_question = take_text(r);
  const auto variables = r.get<std::uint32_t>();
  if (variables > max_variables) {
    return failure("hello with " + std::to_string(variables) + " variables, the limit is " +
                   std::to_string(max_variables));
  }
  for (std::uint32_t i = 0; i < variables && r.ok(); ++i) {
    std::string name = take_text(r);
    std::string value = take_text(r);
    m.environment.emplace_back(std::move(name), std::move(value));
  }
  if ((m.features & feature_munge) != 0) m.credential = take_text(r);
  return finish(r, std::move(m), "hello");
}

std::vector<std::byte> encode(const welcome& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(m.protocol);
  w.put(m.features);
  w.put(m.session);
  w.text(m.product);
  w.sized(m.content);
  w.bytes(m.answer);
  return out;
}

result<welcome> decode_welcome(std::span<const std::byte> payload) {
  reader r(payload);
  welcome m;
  m.protocol = r.get<std::uint16_t>();
  m.features = r.get<std::uint64_t>();
  m.session = r.get<std::uint64_t>();
  m.product = take_text(r);
  const auto content = r.sized();
  m.content.assign(content.begin(), content.end());
  m.answer = r.get<proof>();
  return finish(r, std::move(m), "welcome");
}

std::vector<std::byte> encode(const refusal& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(m.reason);
  w.text(m.message);
  return out;
}

result<refusal> decode_refusal(std::span<const std::byte> payload) {
  reader r(payload);
  refusal m;
  m.reason = r.get<refusal_reason>();
  m.message = take_text(r);
  return finish(r, std::move(m), "refusal");
}

}  // namespace outboard::wire
