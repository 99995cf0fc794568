#include "frontend/mirrors.hh"

#include <sys/mman.h>

#include "marshal/bodies.hh"
#include "marshal/memory_changes.hh"

namespace outboard::frontend {
namespace {

/// Of one frame of changes: well below the largest, because a page of output may come on top.
constexpr std::size_t frame_bytes = 8u << 20;
constexpr std::size_t no_budget = ~std::size_t{0} >> 1;

std::span<std::byte> bytes_at(std::uint64_t address, std::uint64_t size) {
  return {reinterpret_cast<std::byte*>(address), size};
}

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

CUresult mirrors::send_part(session& server, lane& own) {
  if (changes_.empty()) return CUDA_SUCCESS;
  const CUresult code = server.post({static_cast<std::uint32_t>(marshal::service::memory_update),
                                     own.id,
                                     own.context_handle(),
                                     {},
                                     changes_});
  changes_.clear();
  return code;
}

CUresult mirrors::send(session& server, lane& own) {
  const std::lock_guard lock(mutex_);
  const marshal::address_watch watch{watched_low_, watched_size_, &noted_};
  changes_.clear();
  for (auto& [base, m] : mirrors_) {
    const auto memory = bytes_at(m.base, m.size);
    const std::span shadow(m.shadow, m.size);
    for (std::size_t done = 0; done < m.size;) {
      const std::size_t room = frame_bytes - std::min(frame_bytes, changes_.size());
      done = marshal::find_changes(m.base, memory, shadow, done, room, no_budget, changes_, watch);
      if (changes_.size() < frame_bytes) continue;
      if (const CUresult code = send_part(server, own); code != CUDA_SUCCESS) return code;
    }
  }
  return send_part(server, own);
}

CUresult mirrors::fetch(session& server, lane& own) {
  if (!fetch_needed()) return CUDA_SUCCESS;
  own.how = answered::waited;
  const std::lock_guard lock(mutex_);
  marshal::fetch_body next;
  do {
    request_.clear();
    wire::writer w(request_);
    marshal::put_body(w, next);
    const CUresult code = server.call({static_cast<std::uint32_t>(marshal::service::memory_fetch),
                                       own.id,
                                       own.context_handle(),
                                       request_,
                                       {}},
                                      reply_);
    if (code != CUDA_SUCCESS) return code;
    wire::reader from(reply_);
    next = marshal::take_body<marshal::fetch_body>(from);
    const bool applied =
        from.ok() && marshal::apply_changes(from.rest(), [&](std::uint64_t address) {
          const mirror* m = at(address);
          using target = std::optional<marshal::change_target>;
          if (!m) return target{};
          const std::uint64_t offset = address - m->base;
          return target{{bytes_at(address, m->size - offset), {m->shadow + offset, m->size - offset}}};
        });
    if (!applied) return CUDA_ERROR_UNKNOWN;
  } while (next.address != 0);
  return CUDA_SUCCESS;
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
  for (auto& [base, m] : mirrors_) ::madvise(m.shadow, m.size, MADV_DONTNEED);
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

}  // namespace outboard::frontend
