#include "backend/worker/device_tally.hh"

#include <algorithm>

#include "backend/identity/memory_page.hh"
#include "base/machine_memory.hh"

namespace outboard::backend {
namespace {

/// A device without a board's number is known by its place, which no board has as its number.
std::uint64_t key_of(std::uint64_t board, std::size_t place) {
  return board != 0 ? board : (1ull << 63) + place;
}

static_assert(memory_columns < 0xff);

}  // namespace

device_tally::device_tally() { columns_.fill(no_column); }

void device_tally::open(std::span<const std::uint64_t> boards, activity_page* page, memory_slot slot) {
  if (page) boards_ = &page->boards;
  const std::span<const std::uint64_t> listed = boards.first(std::min(boards.size(), most_shown_boards));
  for (std::size_t i = 0; i < listed.size(); ++i)
    (*boards_)[i].board.store(listed[i], std::memory_order_relaxed);
  if (!slot.page) return;
  columns_[place_of(this_machine)] = static_cast<std::uint8_t>(host_column);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto column = slot.page->column_of(key_of(listed[i], i));
    columns_[i + 1] = column ? static_cast<std::uint8_t>(*column) : no_column;
  }
  slot_ = slot;
}

std::atomic<std::uint64_t>& device_tally::counter(std::int32_t device) const {
  return device == this_machine ? machine_ : (*boards_)[static_cast<std::size_t>(device)].bytes;
}

void device_tally::change(std::int32_t device, std::uint64_t bytes, std::uint64_t pooled) {
  if (!known(device)) return;
  counter(device).fetch_add(bytes, std::memory_order_relaxed);
  if (pooled != 0) pooled_[place_of(device)].fetch_add(pooled, std::memory_order_relaxed);
  const std::uint8_t column = columns_[place_of(device)];
  if (column != no_column) slot_.page->add(slot_.number, column, bytes);
}

std::uint64_t device_tally::bytes(std::int32_t device) const {
  return known(device) ? counter(device).load(std::memory_order_relaxed) : 0;
}

std::uint64_t device_tally::pooled(std::int32_t device) const {
  return known(device) ? pooled_[place_of(device)].load(std::memory_order_relaxed) : 0;
}

std::uint64_t device_tally::identity_limit(std::int32_t device) const {
  if (!slot_.page || !known(device)) return 0;
  return slot_.page->limit_of(device == this_machine ? host_column : host_column + 1);
}

bool device_tally::reserve(std::int32_t device, std::uint64_t more, std::uint64_t most, reservation& room) {
  if (!known(device)) return true;
  std::atomic<std::uint64_t>& own = reserved_[place_of(device)];
  // The session's own limit goes by numbers that no other process can write.
  const std::uint64_t before = own.fetch_add(more);
  const std::uint64_t held = bytes(device);
  const bool fits = most == 0 || (more <= most && held <= most - more && before <= most - more - held);
  const bool of_identity = fits && identity_limit(device) != 0;
  const std::uint8_t column = columns_[place_of(device)];
  if (!fits || (of_identity && (column == no_column || !slot_.page->reserve(slot_.number, column, more)))) {
    own.fetch_sub(more);
    return false;
  }
  room.end();
  room.of_ = this, room.device_ = device, room.bytes_ = more, room.in_page_ = of_identity;
  return true;
}

void device_tally::reservation::end() {
  device_tally* const of = std::exchange(of_, nullptr);
  if (!of) return;
  of->reserved_[place_of(device_)].fetch_sub(bytes_);
  if (in_page_) of->slot_.page->release(of->slot_.number, of->columns_[place_of(device_)], bytes_);
}

bool device_tally::add_within(std::int32_t device, std::uint64_t more, std::uint64_t most) {
  reservation room;
  if (is_limited(device, most) && !reserve(device, more, most, room)) return false;
  add(device, more);
  return true;
}

bool device_tally::fits(std::int32_t device, std::uint64_t more, std::uint64_t most) const {
  if (most != 0 && (more > most || bytes(device) > most - more)) return false;
  if (identity_limit(device) == 0) return true;
  const std::uint8_t column = columns_[place_of(device)];
  return column != no_column && slot_.page->fits(column, more);
}

std::uint64_t device_tally::left(std::int32_t device, std::uint64_t most) const {
  std::uint64_t rest = ~std::uint64_t{0};
  if (most != 0) rest = most - std::min(most, bytes(device));
  if (identity_limit(device) == 0) return rest;
  const std::uint8_t column = columns_[place_of(device)];
  return column == no_column ? 0 : std::min(rest, slot_.page->left_of(column));
}

std::uint64_t device_tally::most_of_machine() const {
  const std::uint64_t set = slot_.page ? slot_.page->limits().session_host : 0;
  // Memory that is held for one session is the whole machine's loss: it must leave something.
  return set != 0 ? set : 3 * quarter_of_memory();
}

}  // namespace outboard::backend
