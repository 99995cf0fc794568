// For tests of copies that go through blocks (drains.hh): what a device would write, and the words beside it.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "frontend/copying/drains.hh"

namespace outboard::frontend {

class drained_blocks {
 public:
  static constexpr std::size_t block = 8192, slots = 16;

  drained_blocks() : file_(std::make_shared<const unique_fd>(::memfd_create("drained_blocks", MFD_CLOEXEC))) {
    EXPECT_EQ(::ftruncate(file_->get(), slots * block), 0);
  }
  /// A piece of this slot's block, as long as its place.
  void ask(drains& of_all, const drains::stream_key& of, std::size_t slot, std::span<std::byte> place) {
    ASSERT_TRUE(of_all.add(of, {&done[slot], &freed_[slot], 1, file_, slot * block, place}));
  }
  /// The device has written the block.
  void finish(std::size_t slot, char with) {
    const std::string bytes(block, with);
    ASSERT_EQ(::pwrite(file_->get(), bytes.data(), block, static_cast<off_t>(slot * block)),
              static_cast<ssize_t>(block));
    std::atomic_ref<std::uint32_t>(done[slot]).store(1);
  }
  bool is_finished(std::size_t slot) { return std::atomic_ref<std::uint32_t>(done[slot]).load() == 1; }
  std::uint32_t freed(std::size_t slot) { return std::atomic_ref<std::uint32_t>(freed_[slot]).load(); }

  alignas(std::uint64_t) std::array<std::uint32_t, slots> done{};

 private:
  std::shared_ptr<const unique_fd> file_;
  std::array<std::uint32_t, slots> freed_{};
};

}  // namespace outboard::frontend
