#include "wire/checkpoint.hh"

#include "wire/cursor.hh"

namespace outboard::wire {

std::string encode(const checkpoint_question& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(m.step);
  w.put(m.process);
  w.put(m.milliseconds);
  w.put(static_cast<std::uint32_t>(m.devices.size()));
  for (const auto& [from, to] : m.devices) w.put(from), w.put(to);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

result<checkpoint_question> decode_checkpoint_question(const std::string& text) {
  reader r(std::as_bytes(std::span(text)));
  checkpoint_question m;
  m.step = r.get<checkpoint_step>();
  m.process = r.get<std::int32_t>();
  m.milliseconds = r.get<std::uint32_t>();
  const auto devices = r.get<std::uint32_t>();
  if (devices > max_checkpoint_devices) r.fail();
  for (std::uint32_t i = 0; i < devices && r.ok(); ++i) {
    auto& [from, to] = m.devices.emplace_back();
    from = r.get<device_uuid>();
    to = r.get<device_uuid>();
  }
  const bool known = m.step >= checkpoint_step::state && m.step <= checkpoint_step::unlock;
  if (!r.finished() || !known) return failure("malformed question about a checkpoint");
  return m;
}

std::vector<std::byte> encode(const checkpoint_answer& m) {
  std::vector<std::byte> out;
  writer w(out);
  w.put(m.known);
  w.put(m.code);
  w.put(m.state);
  return out;
}

result<checkpoint_answer> decode_checkpoint_answer(std::span<const std::byte> content) {
  reader r(content);
  checkpoint_answer m;
  m.known = r.flag();
  m.code = r.get<std::int32_t>();
  m.state = r.get<std::int32_t>();
  if (!r.finished()) return failure("malformed answer about a checkpoint");
  return m;
}

}  // namespace outboard::wire
