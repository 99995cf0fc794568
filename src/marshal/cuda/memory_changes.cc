#include "marshal/cuda/memory_changes.hh"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "marshal/cuda/byte_masks.hh"
#include "marshal/cuda/changed_lines.hh"
#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

constexpr std::size_t page = 4096;
constexpr std::uint64_t all_ones = ~std::uint64_t{0};

/// Into where the line stays: a copy at once waits for the larger stores that it is made of (15 ns a line).
void read_line(const line_work& work, const std::byte* memory, const std::byte* shadow, std::size_t n,
               changed_line& l) {
  l.size = n;
  if (n == change_line) {
    l.mask = work.read(memory, shadow, l.bytes.data());
    return;
  }
  std::memcpy(l.bytes.data(), memory, n);
  l.mask = different_bytes(l.bytes.data(), shadow, n);
}

/// Appends lines to the run at hand while they follow each other and are of one kind.
class run_writer {
 public:
  run_writer(std::vector<std::byte>& out, std::uint64_t address) : out_(out), w_(out), address_(address) {}

  void add(std::size_t offset, const changed_line& l) {
    const bool masked = l.mask != all_ones;
    if (!open_ || offset != next_ || masked != masked_) begin(offset, masked);
    next_ = offset + change_line;
    w_.patch(count_at_, ++count_);
    if (!masked) return w_.bytes(l.bytes);
    std::array<std::byte, sizeof l.mask + 2 * change_line> packed;
    std::memcpy(packed.data(), &l.mask, sizeof l.mask);
    const std::size_t n = sizeof l.mask + work_.take(l.bytes.data(), l.mask, packed.data() + sizeof l.mask);
    w_.bytes(std::span(packed).first(n));
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

  const line_work& work_ = best_line_work();
  std::vector<std::byte>& out_;
  wire::writer w_;
  const std::uint64_t address_;
  bool open_ = false, masked_ = false;
  std::size_t next_ = 0, count_at_ = 0;
  std::uint32_t count_ = 0;
};

using kind = late_words::kind;

/// One number is a word, and one that moved on by a little a flag.
kind kind_of(const changed_line& l, const std::byte* before) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  constexpr std::uint64_t little = 8;
  const std::size_t at = static_cast<std::size_t>(std::countr_zero(l.mask)) / word * word;
  if (at + word > l.size || !is_one_word(l.mask)) return kind::data;
  std::uint64_t was = 0, is = 0;
  std::memcpy(&was, before + at, word);
  std::memcpy(&is, l.bytes.data() + at, word);
  const auto low = static_cast<std::uint32_t>(is - was);
  const std::uint64_t high = (is >> 32) - (was >> 32);
  const bool one_half = (is ^ was) >> 32 == 0 || static_cast<std::uint32_t>(is ^ was) == 0;
  const std::uint64_t step = !one_half ? is - was : low != 0 ? low : high;
  return step - 1 < little ? kind::flag : kind::word;
}

/// Lines of a page that have changed, to be written once their neighbours are known: a table of numbers is
/// data, a number alone is a word that somebody may wait for.
class page_of_lines {
 public:
  /// Where the next line is read to; it is among them once it is kept.
  changed_line& next() { return lines_[count_].l; }
  void keep(std::size_t offset, kind k) {
    entry& e = lines_[count_++];
    e.offset = offset;
    e.k = k;
  }

  template <class Write>
  void write(const Write& to) {
    for (std::size_t i = 0; i < count_; ++i) {
      const entry& e = lines_[i];
      const auto same = [&](std::size_t other, std::size_t offset) {
        return other < count_ && lines_[other].offset == offset && lines_[other].k == e.k;
      };
      const bool of_many = same(i - 1, e.offset - change_line) || same(i + 1, e.offset + change_line);
      to(e.offset, e.l, of_many ? kind::data : e.k);
    }
    count_ = 0;
  }

 private:
  struct entry {
    std::size_t offset = 0;
    kind k = kind::data;
    changed_line l;
  };
  std::array<entry, page / change_line> lines_;
  std::size_t count_ = 0;
};

