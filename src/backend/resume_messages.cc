#include "backend/resume_messages.hh"

#include "wire/cursor.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t most_scheme = 128;

}  // namespace

std::vector<std::byte> encode(const door_message& m) { return wire::encode(m.terms); }

result<door_message> decode_door(std::span<const std::byte> payload) {
  auto terms = wire::decode_resume_terms(payload);
  if (!terms) return std::move(terms).error();
  return door_message{*terms};
}

std::vector<std::byte> encode(const knock_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.text(m.scheme);
  w.put(m.stream);
  w.put(m.arrived);
  w.bytes(m.fresh.server);
  w.bytes(m.fresh.client);
  w.bytes(m.seal);
  return out;
}

result<knock_message> decode_knock(std::span<const std::byte> payload) {
  wire::reader r(payload);
  knock_message m;
  m.scheme = r.text(most_scheme);
  m.stream = r.get<wire::stream_name>();
  m.arrived = r.get<std::uint64_t>();
  m.fresh.server = r.get<wire::nonce>();
  m.fresh.client = r.get<wire::nonce>();
  m.seal = r.get<wire::seal>();
  if (!r.finished()) return failure("the daemon sent a malformed message \"knock\"");
  return m;
}

}  // namespace outboard::backend
