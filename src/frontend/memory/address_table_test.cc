#include "frontend/memory/address_table.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

memory_block block(std::uint64_t base, std::uint64_t size, memory_kind kind) {
  memory_block b;
  b.base = base, b.size = size, b.kind = kind;
  return b;
}

TEST(address_table, adjacent_blocks_are_covered_together) {
  address_table table;
  table.insert(block(4096, 4096, memory_kind::device));
  table.insert(block(8192, 4096, memory_kind::pool));
  EXPECT_TRUE(table.covers(5000, 7000));
  EXPECT_FALSE(table.covers(5000, 8000));
  EXPECT_FALSE(table.covers(5000, ~std::uint64_t{0}));
}

TEST(address_table, mapped_memory_is_covered_once_devices_may_use_it) {
  address_table table;
  for (const std::uint64_t base : {4096, 8192}) {
    memory_block b = block(base, 4096, memory_kind::virtual_range);
    b.closed = true;
    table.insert(b);
  }
  EXPECT_FALSE(table.covers(4096, 16));
  table.set_closed(4096, 4096, false);
  EXPECT_TRUE(table.covers(4096, 4096));
  EXPECT_FALSE(table.covers(4096, 4097)) << "the next mapping is still closed";
  table.set_closed(4096, 8192, false);
  EXPECT_TRUE(table.covers(4096, 8192));
  table.set_closed(8192, 4096, true);
  EXPECT_FALSE(table.covers(8192, 1));
}

}  // namespace
}  // namespace outboard::frontend
