#include "frontend/cuda/tables/integrity.hh"

#include <concepts>

namespace outboard::frontend::cuda {
namespace {

constexpr std::uint8_t key[16] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                  0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};

template <std::unsigned_integral T>
void append(std::vector<std::uint8_t>& to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

}  // namespace

std::vector<std::uint8_t> integrity_message(const integrity_facts& facts,
                                            std::span<const device_identity> devices) {
  std::vector<std::uint8_t> message;
  append(message, facts.driver_version);
  append(message, facts.version);
  append(message, facts.process);
  append(message, facts.thread);
  append(message, facts.runtime_table);
  append(message, facts.check_table);
  append(message, facts.check_function);
  append(message, facts.unix_seconds);
  for (const device_identity& device : devices) {
    message.insert(message.end(), device.uuid.begin(), device.uuid.end());
    append(message, static_cast<std::uint32_t>(device.pci_domain));
    append(message, static_cast<std::uint32_t>(device.pci_bus));
    append(message, static_cast<std::uint32_t>(device.pci_device));
  }
  return message;
}

md2_digest integrity_value(const integrity_facts& facts, std::span<const device_identity> devices) {
  return hmac_md2(key, integrity_message(facts, devices));
}

}  // namespace outboard::frontend::cuda
