#include "marshal/cuda/memory_changes.hh"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

constexpr std::size_t page = 4096;
constexpr std::uint64_t all_ones = ~std::uint64_t{0};

/// A 64-byte line that is read once, so that the same bytes are compared, sent and kept in the shadow.
struct line {
  std::array<std::byte, change_line> bytes{};
  std::size_t size = 0;
  std::uint64_t mask = 0;

  line(const std::byte* memory, const std::byte* shadow, std::size_t n) : size(n) {
    std::memcpy(bytes.data(), memory, n);
    for (std::size_t i = 0; i < n; ++i) mask |= std::uint64_t{bytes[i] != shadow[i]} << i;
  }
};

/// Appends lines to the current run while they are adjacent and of one kind.
class run_writer {
 public:
  run_writer(std::vector<std::byte>& out, std::uint64_t address) : out_(out), w_(out), address_(address) {}

  void add(std::size_t offset, const line& l) {
    const bool masked = l.mask != all_ones;
    if (!open_ || offset != next_ || masked != masked_) begin(offset, masked);
    next_ = offset + change_line;
    w_.patch(count_at_, ++count_);
    if (!masked) return w_.bytes(l.bytes);
    w_.put(l.mask);
    const std::span<std::byte> room = w_.room(static_cast<std::size_t>(std::popcount(l.mask)));
    std::size_t n = 0;
    for (std::uint64_t rest = l.mask; rest; rest &= rest - 1) {
      room[n++] = l.bytes[static_cast<std::size_t>(std::countr_zero(rest))];
    }
  }

 private:
  void begin(std::size_t offset, bool masked) {
    open_ = true;
    masked_ = masked;
    count_ = 0;
    w_.put<std::uint64_t>(address_ + offset);
    count_at_ = out_.size();
    w_.put<std::uint32_t>(0);
    w_.put(masked);
  }

  std::vector<std::byte>& out_;
  wire::writer w_;
  const std::uint64_t address_;
  bool open_ = false, masked_ = false;
  std::size_t next_ = 0, count_at_ = 0;
  std::uint32_t count_ = 0;
};

/// Writes the bytes of an aligned word that `mask` names in one store, so that a thread that polls a number
/// there never sees half of it, and what others write to the bytes next to them stays.
void store_word(std::byte* to, const std::byte* bytes, std::uint64_t mask) {
  auto* word = reinterpret_cast<std::uint64_t*>(to);
  std::uint64_t value = 0, bits = 0;
  std::memcpy(&value, bytes, sizeof value);
  for (std::size_t i = 0; i < sizeof value; ++i) bits |= (mask >> i & 1 ? std::uint64_t{0xff} : 0) << (8 * i);
  if (bits == all_ones) return __atomic_store_n(word, value, __ATOMIC_RELAXED);
  std::uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, (old & ~bits) | (value & bits), true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

/// Writes the bytes that the mask names; `bytes` is a whole line.
void store_masked(std::byte* to, const std::byte* bytes, std::uint64_t mask, std::size_t size) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  const bool aligned = reinterpret_cast<std::uintptr_t>(to) % word == 0;
  for (std::size_t at = 0; mask; at += word, mask >>= word) {
    const std::uint64_t here = mask & 0xff;
    if (here && aligned && at + word <= size) {
      store_word(to + at, bytes + at, here);
      continue;
    }
    for (std::size_t i = 0; i < word; ++i) {
      if (here >> i & 1) to[at + i] = bytes[at + i];
    }
  }
}