/// The bytes of an aligned word that `mask` names, in one store: whoever polls a number there never sees half
/// of it, and what others write beside them stays.
void store_word(std::byte* to, std::uint64_t value, std::uint8_t mask) {
  auto* word = reinterpret_cast<std::uint64_t*>(to);
  if (mask == 0xff) return __atomic_store_n(word, value, __ATOMIC_RELAXED);
  const std::uint64_t bits = bytes_of(mask);
  std::uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, (old & ~bits) | value, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

/// Of a line at the end of a block, or of one that is not aligned.
void store_bytes(std::byte* to, const std::byte* line, std::uint64_t mask) {
  for (; mask; mask &= mask - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(mask));
    to[i] = line[i];
  }
}

/// The bytes that the mask names into memory that others may read and write meanwhile; `size`: of the line.
void store_among_others(std::byte* to, const std::byte* line, std::uint64_t mask, std::size_t size) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(to) % word_size == 0;
  for (std::size_t at = 0; at < change_line; at += word_size) {
    const auto here = static_cast<std::uint8_t>(mask >> at);
    if (!here) continue;
    if (aligned && at + word_size <= size) {
      store_word(to + at, load_word(line + at), here);
    } else {
      store_bytes(to + at, line + at, here);
    }
  }
}

/// The bytes that the mask names, given one behind the other, into memory and what is known of it.
void store_masked(const change_target& to, std::size_t offset, std::uint64_t mask, const std::byte* from) {
  const line_work& work = best_line_work();
  std::array<std::byte, change_line> line;
  work.put(from, mask, line.data());
  const std::size_t size = std::min(change_line, to.memory.size() - offset);
  const bool whole = size == change_line;
  // All of the line there before the other: stores in between would be waited for by those among others.
  std::byte* const memory = to.memory.data() + offset;
  if (!to.shadow.empty()) {
    std::byte* const shadow = to.shadow.data() + offset;
    whole ? work.store(line.data(), mask, shadow) : store_bytes(shadow, line.data(), mask);
  }
  if (whole && to.alone) return work.store(line.data(), mask, memory);
  store_among_others(memory, line.data(), mask, size);
}

/// One line of a run into its place. False: it leaves the block.
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
  store_masked(to, offset, mask, bytes.data());
  return true;
}

enum class pass { whole, masked, last };

void pass_by(wire::reader& from, bool masked) {
  from.bytes(masked ? static_cast<std::uint64_t>(std::popcount(from.get<std::uint64_t>())) : change_line);
}

/// Lines that a list names more than once, because memory was gone over while somebody wrote it: what is
/// whole is stored first, so bytes of an earlier look must not come over it.
class whole_again {
 public:
  void next_run(std::uint64_t address, std::uint32_t lines) {
    again_ |= address < end_;
    end_ = address + std::uint64_t{lines} * change_line;
  }
  /// In the run at this place of the list. Only what does not ascend can name a line again.
  void stored(std::uint64_t line, std::size_t run) {
    if (again_) runs_[line] = run;
  }
  bool behind(std::uint64_t line, std::size_t run) const {
    if (runs_.empty()) return false;
    const auto found = runs_.find(line);
    return found != runs_.end() && found->second > run;
  }

 private:
  std::unordered_map<std::uint64_t, std::size_t> runs_;  // by line, the last that has it whole
  std::uint64_t end_ = 0;
  bool again_ = false;
};

