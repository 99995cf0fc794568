#include "marshal/cuda/snapshot.hh"

#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

constexpr std::uint32_t max_devices = 64;
constexpr std::uint32_t max_attributes = 1024;

void put_device(wire::writer& w, const device_facts& d) {
  w.text(d.name);
  w.bytes(d.uuid);
  w.bytes(d.uuid_v2);
  w.text(d.pci_bus_id);
  w.put(d.total_memory);
  w.put(d.compute_major);
  w.put(d.compute_minor);
  w.put(static_cast<std::uint32_t>(d.attributes.size()));
  for (const attribute_answer& a : d.attributes) w.put(a);
  for (std::uint64_t limit : d.limits) w.put(limit);
  w.put(d.least_priority);
  w.put(d.greatest_priority);
}

device_facts take_device(wire::reader& r) {
  device_facts d;
  d.name = r.text(4096);
  d.uuid = r.get<std::array<std::byte, 16>>();
  d.uuid_v2 = r.get<std::array<std::byte, 16>>();
  d.pci_bus_id = r.text(64);
  d.total_memory = r.get<std::uint64_t>();
  d.compute_major = r.get<std::int32_t>();
  d.compute_minor = r.get<std::int32_t>();
  const auto attributes = r.get<std::uint32_t>();
  if (attributes > max_attributes) r.fail();
  for (std::uint32_t i = 0; i < attributes && r.ok(); ++i) d.attributes.push_back(r.get<attribute_answer>());
  for (std::uint64_t& limit : d.limits) limit = r.get<std::uint64_t>();
  d.least_priority = r.get<std::int32_t>();
  d.greatest_priority = r.get<std::int32_t>();
  return d;
}

}  // namespace

std::vector<std::byte> encode(const snapshot& s) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.put(s.driver_version);
  w.put(s.loading_mode);
  w.text(s.device_kind);
  w.text(s.device_description);
  w.put(s.window_base);
  w.put(s.window_slot_size);
  w.put(s.own_addresses);
  w.put(static_cast<std::uint32_t>(s.devices.size()));
  for (const device_facts& d : s.devices) put_device(w, d);
  return out;
}

result<snapshot> decode_snapshot(std::span<const std::byte> bytes) {
  wire::reader r(bytes);
  snapshot s;
  s.driver_version = r.get<std::int32_t>();
  s.loading_mode = r.get<std::int32_t>();
  s.device_kind = r.text(64);
  s.device_description = r.text(4096);
  s.window_base = r.get<std::uint64_t>();
  s.window_slot_size = r.get<std::uint64_t>();
  s.own_addresses = r.flag();
  const auto devices = r.get<std::uint32_t>();
  if (devices > max_devices) r.fail();
  for (std::uint32_t i = 0; i < devices && r.ok(); ++i) s.devices.push_back(take_device(r));
  if (!r.finished()) return failure("malformed snapshot");
  return s;
}

}  // namespace outboard::marshal
