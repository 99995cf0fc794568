// The payloads that docs/wire.md shows, as the code writes and reads them.
#include <gtest/gtest.h>

#include <optional>

#include "marshal/body_testing.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/image.hh"
#include "marshal/cuda/kernel_table.hh"
#include "marshal/cuda/snapshot.hh"
#include "marshal/data_bodies.hh"
#include "marshal/request.hh"
#include "wire/document_testing.hh"
#include "wire/handle.hh"

namespace outboard::marshal {
namespace {

using testing::expect_body;
using wire::testing::expect_example;
using wire::testing::expect_survives_damage;

template <class H>
H handle_of(api::handle_kind kind, std::uint32_t index) {
  return reinterpret_cast<H>(wire::handle::make(static_cast<std::uint8_t>(kind), index, 1).value);
}
const std::uint64_t stream_value = wire::handle::make(6, 1, 1).value;
const std::uint64_t kernel_value = wire::handle::make(5, 2, 1).value;

TEST(WireDocument, GeneratedRequests) {
  std::vector<std::byte> out;
  wire::writer w(out);
  CUstream made = nullptr;
  encode_request<api::opcode::cuStreamCreate>(w, stream_value, &made, 1u);
  expect_example("request_cuStreamCreate", out);
  out.clear();
  float milliseconds = 0;
  encode_request<api::opcode::cuEventElapsedTime_v2>(w, 0, &milliseconds,
                                                     handle_of<CUevent>(api::handle_kind::event, 1),
                                                     handle_of<CUevent>(api::handle_kind::event, 2));
  expect_example("request_cuEventElapsedTime_v2", out);
  out.clear();
  w.put<std::uint64_t>(1);
  w.put(1.5f);
  expect_example("outputs_cuEventElapsedTime_v2", out);
  wire::reader r(out);
  ASSERT_TRUE(decode_reply<api::opcode::cuEventElapsedTime_v2>(r, &milliseconds, CUevent{}, CUevent{}));
  EXPECT_EQ(milliseconds, 1.5f);
}

TEST(WireDocument, Bodies) {
  expect_body("copy_in_body", copy_in_body{0x200000001000, stream_value, flavour::stream});
  expect_body("copy_out_body", copy_out_body{0x200000001000, 4096, 0, flavour::sync});
  expect_body("data_open_body", data_open_body{1, {share_token{1}, share_token{2}}, 2});
  expect_body("aside_body", aside_body{5, 1048576, 1048576, 3, 2});
  expect_body("data_in_body", data_in_body{0x200000001000, 4096, stream_value, 7, flavour::stream, true});
  expect_body("data_out_body", data_out_body{0x200000001000, 4096, 0, 8, flavour::sync, 2, 100000});
  launch_body launch;
  launch.kernel = kernel_value;
  launch.stream = stream_value;
  launch.grid = {4, 2, 1};
  launch.block = {256, 1, 1};
  launch.shared = 1024;
  launch.parameters = {0x00, 0x10, 0, 0, 0, 0x20, 0, 0};
  expect_body("launch_body", launch);
  load_body load;
  load.handle = wire::handle::make(4, 1, 1).value;
  load.image_size = 512;
  load.capability_major = 9;
  load.options.push_back({.option = 0, .value = 32});
  expect_body("load_body", load);
  load_reply loaded;
  loaded.kernels = {1, 2, 3};
  loaded.jit.info_log = "ok";
  loaded.jit.values = {32};
  expect_body("load_reply", loaded);
  expect_body("capture_reply", capture_reply{1, 5, 0, {}, {}});
}

TEST(WireDocument, Snapshot) {
  snapshot s;
  s.driver_version = 13000;
  s.loading_mode = 2;
  s.device_kind = "cpu";
  s.device_description = "none";
  s.window_base = 0x200000000000;
  s.window_slot_size = 1ull << 40;
  s.own_addresses = true;
  device_facts d;
  d.name = "GPU";
  d.uuid.fill(std::byte{0x11});
  d.uuid_v2.fill(std::byte{0x22});
  d.pci_bus_id = "0000:01:00.0";
  d.total_memory = 1ull << 32;
  d.compute_major = 9;
  d.attributes = {{1, 0}, {0, 1024}};
  d.limits.fill(~0ull);
  d.limits[0] = 1024;
  d.greatest_priority = -5;
  s.devices.push_back(d);
  const std::vector<std::byte> bytes = encode(s);
  expect_example("snapshot", bytes);
  expect_survives_damage(bytes, [](std::span<const std::byte> b) -> std::optional<std::vector<std::byte>> {
    const auto got = decode_snapshot(b);
    if (!got.ok()) return std::nullopt;
    return encode(*got);
  });
}

TEST(WireDocument, KernelTable) {
  kernel_table table;
  table.source = kernel_source::ptx;
  kernel_info k;
  k.name = "f";
  k.layout_known = true;
  k.parameters = {{0, 8}, {8, 4}};
  k.parameter_bytes = 12;
  k.ptx_version = 90;
  table.kernels.push_back(k);
  table.variables.push_back({"v", variable_space::constant, 256});
  const std::vector<std::byte> bytes = encode(table);
  expect_example("kernel_table", bytes);
  expect_survives_damage(bytes, [](std::span<const std::byte> b) -> std::optional<std::vector<std::byte>> {
    const auto got = decode_kernel_table(b);
    if (!got.ok()) return std::nullopt;
    return encode(*got);
  });
}

TEST(WireDocument, ModuleImage) {
  const char text[] = ".version 8.0\n";
  const auto view = image_extent(std::as_bytes(std::span(text)));
  ASSERT_TRUE(view.ok());
  const auto image = module_image::select(*view, {9, 0, true, false});
  ASSERT_TRUE(image.ok());
  expect_example("module_image", image->encoded());
  EXPECT_TRUE(module_image::decode(image->encoded()).ok());
}

TEST(WireDocument, Numbers) {
  EXPECT_EQ(max_elements, 65536u);
  EXPECT_EQ(max_parameter_bytes, 65536u);
  EXPECT_EQ(max_launch_attributes, 64u);
  EXPECT_EQ(max_jit_options, 64u);
  EXPECT_EQ(max_image_bytes, 4294967296u);
  EXPECT_EQ(sizeof(launch_attribute), 72u);
  EXPECT_EQ(sizeof(jit_option), 16u);
  EXPECT_EQ(static_cast<int>(service::upload), 1);
  EXPECT_EQ(static_cast<int>(service::records_export), 2);
  EXPECT_EQ(static_cast<int>(service::records_import), 3);
}

}  // namespace
}  // namespace outboard::marshal
