#include "frontend/memory/mirrors.hh"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend {
namespace {

/// Words that are remembered.
constexpr std::size_t most_words = 1024, most_lively = 64;
static_assert(most_lively <= marshal::memory_question::most_places);
constexpr std::size_t no_budget = ~std::size_t{0} >> 1;

void drop_shadow(const mirror& m) { ::munmap(m.shadow, m.size); }

}  // namespace

void join(std::vector<byte_range>& ranges, byte_range part) {
  auto first = std::ranges::find_if(ranges, [&](const byte_range& r) { return r.end >= part.begin; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= part.end; ++last) {
    part.begin = std::min(part.begin, last->begin);
    part.end = std::max(part.end, last->end);
  }
  ranges.insert(ranges.erase(first, last), part);
}

bool mirrors::add(mirror made) {
  void* shadow =
      ::mmap(nullptr, made.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shadow == MAP_FAILED) return false;
  ::madvise(shadow, made.size, MADV_DONTFORK);
  made.shadow = static_cast<std::byte*>(shadow);
  const std::lock_guard lock(mutex_);
  if (!mirrors_.emplace(made.base, made).second) return drop_shadow(made), true;  // another thread's
  count(made.kernels ? 1 : 0);
  return true;
}

std::optional<mirror> mirrors::remove(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return std::nullopt;
  set_lazy(found->second, false);
  const mirror gone = found->second;
  drop_shadow(gone);
  mirrors_.erase(found);
  count(gone.kernels ? -1 : 0);
  return gone;
}

std::vector<mirror> mirrors::remove_context(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::vector<mirror> gone;
  for (auto m = mirrors_.begin(); m != mirrors_.end();) {
    if (m->second.context != context) {
      ++m;
      continue;
    }
    set_lazy(m->second, false);
    gone.push_back(m->second);
    drop_shadow(m->second);
    m = mirrors_.erase(m);
  }
  contexts_at_work_.erase(context);
  working_.store(!contexts_at_work_.empty(), std::memory_order_release);
  count(-std::ranges::count_if(gone, &mirror::kernels));
  return gone;
}

/// With the lock. `more`: of those that kernels know.
void mirrors::count(std::ptrdiff_t more) {
  for_kernels_.fetch_add(static_cast<std::size_t>(more), std::memory_order_acq_rel);
  count_.store(mirrors_.size(), std::memory_order_release);
  const auto live = std::ranges::count_if(mirrors_, [](const auto& m) { return m.second.live; });
  live_.store(static_cast<std::size_t>(live), std::memory_order_release);
}

/// With the lock.
void mirrors::set_lazy(mirror& m, bool lazy) {
  lazy_ += std::size_t{lazy} - std::size_t{m.lazy};
  m.lazy = lazy;
}

void mirrors::add_part(std::uint64_t base, byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end() || found->second.kernels) return;
  mirror& m = found->second;
  part.begin = part.begin / marshal::change_line * marshal::change_line;
  part.end =
      std::min(m.size, (part.end + marshal::change_line - 1) / marshal::change_line * marshal::change_line);
  join(m.parts, part);
}

void mirrors::show_to_kernels(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end() || found->second.kernels) return;
  found->second.kernels = true;
  found->second.parts.clear();
  count(1);
}

/// What is to be looked at; nothing: all of every block. With the lock.
std::optional<std::vector<marshal::address_range>> mirrors::ranges() const {
  if (lazy_ == 0 && for_kernels_.load(std::memory_order_relaxed) == mirrors_.size()) return std::nullopt;
  std::vector<marshal::address_range> some;
  for (const auto& [base, m] : mirrors_) {
    const bool whole = m.kernels && !m.lazy;
    if (whole) some.push_back({base, base + m.size});
    for (const byte_range& part : m.kernels ? m.windows : m.parts) {
      if (!whole) some.push_back({base + part.begin, base + part.end});
    }
  }
  if (some.size() > marshal::max_ranges) return std::nullopt;
  return some;
}

const mirror* mirrors::at(std::uint64_t address) const {
  auto after = mirrors_.upper_bound(address);
  if (after == mirrors_.begin()) return nullptr;
  const mirror& m = std::prev(after)->second;
  return address - m.base < m.size ? &m : nullptr;
}

