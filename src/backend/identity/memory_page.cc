#include "backend/identity/memory_page.hh"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "base/errno_text.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

using number = std::atomic<std::uint64_t>;
static_assert(number::is_always_lock_free);

/// How often a reservation is tried again while others' are under way, and how long it waits in between: ten
/// milliseconds on average, which is longer than drivers take for an allocation.
constexpr int attempts = 20;
constexpr int longest_pause_us = 1000;

std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) { return a > ~b ? ~std::uint64_t{0} : a + b; }

/// Two who got in each other's way must not do so again.
void wait_a_moment() {
  thread_local std::minstd_rand dice{std::random_device{}()};
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<int>(1, longest_pause_us)(dice)));
}

}  // namespace

/// The file: zero means "nothing" everywhere, and slots that nobody had take no memory.
struct memory_page::layout {
  struct cell {
    number held, reserved;
  };
  struct alignas(64) row {
    std::array<cell, memory_columns> of;
  };
  number device_limit, host_limit, session_host_limit;
  /// How many slots were ever given out; by the daemon.
  std::atomic<std::uint32_t> rows;
  /// By column, what device it is: the first worker that uses the device writes it.
  std::array<number, memory_columns> boards;
  std::array<row, most_memory_slots> slots;

  std::uint32_t used() const { return std::min(rows.load(), most_memory_slots); }
};

result<std::pair<unique_fd, memory_page>> memory_page::make() {
  unique_fd file = make_sealed_file(sizeof(layout), "outboard-memory");
  if (!file) return failure("memory of an identity: " + errno_text(errno));
  auto page = open(file);
  if (!page.ok()) return std::move(page).error();
  return std::pair(std::move(file), std::move(*page));
}

result<memory_page> memory_page::open(const unique_fd& file) {
  if (size_of_sealed_file(file.get()).value_or(0) != sizeof(layout))
    return failure("memory of an identity: not such a file");
  void* at = ::mmap(nullptr, sizeof(layout), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return failure("memory of an identity: " + errno_text(errno));
  return memory_page(static_cast<layout*>(at));
}

memory_page::~memory_page() {
  if (layout_) ::munmap(layout_, sizeof(layout));
}

void memory_page::set_limits(const memory_limits& limits) {
  layout_->device_limit.store(limits.device);
  layout_->host_limit.store(limits.host);
  layout_->session_host_limit.store(limits.session_host);
}

memory_limits memory_page::limits() const {
  return {layout_->device_limit.load(), layout_->host_limit.load(), layout_->session_host_limit.load()};
}

void memory_page::clear(std::uint32_t slot) {
  for (layout::cell& c : layout_->slots[slot].of) c.held.store(0), c.reserved.store(0);
  if (layout_->rows.load() <= slot) layout_->rows.store(slot + 1);
}

std::optional<std::size_t> memory_page::column_of(std::uint64_t board) {
  for (std::size_t column = host_column + 1; column < memory_columns; ++column) {
    std::uint64_t there = 0;
    if (layout_->boards[column].compare_exchange_strong(there, board) || there == board) return column;
  }
  return std::nullopt;
}

std::optional<std::size_t> memory_page::find_column(std::uint64_t board) const {
  for (std::size_t column = host_column + 1; board != 0 && column < memory_columns; ++column) {
    if (layout_->boards[column].load() == board) return column;
  }
  return std::nullopt;
}

memory_page::sums memory_page::all_of(std::size_t column, std::uint32_t slots) const {
  sums all;
  const std::uint32_t end = std::min(slots, layout_->used());
  for (std::uint32_t slot = 0; slot < end; ++slot) {
    const layout::cell& c = layout_->slots[slot].of[column];
    // In this order: what is released meanwhile was added before, and so is seen at least once.
    all.reserved = sum_of(all.reserved, c.reserved.load());
    all.held = sum_of(all.held, c.held.load());
  }
  return all;
}

std::uint64_t memory_page::held_of_fullest_device(std::uint32_t slots) const {
  std::uint64_t most = 0;
  for (std::size_t column = host_column + 1; column < memory_columns; ++column) {
    if (layout_->boards[column].load() != 0) most = std::max(most, all_of(column, slots).held);
  }
  return most;
}

std::uint64_t memory_page::held(std::uint32_t slot, std::size_t column) const {
  return layout_->slots[slot].of[column].held.load();
}

std::uint64_t memory_page::held_on_devices(std::uint32_t slot) const {
  std::uint64_t all = 0;
  for (std::size_t column = host_column + 1; column < memory_columns; ++column)
    all = sum_of(all, held(slot, column));
  return all;
}

void memory_page::add(std::uint32_t slot, std::size_t column, std::uint64_t bytes) {
  layout_->slots[slot].of[column].held.fetch_add(bytes);
}

bool memory_page::reserve(std::uint32_t slot, std::size_t column, std::uint64_t bytes) {
  number& own = layout_->slots[slot].of[column].reserved;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (attempt != 0) wait_a_moment();
    const std::uint64_t limit = limit_of(column);
    if (limit != 0 && bytes > limit) return false;
    // Partner: the same line of another worker. One of the two sees the other's reservation.
    own.fetch_add(bytes);
    if (limit == 0) return true;
    const sums all = all_of(column);
    if (sum_of(all.held, all.reserved) <= limit) return true;
    own.fetch_sub(bytes);
    if (sum_of(all.held, bytes) > limit) return false;
  }
  return false;
}

void memory_page::release(std::uint32_t slot, std::size_t column, std::uint64_t bytes) {
  layout_->slots[slot].of[column].reserved.fetch_sub(bytes);
}

std::uint64_t memory_page::limit_of(std::size_t column) const {
  return (column == host_column ? layout_->host_limit : layout_->device_limit).load();
}

bool memory_page::fits(std::size_t column, std::uint64_t more) const {
  const sums all = all_of(column);
  return sum_of(sum_of(all.held, all.reserved), more) <= limit_of(column);
}

std::uint64_t memory_page::left_of(std::size_t column) const {
  const std::uint64_t limit = limit_of(column);
  const sums all = all_of(column);
  return limit - std::min(limit, sum_of(all.held, all.reserved));
}

}  // namespace outboard::backend
