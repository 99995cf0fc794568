#include "frontend/cuda/memory/mirrors.hh"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "frontend/cuda/typed_opcode.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend {
namespace {

/// Bytes of one frame of changes: well below the largest, because a page of output may come on top.
constexpr std::size_t frame_bytes = 8u << 20;
constexpr std::size_t no_budget = ~std::size_t{0} >> 1;

void drop_shadow(const mirror& m) { ::munmap(m.shadow, m.size); }

}  // namespace

bool mirrors::add(mirror made) {
  void* shadow =
      ::mmap(nullptr, made.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shadow == MAP_FAILED) return false;
  ::madvise(shadow, made.size, MADV_DONTFORK);
  made.shadow = static_cast<std::byte*>(shadow);
  const std::lock_guard lock(mutex_);
  if (!mirrors_.emplace(made.base, made).second) return drop_shadow(made), true;  // another thread's
  count_.store(mirrors_.size(), std::memory_order_release);
  return true;
}

std::optional<mirror> mirrors::remove(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return std::nullopt;
  const mirror gone = found->second;
  drop_shadow(gone);
  mirrors_.erase(found);
  count_.store(mirrors_.size(), std::memory_order_release);
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
    gone.push_back(m->second);
    drop_shadow(m->second);
    m = mirrors_.erase(m);
  }
  contexts_at_work_.erase(context);
  working_.store(!contexts_at_work_.empty(), std::memory_order_release);
  count_.store(mirrors_.size(), std::memory_order_release);
  return gone;
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
  if (const mirror* same = at(address); same && same->device_address == same->base) return *same;
  for (const auto& [base, m] : mirrors_) {  // registered memory elsewhere: rare and few
    if (address - m.device_address < m.size) return m;
  }
  return std::nullopt;
}

CUresult mirrors::send_part(session& server, lane& own, std::uint64_t context) {
  if (changes_.empty()) return CUDA_SUCCESS;
  const CUresult code =
      server.post(cuda::written<marshal::service::memory_update>(request_, own.id, context, {}, changes_));
  changes_.clear();
  return code;
}

/// Pages that were never written are not read, because reading would allocate them.
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
    const std::size_t room = frame_bytes - std::min(frame_bytes, changes_.size());
    done = marshal::find_changes(m.base + part.begin, memory, shadow, done, room, no_budget, changes_, watch);
    if (changes_.size() < frame_bytes) continue;
    if (const CUresult code = send_part(server, own, context); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult mirrors::send(session& server, lane& own) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t context = own.context_handle();
  changes_.clear();
  for (auto& [base, m] : mirrors_) {
    const byte_range all{0, m.size};
    for (const byte_range part : m.settled ? std::span<const byte_range>(m.windows) : std::span(&all, 1)) {
      if (const CUresult code = compare(server, own, context, m, part); code != CUDA_SUCCESS) return code;
    }
    m.settled = m.shut;
  }
  return send_part(server, own, context);
}

CUresult mirrors::send_range(session& server, lane& own, std::uint64_t context, std::uint64_t base,
                             byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return CUDA_SUCCESS;
  changes_.clear();
  const CUresult code = compare(server, own, context, found->second, part);
  return code == CUDA_SUCCESS ? send_part(server, own, context) : code;
}

CUresult mirrors::fetch(session& server, lane& own) {
  if (!fetch_needed()) return CUDA_SUCCESS;
  own.how = answered::waited;
  const std::lock_guard lock(mutex_);
  return fetch_from(server, own, own.context_handle(), {});
}

CUresult mirrors::fetch_range(session& server, lane& own, std::uint64_t context, std::uint64_t base,
                              byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return CUDA_SUCCESS;
  const std::uint64_t end = part.end ? part.end : found->second.size;
  return fetch_from(server, own, context, {base, part.begin, base + end});
}

CUresult mirrors::fetch_from(session& server, lane& own, std::uint64_t context, marshal::fetch_body next) {
  do {
    const CUresult code =
        server.call(cuda::written<marshal::service::memory_fetch>(request_, own.id, context, next), reply_);
    if (code != CUDA_SUCCESS) return code;
    wire::reader from(reply_);
    next = marshal::take_body<marshal::fetch_body>(from);
    const bool applied = from.ok() && marshal::apply_changes(from.rest(), [&](std::uint64_t address) {
                           const mirror* m = at(address);
                           using target = std::optional<marshal::change_target>;
                           if (!m) return target{};
                           const std::uint64_t offset = address - m->base;
                           const auto left = static_cast<std::size_t>(m->size - offset);
                           return target{{{m->bytes() + offset, left}, {m->shadow + offset, left}}};
                         });
    if (!applied) {
      server.malformed_reply("memory_fetch");
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
  } while (next.address != 0);
  return CUDA_SUCCESS;
}

void mirrors::shut(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  found->second.shut = true;
  found->second.settled = false;
  found->second.windows.clear();
}

void mirrors::open_window(std::uint64_t base, byte_range part) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  std::erase_if(found->second.windows,
                [&](const byte_range& w) { return w.begin >= part.begin && w.end <= part.end; });
  found->second.windows.push_back(part);
}

void mirrors::unshut(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = mirrors_.find(base);
  if (found == mirrors_.end()) return;
  found->second.shut = found->second.settled = false;
  found->second.windows.clear();
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
