#include "backend/daemon/device_shape.hh"

#include <gtest/gtest.h>

#include "backend/daemon/probe.hh"
#include "backend/daemon/workers/worker_environment.hh"

namespace outboard::backend {
namespace {

const std::vector<std::string> boards{"GPU-11aa0000-0000-0000-0000-000000000000",
                                      "GPU-11bb0000-0000-0000-0000-000000000000",
                                      "GPU-22cc0000-0000-0000-0000-000000000000"};

TEST(device_shape, name_and_memory_are_the_boards_own_without_a_wish) {
  EXPECT_EQ(shaped_name({}, "NVIDIA H200"), "NVIDIA H200");
  EXPECT_EQ(shaped_memory({}, 7), 7u);
}

TEST(device_shape, a_name_may_hold_the_boards_own_and_is_cut_to_what_there_is_room_for) {
  const auto named = [](std::string text) {
    return shape_settings{.visible = {}, .name = std::move(text), .memory = 0};
  };
  EXPECT_EQ(shaped_name(named("Lab {name} (remote)"), "NVIDIA H200"), "Lab NVIDIA H200 (remote)");
  EXPECT_EQ(shaped_name(named("Half a GPU"), "NVIDIA H200"), "Half a GPU");
  EXPECT_EQ(shaped_name(named(std::string(90, 'x') + "{name}"), "NVIDIA H200").size(), 95u);
}

TEST(device_shape, memory_is_capped_and_never_more_than_there_is) {
  marshal::snapshot s;
  s.devices.resize(2);
  s.devices[0].total_memory = 80, s.devices[1].total_memory = 20;
  apply_shape({.visible = {}, .name = {}, .memory = 40}, s);
  EXPECT_EQ(s.devices[0].total_memory, 40u);
  EXPECT_EQ(s.devices[1].total_memory, 20u);
}

TEST(device_shape, devices_are_chosen_by_index_and_by_the_beginning_of_a_uuid) {
  const std::vector<std::string> wanted{"2", "GPU-11b"};
  const auto chosen = choose_devices(wanted, boards);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_EQ(*chosen, (std::vector<std::size_t>{2, 1}));
}

TEST(device_shape, a_part_of_a_board_goes_by_its_own_uuid) {
  marshal::snapshot s;
  s.devices.resize(2);
  s.devices[0].uuid[0] = s.devices[0].uuid_v2[0] = std::byte{0xab};
  s.devices[1].uuid[0] = std::byte{0xab}, s.devices[1].uuid_v2[0] = std::byte{0xcd};
  const std::vector<std::string> uuids = uuids_of(s);
  EXPECT_EQ(uuids[0], "GPU-ab000000-0000-0000-0000-000000000000");
  EXPECT_EQ(uuids[1], "MIG-cd000000-0000-0000-0000-000000000000");
  // A client's names, within what the server lends.
  EXPECT_EQ(compose_visible_devices("0", "MIG-cd,GPU-ab", uuids), uuids[1] + "," + uuids[0]);
}

TEST(device_shape, an_entry_that_names_no_device_is_an_error_that_lists_what_there_is) {
  for (const char* bad : {"3", "GPU-33", "GPU-11", "x", "-1"}) {
    const std::vector<std::string> wanted{"0", bad};
    const auto chosen = choose_devices(wanted, boards);
    ASSERT_FALSE(chosen.ok()) << bad;
    EXPECT_NE(chosen.error().message.find(bad), std::string::npos);
    EXPECT_NE(chosen.error().message.find("2 = " + boards[2]), std::string::npos);
  }
  const std::vector<std::string> twice{"1", "GPU-11bb"};
  EXPECT_NE(choose_devices(twice, boards).error().message.find("named before"), std::string::npos);
}

}  // namespace
}  // namespace outboard::backend