/// Puts one line of a run into its place. Returns false if it leaves the block.
bool apply_line(wire::reader& from, bool masked, const change_target& to, std::size_t offset, bool store) {
  if (offset >= to.memory.size()) return false;
  const std::size_t size = std::min(change_line, to.memory.size() - offset);
  if (!masked) {
    if (size < change_line) return false;
    const auto bytes = from.bytes(change_line);
    if (!from.ok()) return false;
    if (!store) return true;
    std::memcpy(to.memory.data() + offset, bytes.data(), change_line);
    if (!to.shadow.empty()) std::memcpy(to.shadow.data() + offset, bytes.data(), change_line);
    return true;
  }
  const auto mask = from.get<std::uint64_t>();
  const auto bytes = from.bytes(static_cast<std::uint64_t>(std::popcount(mask)));
  if (!from.ok() || (size < change_line && mask >> size)) return false;
  if (!store) return true;
  std::array<std::byte, change_line> spread{};
  std::size_t n = 0;
  for (std::uint64_t rest = mask; rest; rest &= rest - 1) {
    spread[static_cast<std::size_t>(std::countr_zero(rest))] = bytes[n++];
  }
  if (!to.shadow.empty()) store_masked(to.shadow.data() + offset, spread.data(), mask, size);
  store_masked(to.memory.data() + offset, spread.data(), mask, size);
  return true;
}

/// Stores the runs of one kind, and checks all.
bool apply_runs(std::span<const std::byte> changes, bool of_masked,
                const std::function<std::optional<change_target>(std::uint64_t)>& target) {
  wire::reader from(changes);
  while (!from.rest().empty()) {
    const auto address = from.get<std::uint64_t>();
    const auto lines = from.get<std::uint32_t>();
    const bool masked = from.flag();
    if (!from.ok() || lines == 0) return false;
    const auto to = target(address);
    if (!to) return false;
    for (std::uint32_t i = 0; i < lines; ++i) {
      if (!apply_line(from, masked, *to, std::size_t{i} * change_line, masked == of_masked)) return false;
    }
  }
  return from.ok();
}

}  // namespace

std::size_t find_changes(std::uint64_t address, std::span<const std::byte> memory,
                         std::span<std::byte> shadow, std::size_t from, std::size_t most, std::size_t budget,
                         std::vector<std::byte>& out, const address_watch& watch) {
  run_writer writer(out, address);
  const std::size_t limit = out.size() + most;
  const std::size_t end = memory.size() - from > budget ? from + budget / page * page : memory.size();
  std::size_t at = from;
  while (at < end && out.size() < limit) {
    const std::size_t here = std::min(page - at % page, end - at);
    if (std::memcmp(memory.data() + at, shadow.data() + at, here) == 0) {
      at += here;
      continue;
    }
    for (const std::size_t stop = at + here; at < stop; at += change_line) {
      const std::size_t size = std::min(change_line, stop - at);
      const line l(memory.data() + at, shadow.data() + at, size);
      if (!l.mask) continue;
      writer.add(at, l);
      find_addresses(l.bytes, sizeof(std::uint64_t), watch);
      std::memcpy(shadow.data() + at, l.bytes.data(), size);
    }
    at = std::min(at, end);
  }
  return at;
}

bool apply_changes(std::span<const std::byte> changes,
                   const std::function<std::optional<change_target>(std::uint64_t)>& target) {
  // A thread that polls a flag must find the data that the flag announces. Flags are words that changed
  // alone, so everything else is stored first.
  return apply_runs(changes, false, target) && apply_runs(changes, true, target);
}

void find_addresses(std::span<const std::byte> bytes, std::size_t stride, const address_watch& watch) {
  if (watch.also) find_addresses(bytes, stride, *watch.also);
  constexpr std::size_t part = 4096;
  const auto word_at = [&](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
  };
  if (!watch.size || bytes.size() < sizeof(std::uint64_t)) return;
  const std::size_t last = bytes.size() - sizeof(std::uint64_t);
  for (std::size_t at = 0; at <= last; at += part) {
    const std::size_t end = std::min(at + part - 1, last);
    bool any = false;  // most bytes contain none, so check first
    for (std::size_t i = at; i <= end; i += stride) any |= word_at(i) - watch.low < watch.size;
    for (std::size_t i = at; any && i <= end; i += stride) {
      if (word_at(i) - watch.low < watch.size) watch.noted->push_back(word_at(i));
    }
  }
}

}  // namespace outboard::marshal
