#include "api/cuda/visible_devices.hh"

#include <gtest/gtest.h>

namespace outboard::api {
namespace {

const std::string board = "GPU-1a30127b-47b4-de95-b0ce-422b3a215fde";

/// What a driver with one device answered: 1: the device, 0: none, -1: the list is invalid.
struct answer {
  const char* list;
  int devices;
};

constexpr answer of_one_board[] = {
    {"0", 1},
    {"1", 0},
    {"1,0", 0},
    {"0,1", 1},
    {"0,0", -1},
    {"0,1,0", 1},
    {"", 0},
    {"-1", 0},
    {"0,-1", 1},
    {"0,7,1", 1},
    {" 0", 1},
    {" 0 , 1 ", 1},
    {"0,,1", 1},
    {",0", 0},
    {"0,", 1},
    {"00", 1},
    {"+0", 1},
    {"0x1", 1},
    {"1x", 0},
    {"0a", 1},
    {"a", 0},
    {"NoDevFiles", 0},
    {"all", 0},
    {"0;1", 1},
    {"0,x,1", 1},
    {"\t0", 1},
    {"0\n", 1},
    {"4294967296", 1},
    {"2147483648", 0},
    {"4294967295", 0},
    {"99999999999999999999", 0},
    {"GPU-1a30127b-47b4-de95-b0ce-422b3a215fde", 1},
    {"GPU-1a30127b-47b4-de95-b0ce-422b3a215fdex", 1},
    {"GPU-1a30127b-47b4-de95-b0ce-422b3a215fde0", 1},
    {" GPU-1a30127b-47b4-de95-b0ce-422b3a215fde", 0},
    {"GPU-1A30127B-47B4-DE95-B0CE-422B3A215FDE", 1},
    {"gpu-1a30127b-47b4-de95-b0ce-422b3a215fde", 0},
    {"GPU-1a30127b47b4de95b0ce422b3a215fde", 1},
    {"GPU-1", 1},
    {"GPU-1a30127b-", 1},
    {"GPU-1a30127b-47b4-de", 1},
    {"GPU-", 0},
    {"GPU", 0},
    {"GPU-1a30,GPU-1a30", -1},
    {"GPU-1a30120b-47b4-de95-b0ce-422b3a215fde", 0},
    {"GPU-1a30120b-47b4-de95-b0ce-422b3a215fde,0", 0},
    {"0,GPU-1a30127b-47b4-de95-b0ce-422b3a215fde", 1},
    {"GPU-1a30127b-47b4-de95-b0ce-422b3a215fde,0", 1},
    {"1a30127b", 0},
    {"MIG-1a30127b-47b4-de95-b0ce-422b3a215fde", 1},
    {"MIG-1a30127b-47b4-de95-b0ce-422b3a215fde,0", 1},
    {"MIG-GPU-1a30127b-47b4-de95-b0ce-422b3a215fde/1/0", 0},
    {"MIG-", 0},
};

TEST(visible_devices, one_board_is_found_as_a_driver_finds_it) {
  for (const answer& a : of_one_board) {
    const visible_devices v = read_visible_devices(a.list, std::span(&board, 1));
    EXPECT_EQ(v.twice ? -1 : static_cast<int>(v.ordinals.size()), a.devices) << '"' << a.list << '"';
  }
}

TEST(visible_devices, several_stand_in_the_lists_order) {
  const std::vector<std::string> boards{"GPU-aaaa0000", "GPU-aabb1111", "MIG-cccc2222"};
  const auto ordinals = [&](std::string_view list) { return read_visible_devices(list, boards).ordinals; };
  using list = std::vector<std::size_t>;
  EXPECT_EQ(ordinals("2,0"), (list{2, 0}));
  EXPECT_EQ(ordinals("1,4,0"), (list{1}));
  EXPECT_EQ(ordinals("GPU-aab,MIG-c"), (list{1, 2}));
  EXPECT_EQ(ordinals("GPU-aab,GPU-aa,MIG-c"), (list{1})) << "ambiguous";
  EXPECT_TRUE(read_visible_devices("0,1,0", boards).twice);
}

}  // namespace
}  // namespace outboard::api