std::optional<mirror> mirrors::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const mirror* found = at(address);
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<mirror> mirrors::find_device(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const mirror* found = at_device(address);
  return found ? std::optional(*found) : std::nullopt;
}

/// With the lock.
const mirror* mirrors::at_device(std::uint64_t address) const {
  if (const mirror* same = at(address); same && same->device_address == same->base) return same;
  for (const auto& [base, m] : mirrors_) {  // registered memory elsewhere: rare and few
    if (address - m.device_address < m.size) return &m;
  }
  return nullptr;
}

/// Late words go with the last part, behind everything that they may stand for.
CUresult mirrors::send_part(session& server, lane& own, std::uint64_t context, bool last) {
  if (last || late_.size() >= marshal::most_late_changes) append_words(late_, changes_);
  if (changes_.empty()) return CUDA_SUCCESS;
  const CUresult code = server.post(
      {static_cast<std::uint32_t>(marshal::service::memory_update), own.id, context, {}, changes_});
  changes_.clear();
  return code;
}

/// What was never written is not read either: that would make pages of it.
CUresult mirrors::compare(session& server, lane& own, std::uint64_t context, mirror& m, byte_range part) {
  if (m.file < 0) return compare_all(server, own, context, m, part);
  const auto end = static_cast<off_t>(m.base + part.end);
  for (auto at = static_cast<off_t>(m.base + part.begin); at < end;) {
    const off_t begin = ::lseek(m.file, at, SEEK_DATA);
    if (begin < 0 || begin >= end) break;
    const off_t hole = ::lseek(m.file, begin, SEEK_HOLE);
    at = hole < 0 ? end : std::min(hole, end);
    const byte_range data{static_cast<std::uint64_t>(begin) - m.base,
                          static_cast<std::uint64_t>(at) - m.base};
    if (const CUresult code = compare_all(server, own, context, m, data); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult mirrors::compare_all(session& server, lane& own, std::uint64_t context, mirror& m, byte_range part) {
  const marshal::address_watch managed{managed_low_, managed_size_, &managed_noted_};
  const marshal::address_watch watch{watched_low_, watched_size_, &noted_, &managed};
  const std::span memory(m.bytes() + part.begin, part.end - part.begin);
  const std::span shadow(m.shadow + part.begin, part.end - part.begin);
  for (std::size_t done = 0; done < memory.size();) {
    const std::size_t room =
        marshal::most_changes - std::min(marshal::most_changes, changes_.size() + late_.size());
    done = marshal::find_changes(m.base + part.begin, memory, shadow, done, room, no_budget, changes_, watch,
                                 &late_);
    if (changes_.size() + late_.size() < marshal::most_changes) continue;
    if (const CUresult code = send_part(server, own, context, false); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

template <class Parts>
CUresult mirrors::collect(session& server, lane& own, std::uint64_t context, bool at_work,
                          const Parts& parts_of) {
  changes_.clear();
  at_work ? late_.begin_looks() : late_.begin();
  do {
    for (auto& [base, m] : mirrors_) {
      for (const byte_range part : parts_of(m)) {
        if (const CUresult code = compare(server, own, context, m, part); code != CUDA_SUCCESS) return code;
      }
    }
  } while (late_.another_look());
  return CUDA_SUCCESS;
}

CUresult mirrors::send(session& server, lane& own, bool at_work, bool to_kernels_alone) {
  using parts = std::span<const byte_range>;
  const std::lock_guard lock(mutex_);
  const std::uint64_t context = own.context_handle();
  byte_range all;
  const CUresult code = collect(server, own, context, at_work, [&](const mirror& m) {
    if (to_kernels_alone && !m.kernels) return parts();
    all = {0, m.size};
    if (m.kernels && !m.settled) return parts(&all, 1);
    if (m.left.empty()) return parts(m.kernels ? m.windows : m.parts);
    compared_ = m.windows;
    for (const byte_range& part : m.left) join(compared_, part);
    return parts(compared_);
  });
  if (code != CUDA_SUCCESS) return code;
  for (auto& [base, m] : mirrors_) {
    if (!m.kernels && to_kernels_alone) continue;
    m.settled = m.shut;
    m.left.clear();
  }
  return send_part(server, own, context, true);
}

CUresult mirrors::send_range(session& server, lane& own, std::uint64_t context, std::uint64_t base,
                             byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return CUDA_SUCCESS;
  changes_.clear();
  late_.begin();
  const CUresult code = compare(server, own, context, found->second, part);
  return code == CUDA_SUCCESS ? send_part(server, own, context, true) : code;
}

CUresult mirrors::fetch(session& server, lane& own, bool at_work) {
  if (!fetch_needed()) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  const auto only = ranges();
  if (only && only->empty()) return CUDA_SUCCESS;
  own.how = answered::waited;
  return fetch_from(server, own, own.context_handle(), {},
                    only ? *only : std::span<const marshal::address_range>(),
                    at_work ? look::told_at_work : look::told);
}

CUresult mirrors::fetch_range(session& server, lane& own, std::uint64_t context, std::uint64_t base,
                              byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return CUDA_SUCCESS;
  const std::uint64_t end = part.end ? part.end : found->second.size;
  return fetch_from(server, own, context, {base, part.begin, base + end}, {});
}

CUresult mirrors::exchange(session& server, lane& own, std::uint64_t context, bool all, bool& moved) {
  const std::lock_guard lock(mutex_);
  if (all || lively_changed()) {
    if (const CUresult code = send_live(server, own, context, moved); code != CUDA_SUCCESS) return code;
  }
  if (!all && lively_.empty()) return CUDA_SUCCESS;
  std::vector<marshal::address_range> looked;
  for (const auto& [base, m] : mirrors_) {
    if (!m.live) continue;
    if (m.kernels) looked.push_back({base, base + m.size});
    for (const byte_range& part : m.parts) looked.push_back({base + part.begin, base + part.end});
  }
  own.how = answered::waited;
  for (std::span<const marshal::address_range> left = looked; !left.empty();) {
    const auto some = left.first(std::min(left.size(), marshal::max_ranges));
    left = left.subspan(some.size());
    const look how = all ? look::at_all : look::at_lively;
    const CUresult code = fetch_from(server, own, context, {}, some, how, &moved);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult mirrors::send_live(session& server, lane& own, std::uint64_t context, bool& moved) {
  using parts = std::span<const byte_range>;
  byte_range all;
  const CUresult code = collect(server, own, context, true, [&](const mirror& m) {
    all = {0, m.size};
    return !m.live ? parts() : m.kernels ? parts(&all, 1) : parts(m.parts);
  });
  if (code != CUDA_SUCCESS) return code;
  moved |= late_.any();
  for (const std::uint64_t line : late_.lines()) note_lively(line);
  return send_part(server, own, context, true);
}

bool mirrors::lively_changed() {
  return std::ranges::any_of(lively_, [&](std::uint64_t line) {
    const mirror* m = at(line);
    if (!m || !m->live) return false;
    const std::uint64_t offset = line - m->base;
    const std::size_t size = std::min<std::size_t>(marshal::change_line, m->size - offset);
    return std::memcmp(m->bytes() + offset, m->shadow + offset, size) != 0;
  });
}

/// Words that change do so again.
void mirrors::note_lively(std::uint64_t line) {
  std::erase(lively_, line);
  if (lively_.size() == most_lively) lively_.erase(lively_.begin());
  lively_.push_back(line);
}

void mirrors::name_word(std::uint64_t device_address) {
  const std::lock_guard lock(mutex_);
  const mirror* m = at_device(device_address);
  if (!m) return;
  const std::uint64_t word = m->base + (device_address - m->device_address);
  const auto place = std::ranges::lower_bound(words_, word);
  if (place != words_.end() && *place == word) return;
  if (words_.size() == most_words) words_.clear();
  words_.insert(std::ranges::lower_bound(words_, word), word);
  late_.name(words_);
  const std::uint64_t line = word / marshal::change_line * marshal::change_line;
  if (std::ranges::find(lively_, line) == lively_.end() && lively_.size() < most_lively)
    lively_.push_back(line);
}

CUresult mirrors::fetch_from(session& server, lane& own, std::uint64_t context, marshal::fetch_body next,
                             std::span<const marshal::address_range> only, look how, bool* moved) {
  const std::uint64_t asked_end = next.end;
  do {
    const bool watch = how == look::at_all || how == look::at_lively;
    const auto asked = watch                       ? marshal::service::memory_watch
                       : how == look::told_at_work ? marshal::service::memory_fetch_live
                                                   : marshal::service::memory_fetch;
    request_.clear();
    wire::writer w(request_);
    if (watch) {
      const std::span<const std::uint64_t> places(lively_.data(),
                                                  how == look::at_lively ? lively_.size() : 0);
      w.put(static_cast<std::uint32_t>(places.size()));
      for (const std::uint64_t line : places)
        marshal::put_body(w, marshal::address_range{line, line + marshal::change_line});
    }
    marshal::put_body(w, next);
    if (next.end == 0) {
      for (const marshal::address_range& r : only) marshal::put_body(w, r);
    }
    const CUresult code =
        server.call({static_cast<std::uint32_t>(asked), own.id, context, request_, {}}, reply_);
    if (code != CUDA_SUCCESS) return code;
    wire::reader from(reply_);
    next = marshal::take_body<marshal::fetch_body>(from);
    if (moved && !from.rest().empty()) {
      *moved = true;
      marshal::for_each_run(from.rest(), [&](std::uint64_t address, std::uint32_t lines) {
        constexpr std::uint32_t few = 4;  // what changes in larger pieces is data
        if (lines <= few) note_lively(address);
      });
    }
    if (how == look::at_lively)
      how = look::at_all;  // where something has changed the rest is looked at as well
    const auto target = [&](std::uint64_t address) -> std::optional<marshal::change_target> {
      const mirror* m = at(address);
      // The program may have given it up, of which the server has not heard yet.
      if (!m) return marshal::change_target{.memory = {}, .shadow = {}, .gone = true};
      const std::uint64_t offset = address - m->base;
      const auto left = static_cast<std::size_t>(m->size - offset);
      const std::uint64_t end = asked_end ? std::min(asked_end - m->base, m->size) : m->size;
      return marshal::change_target{
          {m->bytes() + offset, left}, {m->shadow + offset, left}, m->nobody_touches({offset, end})};
    };
    const bool applied = from.ok() && marshal::apply_changes(from.rest(), target, words_);
    if (!applied) return server.malformed_reply("a look at shared memory"), session::lost_code;
  } while (next.address != 0);
  return CUDA_SUCCESS;
}

void mirrors::shut(std::uint64_t base, bool lazy) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  mirror& m = found->second;
  m.shut = true;
  set_lazy(m, lazy);
  m.settled = false;
  m.windows.clear();
  m.left.clear();
}

void mirrors::open_window(std::uint64_t base, byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found != mirrors_.end()) join(found->second.windows, part);
}

void mirrors::fetch_window(session& server, lane& own, std::uint64_t base, byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  // What cannot be fetched (the session is lost) is not waited for either.
  (void)fetch_from(server, own, found->second.context, {base, part.begin, base + part.end}, {});
  join(found->second.windows, part);
}

void mirrors::close_windows(std::uint64_t base, bool lazy) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  mirror& m = found->second;
  set_lazy(m, lazy);
  for (const byte_range& part : m.windows) join(m.left, part);
  m.windows.clear();
}

void mirrors::unshut(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  mirror& m = found->second;
  m.shut = m.settled = false;
  set_lazy(m, false);
  m.windows.clear();
  m.left.clear();
}

void mirrors::work_begins(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  contexts_at_work_.insert(context);
  work_mark_.fetch_add(1, std::memory_order_relaxed);
  working_.store(true, std::memory_order_release);
}

void mirrors::work_is_done(std::uint64_t context, std::uint64_t mark) {
  const std::lock_guard lock(mutex_);
  if (work_mark_.load(std::memory_order_relaxed) != mark) return;
  contexts_at_work_.erase(context);
  working_.store(!contexts_at_work_.empty(), std::memory_order_release);
}

void mirrors::forget_common() {
  const std::lock_guard lock(mutex_);
  for (auto& [base, m] : mirrors_) {
    ::madvise(m.shadow, m.size, MADV_DONTNEED);
    m.settled = false;
  }
}

void mirrors::watch(std::uint64_t low, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  watched_low_ = low;
  watched_size_ = size;
}

std::vector<std::uint64_t> mirrors::take_noted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(noted_, {});
}

void mirrors::watch_managed(std::uint64_t low, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  managed_low_ = low;
  managed_size_ = size;
}

std::vector<std::uint64_t> mirrors::take_managed_noted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(managed_noted_, {});
}

}  // namespace outboard::frontend
