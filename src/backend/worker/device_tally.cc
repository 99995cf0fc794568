#include "backend/worker/device_tally.hh"

namespace outboard::backend {

void device_tally::open(std::span<const std::uint64_t> boards, activity_page* page, account_share* account) {
  account_ = account;
  if (page) boards_ = &page->boards;
  for (std::size_t i = 0; i < boards.size() && i < most_shown_boards; ++i)
    (*boards_)[i].board.store(boards[i], std::memory_order_relaxed);
}

void device_tally::change(std::int32_t device, std::uint64_t bytes, std::uint64_t pooled) {
  if (!known(device)) return;
  const auto at = static_cast<std::size_t>(device);
  (*boards_)[at].bytes.fetch_add(bytes, std::memory_order_relaxed);
  pooled_[at].fetch_add(pooled, std::memory_order_relaxed);
  if (account_) account_->change(device, bytes);
}

std::uint64_t device_tally::bytes(std::int32_t device) const {
  if (!known(device)) return 0;
  return (*boards_)[static_cast<std::size_t>(device)].bytes.load(std::memory_order_relaxed);
}

std::uint64_t device_tally::pooled(std::int32_t device) const {
  return known(device) ? pooled_[static_cast<std::size_t>(device)].load(std::memory_order_relaxed) : 0;
}

}  // namespace outboard::backend