/// Stores the lines of one pass, and looks at all.
bool apply_runs(std::span<const std::byte> changes, pass now, std::span<const std::uint64_t> last,
                whole_again& again,
                const std::function<std::optional<change_target>(std::uint64_t)>& target) {
  wire::reader from(changes);
  while (!from.rest().empty()) {
    const std::size_t run = changes.size() - from.rest().size();
    const auto address = from.get<std::uint64_t>();
    const auto lines = from.get<std::uint32_t>();
    const bool masked = from.flag();
    if (!from.ok() || lines == 0) return false;
    const auto to = target(address);
    if (!to) return false;
    if (now == pass::whole) again.next_run(address, lines);
    for (std::uint32_t i = 0; to->gone && i < lines && from.ok(); ++i) pass_by(from, masked);
    for (std::uint32_t i = 0; !to->gone && i < lines; ++i) {
      const std::size_t offset = std::size_t{i} * change_line;
      const std::uint64_t line = address + offset;
      const pass its = holds_one_of(last, line) ? pass::last : masked ? pass::masked : pass::whole;
      const bool store = its == now && !(now == pass::masked && again.behind(line, run));
      if (!apply_line(from, masked, *to, offset, store)) return false;
      if (store && now == pass::whole) again.stored(line, run);
    }
  }
  return from.ok();
}

}  // namespace

void append_words(late_words& late, std::vector<std::byte>& changes) {
  for (const late_words::word& w : late.take()) run_writer(changes, w.line).add(0, w.change);
}

std::size_t find_changes(std::uint64_t address, std::span<const std::byte> memory,
                         std::span<std::byte> shadow, std::size_t from, std::size_t most, std::size_t budget,
                         std::vector<std::byte>& out, const address_watch& watch, late_words* late) {
  const line_work& work = best_line_work();
  run_writer writer(out, address);
  page_of_lines changed;
  const auto write = [&](std::size_t offset, const changed_line& l, kind k) {
    const auto goes = late ? late->put(address + offset, k, l) : late_words::place::now;
    if (goes == late_words::place::another_time) return;
    if (goes == late_words::place::now) writer.add(offset, l);
    find_addresses(std::span(l.bytes).first(l.size), sizeof(std::uint64_t), watch);
    std::memcpy(shadow.data() + offset, l.bytes.data(), l.size);
  };
  const auto written = [&] { return out.size() + (late ? late->size() : 0); };
  const std::size_t limit = written() + most;
  const std::size_t end = memory.size() - from > budget ? from + budget / page * page : memory.size();
  std::size_t at = from;
  while (at < end && written() < limit) {
    const std::size_t here = std::min(page - at % page, end - at);
    if (std::memcmp(memory.data() + at, shadow.data() + at, here) == 0) {
      at += here;
      continue;
    }
    for (const std::size_t stop = at + here; at < stop; at += change_line) {
      const std::size_t size = std::min(change_line, stop - at);
      changed_line& l = changed.next();
      read_line(work, memory.data() + at, shadow.data() + at, size, l);
      if (l.mask) changed.keep(at, kind_of(l, shadow.data() + at));
    }
    changed.write(write);
    at = std::min(at, end);
  }
  return at;
}

void for_each_run(std::span<const std::byte> changes,
                  const std::function<void(std::uint64_t, std::uint32_t)>& tell) {
  wire::reader from(changes);
  while (!from.rest().empty()) {
    const auto address = from.get<std::uint64_t>();
    const auto lines = from.get<std::uint32_t>();
    const bool masked = from.flag();
    for (std::uint32_t i = 0; i < lines && from.ok(); ++i) pass_by(from, masked);
    if (!from.ok()) return;
    tell(address, lines);
  }
}

bool apply_changes(std::span<const std::byte> changes,
                   const std::function<std::optional<change_target>(std::uint64_t)>& target,
                   std::span<const std::uint64_t> last) {
  // Who polls a flag finds what it stands for: flags are words that changed alone, the rest comes first.
  // Other processors than x86 would reorder the stores.
  whole_again again;
  for (const pass now : {pass::whole, pass::masked, pass::last}) {
    if (now == pass::last && last.empty()) break;
    if (!apply_runs(changes, now, last, again, target)) return false;
    std::atomic_thread_fence(std::memory_order_release);
  }
  return true;
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
    bool any = false;  // most bytes hold none: first only whether
    for (std::size_t i = at; i <= end; i += stride) any |= word_at(i) - watch.low < watch.size;
    for (std::size_t i = at; any && i <= end; i += stride) {
      if (word_at(i) - watch.low < watch.size) watch.noted->push_back(word_at(i));
    }
  }
}

}  // namespace outboard::marshal
