#include "frontend/cuda/tables/integrity.hh"

#include <gtest/gtest.h>

#include <algorithm>

namespace outboard::frontend::cuda {
namespace {

integrity_facts some_facts() {
  integrity_facts facts;
  facts.driver_version = 0x01020304;
  facts.version = 0x11121314;
  facts.process = 0x21222324;
  facts.thread = 0x31323334;
  facts.runtime_table = 0x4142434445464748;
  facts.check_table = 0x5152535455565758;
  facts.check_function = 0x6162636465666768;
  facts.unix_seconds = 0x7172737475767778;
  return facts;
}

device_identity some_device() {
  device_identity device;
  for (std::uint8_t n = 0; n < 16; ++n) device.uuid[n] = static_cast<std::uint8_t>(0xa0 + n);
  device.pci_domain = 1, device.pci_bus = 0x1b, device.pci_device = -2;
  return device;
}

TEST(integrity, message_is_packed_in_the_order_that_the_runtime_hashes) {
  const std::vector<std::uint8_t> expected = {
      0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,  //
      0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,  //
      0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, 0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71,  //
      0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,  //
      0x01, 0x00, 0x00, 0x00, 0x1b, 0x00, 0x00, 0x00, 0xfe, 0xff, 0xff, 0xff};
  const device_identity device = some_device();
  EXPECT_EQ(integrity_message(some_facts(), {&device, 1}), expected);
}

TEST(integrity, message_has_one_record_per_device_in_order) {
  std::vector<device_identity> devices(3, some_device());
  devices[1].uuid[0] = 7;
  const auto message = integrity_message(some_facts(), devices);
  ASSERT_EQ(message.size(), 48u + 3 * 28u);
  EXPECT_EQ(message[48], 0xa0);
  EXPECT_EQ(message[48 + 28], 7);
  EXPECT_EQ(message[48 + 56], 0xa0);
}

TEST(integrity, every_fact_enters_the_value) {
  const std::vector<device_identity> devices(2, some_device());
  std::vector<md2_digest> seen{integrity_value(some_facts(), devices)};
  const auto add = [&](auto change) {
    integrity_facts facts = some_facts();
    std::vector<device_identity> others = devices;
    change(facts, others);
    const md2_digest value = integrity_value(facts, others);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), value), 0);
    seen.push_back(value);
  };
  add([](auto& f, auto&) { ++f.driver_version; });
  add([](auto& f, auto&) { ++f.version; });
  add([](auto& f, auto&) { ++f.process; });
  add([](auto& f, auto&) { ++f.thread; });
  add([](auto& f, auto&) { ++f.runtime_table; });
  add([](auto& f, auto&) { ++f.check_table; });
  add([](auto& f, auto&) { ++f.check_function; });
  add([](auto& f, auto&) { ++f.unix_seconds; });
  add([](auto&, auto& d) { ++d[1].pci_domain; });
  add([](auto&, auto& d) { ++d[1].pci_bus; });
  add([](auto&, auto& d) { ++d[1].pci_device; });
  add([](auto&, auto& d) { ++d[0].uuid[15]; });
  add([](auto&, auto& d) { d.pop_back(); });
}

}  // namespace
}  // namespace outboard::frontend::cuda
