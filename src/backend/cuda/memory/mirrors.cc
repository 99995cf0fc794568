#include "backend/cuda/memory/mirrors.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/memory/page_locks.hh"
#include "backend/cuda/relaxed_capture.hh"
#include "base/log.hh"
#include "base/pages.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

using marshal::host_block;

/// Of memory looked at for one reply: a worker must not be deaf for long.
constexpr std::size_t look_bytes = 256u << 20;
constexpr std::uint64_t most_addresses = 1ull << 47;
/// A place to go on from that is lower than any block.
constexpr marshal::fetch_body from_the_beginning{1, 0, 0};

bool takes(const marshal::device_facts& device, CUdevice_attribute id) {
  const auto at = static_cast<std::size_t>(id);
  return at < device.attributes.size() && device.attributes[at].value != 0;
}

std::byte* reserve_shadow(std::uint64_t size) {
  void* got =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

/// Fresh zero pages at the address, or elsewhere when that is allowed; nullptr: not to be had.
void* map_pages(std::uint64_t address, std::uint64_t size, bool exact, int file) {
  void* wanted = reinterpret_cast<void*>(address);
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* got = ::mmap(wanted, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, file, 0);
  if (got == wanted) return got;
  if (got != MAP_FAILED) ::munmap(got, size);  // a kernel older than 4.17
  if (exact) return nullptr;
  got = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
  return got == MAP_FAILED ? nullptr : got;
}

void* first_page(const mirrored& m) {
  return reinterpret_cast<void*>(page_down(reinterpret_cast<std::uint64_t>(m.memory)));
}

bool is_variable(const mirrored& m) { return m.kind == host_block::managed && !m.owned; }

}  // namespace

mirrors::~mirrors() {
  // The driver's part ends with the worker's process.
  for (const auto& [address, m] : blocks_) {
    if (m.shadow) ::munmap(m.shadow, m.size);
    if (m.mapped) ::munmap(first_page(m), m.mapped);
  }
}

void mirrors::open(const marshal::snapshot& facts) {
  one_memory_ = touch_while_busy_ = !facts.devices.empty();
  // Page-locked memory is the whole machine's loss: one session must leave something.
  most_pinned_ = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_size() / 4 * 3;
  for (const marshal::device_facts& device : facts.devices) {
    one_memory_ = one_memory_ && takes(device, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    touch_while_busy_ = touch_while_busy_ && takes(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  }
}

CUresult mirrors::page_lock(mirrored& m, bool exact, int file) {
  if (!admits_page_locked(m.size)) return CUDA_ERROR_OUT_OF_MEMORY;
  // The registration covers whole pages; the client's block may begin and end inside one.
  const std::uint64_t begin = page_down(m.address);
  const std::uint64_t end = page_up(m.address + m.size);
  void* memory = map_pages(begin, end - begin, exact, file);
  if (!memory) {
    log::warn("page-locked memory of a client at ", m.address, " (", m.size,
              " bytes) cannot be had at that address here");
    return CUDA_ERROR_MAP_FAILED;
  }
  const relaxed_capture relaxed(driver_);
  CUresult code = call_driver(driver_.cuMemHostRegister_v2, memory, end - begin,
                              CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  CUdeviceptr device = 0;
  if (code == CUDA_SUCCESS) {
    code = call_driver(driver_.cuMemHostGetDevicePointer_v2, &device, memory, 0);
    if (code == CUDA_SUCCESS && exact && device != begin) code = CUDA_ERROR_MAP_FAILED;
    if (code != CUDA_SUCCESS) return (void)give_back_page_locked(driver_, memory, end - begin), code;
  }
  if (code != CUDA_SUCCESS) return ::munmap(memory, end - begin), code;
  m.memory = static_cast<std::byte*>(memory) + (m.address - begin);
  m.device_address = device + (m.address - begin);
  m.mapped = end - begin;
  return CUDA_SUCCESS;
}

CUresult mirrors::check_managed(const mirrored& m) const {
  unsigned managed = 0;
  CUdeviceptr begin = 0, last = 0;
  const auto ask = [&](CUdeviceptr at, void* out, CUpointer_attribute what) {
    return call_driver(driver_.cuPointerGetAttribute, out, what, at);
  };
  if (ask(m.address, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED) != CUDA_SUCCESS || !managed) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Both ends in one allocation: then everything between is.
  if (ask(m.address, &begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) != CUDA_SUCCESS ||
      ask(m.address + m.size - 1, &last, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return begin == last ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mirrors::insert(mirrored made) {
  if (made.kind != host_block::shared) {
    made.shadow = reserve_shadow(made.size);
    if (!made.shadow) return release(made), CUDA_ERROR_OUT_OF_MEMORY;
  }
  const std::lock_guard lock(mutex_);
  (made.kind == host_block::managed ? managed_ : pinned_) += made.owned || made.mapped ? made.size : 0;
  if (made.owned) held_.add(made.device, made.size);
  if (made.shadow && made.kind != host_block::managed) in_use_.store(true, std::memory_order_relaxed);
  if (made.kind == host_block::managed) ++managed_blocks_;
  if (is_variable(made)) ++variables_;
  blocks_[made.address] = made;
  return CUDA_SUCCESS;
}

bool mirrors::vacant(std::uint64_t address, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  if (size == 0 || address == 0 || size > most_addresses || address > most_addresses - size) return false;
  const auto after = blocks_.lower_bound(address);
  if (after != blocks_.end() && after->first - address < size) return false;
  if (after == blocks_.begin()) return true;
  const mirrored& before = std::prev(after)->second;
  return address - before.address >= before.size;
}

CUresult mirrors::share(const marshal::host_share_body& wanted, std::uint64_t context, unique_fd& memory) {
  const auto file = std::make_shared<const unique_fd>(make_sealed_file(wanted.size, "outboard-pinned"));
  if (!*file) return CUDA_ERROR_OPERATING_SYSTEM;
  unique_fd theirs(::fcntl(file->get(), F_DUPFD_CLOEXEC, 0));
  if (!theirs) return CUDA_ERROR_OPERATING_SYSTEM;
  const CUresult code = share_file(wanted, context, file);
  if (code == CUDA_SUCCESS) memory = std::move(theirs);
  return code;
}

CUresult mirrors::share_again(const marshal::host_share_body& wanted, std::uint64_t context, unique_fd file) {
  const auto size = size_of_sealed_file(file.get());
  if (!size || *size < wanted.size) return CUDA_ERROR_INVALID_VALUE;
  return share_file(wanted, context, std::make_shared<const unique_fd>(std::move(file)));
}

CUresult mirrors::share_file(const marshal::host_share_body& wanted, std::uint64_t context,
                             std::shared_ptr<const unique_fd> file) {
  const std::lock_guard shape(shape_mutex_);
  if (!vacant(wanted.address, wanted.size) || wanted.address % page_size() || wanted.size % page_size()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  mirrored m;
  m.kind = host_block::shared;
  m.address = wanted.address;
  m.size = wanted.size;
  m.context = context;
  m.file = std::move(file);
  const CUresult code = page_lock(m, true, m.file->get());
  return code == CUDA_SUCCESS ? insert(m) : code;
}

CUresult mirrors::map(const marshal::host_map_body& wanted, std::uint64_t context, std::uint64_t ticket,
                      std::uint64_t& device_address) {
  const std::lock_guard shape(shape_mutex_);
  if (wanted.kind == host_block::shared || !vacant(wanted.address, wanted.size))
    return CUDA_ERROR_INVALID_VALUE;
  mirrored m;
  m.kind = wanted.kind;
  m.address = wanted.address;
  m.size = wanted.size;
  m.context = context;
  m.ticket = ticket;
  CUresult code = CUDA_SUCCESS;
  if (wanted.kind == host_block::managed) {
    code = check_managed(m);
    m.memory = reinterpret_cast<std::byte*>(m.address);
    m.device_address = m.address;
  } else {
    code = page_lock(m, wanted.kind == host_block::pinned);
    if (code == CUDA_SUCCESS && wanted.device_address && m.device_address != wanted.device_address) {
      release(m);
      code = CUDA_ERROR_MAP_FAILED;
    }
  }
  if (code == CUDA_SUCCESS) code = insert(m);
  if (code == CUDA_SUCCESS) device_address = m.device_address;
  return code;
}

CUresult mirrors::allocate_managed(const marshal::managed_body& wanted, std::int32_t device,
                                   std::uint64_t context, std::uint64_t ticket, std::uint64_t& address) {
  if (wanted.size == 0 || wanted.size > most_addresses) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t size = managed_size(wanted.size);
  CUdeviceptr got = 0;
  CUresult code = call_driver(driver_.cuMemAllocManaged, &got, size, wanted.flags);
  if (code != CUDA_SUCCESS) return code;
  mirrored m;
  m.kind = host_block::managed;
  m.address = m.device_address = got;
  m.size = size;
  m.memory = reinterpret_cast<std::byte*>(got);
  m.owned = true;
  m.flags = wanted.flags;
  m.context = context;
  m.ticket = ticket;
  m.device = device;
  if (wanted.address && wanted.address != got) {
    release(m);
    return CUDA_ERROR_MAP_FAILED;
  }
  const std::lock_guard shape(shape_mutex_);
  code = insert(m);
  if (code == CUDA_SUCCESS) address = got;
  return code;
}

void mirrors::release(const mirrored& m) {
  if (m.shadow) ::munmap(m.shadow, m.size);
  if (m.owned) {
    // It waits for all work, and keeps everybody else out of the driver meanwhile: also of work that waits
    // for a host function of the client, which may wait for a look at what kernels have changed.
    ++freeing_;
    const std::lock_guard nobody_reads(reading_);
    call_driver(driver_.cuMemFree_v2, m.address);
    --freeing_;
  }
  if (m.mapped) (void)give_back_page_locked(driver_, first_page(m), m.mapped);
}

bool mirrors::page_locked(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  return found != blocks_.end() && found->second.mapped != 0;
}

bool mirrors::drop(std::uint64_t address) { return drop(address, nullptr); }

/// `shadow`: only if it is still that block; nullptr: whatever block there is.
bool mirrors::drop(std::uint64_t address, const std::byte* shadow) {
  const std::lock_guard shape(shape_mutex_);
  mirrored gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || (shadow && found->second.shadow != shadow)) return false;
    gone = found->second;
    ++stores_;
    (gone.kind == host_block::managed ? managed_ : pinned_) -= gone.owned || gone.mapped ? gone.size : 0;
    if (gone.owned) held_.take(gone.device, gone.size);
    if (gone.kind == host_block::managed) --managed_blocks_;
    if (is_variable(gone)) --variables_;
    blocks_.erase(found);
  }
  release(gone);
  return true;
}

std::vector<mirrored> mirrors::variables() const {
  std::vector<mirrored> out;
  if (!has_variables()) return out;
  const std::lock_guard lock(mutex_);
  for (const auto& [address, m] : blocks_) {
    if (is_variable(m)) out.push_back(m);
  }
  return out;
}

void mirrors::drop_within(std::span<const marshal::address_range> going) {
  if (going.empty()) return;
  for (const mirrored& m : variables()) {
    const bool inside = std::ranges::any_of(going, [&](const marshal::address_range& r) {
      return m.address < r.end && r.begin < m.address + m.size;
    });
    if (inside) drop(m.address, m.shadow);
  }
}

void mirrors::drop_stale() {
  for (const mirrored& m : variables()) {
    if (check_managed(m) != CUDA_SUCCESS) drop(m.address, m.shadow);
  }
}

bool mirrors::allocated(std::uint64_t address) const {
  if (managed_blocks_.load() == 0) return false;
  const std::lock_guard lock(mutex_);
  const mirrored* const m = at(address);
  return m && m->owned;
}

void mirrors::drop_context(std::uint64_t context) {
  std::vector<std::uint64_t> gone;
  {
    const std::scoped_lock locks(mutex_, reading_);
    streams_.erase(context);  // it dies with the context
    for (const auto& [address, m] : blocks_) {
      if (m.context == context) gone.push_back(address);
    }
  }
  for (const std::uint64_t address : gone) drop(address);
}

/// Managed memory of a device of its own is read by the driver's copies: touching it would move its pages
/// here.
bool mirrors::by_hand(const mirrored& m) const { return m.kind != host_block::managed || one_memory_; }

/// The block in which an address lies. With the lock.
const mirrored* mirrors::at(std::uint64_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const mirrored& m = std::prev(after)->second;
  return address - m.address < m.size ? &m : nullptr;
}

CUresult mirrors::store(std::span<const std::byte> changes) {
  const std::lock_guard lock(mutex_);
  ++stores_;
  bool waited = touchable();
  const bool stored =
      marshal::apply_changes(changes, [&](std::uint64_t address) -> std::optional<marshal::change_target> {
        const mirrored* m = at(address);
        if (!m || !m->shadow) return std::nullopt;
        const std::uint64_t offset = address - m->address;
        if (m->kind == host_block::managed && !waited) {
          call_driver(driver_.cuCtxSynchronize);
          waited = true;
        }
        return marshal::change_target{{m->memory + offset, m->size - offset},
                                      {m->shadow + offset, m->size - offset}};
      });
  return stored ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// In a stream that waits for no other of the program's. But a driver puts copies of all streams one behind
/// the other into few queues, and one of them may wait for a host function of the client, or for a word, that
/// waits for what is asked here: CUDA_ERROR_NOT_READY, the copy stands behind such work, and `to` belongs to
/// the stream until it is done. Without the lock.
CUresult mirrors::read(std::uint64_t from, std::byte* to, std::size_t size, std::uint64_t context,
                       CUstream& stream) {
  constexpr std::chrono::milliseconds patience{20};
  stream = nullptr;
  std::unique_lock one(reading_, std::defer_lock);
  while (!one.try_lock()) {
    if (touch_while_busy_ && freeing_.load() != 0) return CUDA_ERROR_NOT_READY;
    std::this_thread::yield();
  }
  CUstream& own = streams_[context];
  CUresult code = own ? CUDA_SUCCESS : call_driver(driver_.cuStreamCreate, &own, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return code;
  // Still behind it, since another question.
  if (touch_while_busy_) code = call_driver(driver_.cuStreamQuery, own);
  if (code == CUDA_SUCCESS) code = call_driver(driver_.cuMemcpyDtoHAsync_v2, to, from, size, own);
  if (code != CUDA_SUCCESS) return code;
  if (!touch_while_busy_) return call_driver(driver_.cuStreamSynchronize, own);
  for (const auto end = std::chrono::steady_clock::now() + patience;;) {
    code = call_driver(driver_.cuStreamQuery, own);
    if (code != CUDA_ERROR_NOT_READY) return code;
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    } else {
      return stream = own, code;
    }
  }
}

bool mirrors::holds(const mirrored& m) const {
  const auto found = blocks_.find(m.address);
  return found != blocks_.end() && found->second.shadow == m.shadow;
}

CUresult mirrors::scan(std::unique_lock<std::mutex>& lock, const mirrored& m, std::size_t& at,
                       std::uint64_t context, finding& found) {
  const std::span shadow(m.shadow, m.size);
  const std::size_t room = marshal::most_changes - std::min(marshal::most_changes, found.bytes());
  const auto look_by_hand = [&] {
    at = marshal::find_changes(m.address, {m.memory, m.size}, shadow, at, room, look_bytes, found.changes, {},
                               &found.late);
    return CUDA_SUCCESS;
  };
  if (by_hand(m) || context == 0)
    return look_by_hand();  // without a context no kernel of the program can run
  const std::size_t size = std::min<std::size_t>(m.size - at, 4u << 20);
  const std::uint64_t stores = stores_;
  lock.unlock();
  const relaxed_capture relaxed(driver_);  // looking for a block asks for events
  const staging::block copy = staging_.take(size, context);
  CUstream behind = nullptr;
  const CUresult done =
      copy.data ? read(m.address + at, copy.data, size, context, behind) : CUDA_ERROR_OUT_OF_MEMORY;
  const bool by_ourselves = done == CUDA_ERROR_NOT_READY;
  // Without the lock: the driver may keep us out for as long as somebody frees.
  if (by_ourselves) behind ? staging_.give_back_after(copy, behind, false) : staging_.give_back(copy);
  lock.lock();
  if (by_ourselves) return holds(m) ? look_by_hand() : CUDA_SUCCESS;
  // What the client has changed meanwhile is not in the copy: it would be taken for a change of a kernel's.
  if (done == CUDA_SUCCESS && holds(m) && stores_ == stores) {
    at += marshal::find_changes(m.address + at, {copy.data, size}, shadow.subspan(at, size), 0, room,
                                look_bytes, found.changes, {}, &found.late);
  }
  if (copy.data) staging_.give_back(copy);
  return done;
}

CUresult mirrors::find(marshal::fetch_body& at, std::uint64_t context, std::vector<std::byte>& changes,
                       std::span<const marshal::address_range> only, bool live) {
  if (live) return find_live(at, context, changes, only);
  marshal::late_words late;
  finding found{changes, late};
  const CUresult code = find_once(at, context, found, only);
  append_words(late, changes);
  return code;
}

/// One look may take several questions; what it has found of words goes with the last reply.
CUresult mirrors::find_live(marshal::fetch_body& at, std::uint64_t context, std::vector<std::byte>& changes,
                            std::span<const marshal::address_range> only) {
  const std::lock_guard one(looking_);
  finding found{changes, late_};
  if (at.address == 0) late_.begin_looks();
  for (;;) {
    if (const CUresult code = find_once(at, context, found, only); code != CUDA_SUCCESS)
      return append_words(late_, changes), code;
    const bool again = at.address == 0 && late_.another_look();
    if (again) at = from_the_beginning;
    if (!again && (at.address == 0 || late_.size() >= marshal::most_late_changes))
      append_words(late_, changes);
    if (!again) return CUDA_SUCCESS;
  }
}

CUresult mirrors::find_once(marshal::fetch_body& at, std::uint64_t context, finding& found,
                            std::span<const marshal::address_range> only) {
  if (only.empty()) return find_in(at, context, found);
  const std::uint64_t reached = at.address + at.offset;
  at = {};
  for (const marshal::address_range& r : only) {
    if (r.end <= reached) continue;
    const std::uint64_t begin = std::max(reached, r.begin);
    marshal::fetch_body part{0, 0, r.end};
    {
      const std::lock_guard lock(mutex_);
      const mirrored* m = this->at(begin);
      if (!m) continue;  // it went with its context
      part.address = m->address, part.offset = begin - m->address;
    }
    if (const CUresult code = find_in(part, context, found); code != CUDA_SUCCESS) return code;
    if (part.address != 0) return at = {part.address, part.offset, 0}, CUDA_SUCCESS;
  }
  return CUDA_SUCCESS;
}

CUresult mirrors::find_in(marshal::fetch_body& at, std::uint64_t context, finding& found) {
  std::unique_lock lock(mutex_);
  std::size_t offset = blocks_.contains(at.address) ? at.offset : 0;
  std::uint64_t next = at.address;
  for (auto m = blocks_.lower_bound(next); m != blocks_.end(); m = blocks_.lower_bound(next), offset = 0) {
    mirrored block = m->second;
    next = block.address + 1;
    if (at.end && block.address >= at.end) break;
    if (!block.shadow) continue;
    if (offset > block.size || offset % marshal::change_line) return CUDA_ERROR_INVALID_VALUE;
    if (at.end) block.size = std::min(block.size, at.end - block.address);
    while (offset < block.size && holds(block)) {
      if (found.bytes() >= marshal::most_changes || found.looked >= look_bytes) {
        at = {block.address, offset, at.end};
        return CUDA_SUCCESS;
      }
      const std::size_t before = offset;
      const CUresult code = scan(lock, block, offset, context, found);
      if (code != CUDA_SUCCESS) return code;
      found.looked += offset - before;
    }
  }
  at = {};
  return CUDA_SUCCESS;
}

bool mirrors::moved(std::span<const marshal::address_range> places) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(places, [&](const marshal::address_range& place) {
    const mirrored* m = at(place.begin);
    if (!m || !m->shadow || !by_hand(*m) || place.end <= place.begin) return false;
    const std::uint64_t offset = place.begin - m->address;
    const std::size_t size = std::min(place.end - place.begin, m->size - offset);
    return std::memcmp(m->memory + offset, m->shadow + offset, size) != 0;
  });
}

CUresult mirrors::answer(marshal::memory_question& q, std::uint64_t context,
                         std::vector<std::byte>& changes) {
  const auto refused = static_cast<CUresult>(refused_.exchange(CUDA_SUCCESS));
  if (refused != CUDA_SUCCESS && q.at.address != 0) return refused;
  if (q.watch && !q.places.empty() && !moved(q.places)) return q.at = {}, CUDA_SUCCESS;
  const marshal::fetch_body from = q.at;
  const CUresult code = find(q.at, context, changes, q.only, q.live);
  if (code == CUDA_SUCCESS || changes.empty()) return code;
  // What was found before counts as sent: it goes, and the next question of this look is refused.
  refused_.store(code);
  q.at = from.address != 0 ? from : marshal::fetch_body{from_the_beginning.address, 0, from.end};
  return CUDA_SUCCESS;
}

std::uint64_t mirrors::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return pinned_;
}

bool mirrors::admits_page_locked(std::uint64_t size) const {
  const std::uint64_t held = pinned_bytes() + held_.of_host();
  return size <= most_pinned_ - std::min(most_pinned_, held);
}

std::uint64_t mirrors::managed_bytes() const {
  const std::lock_guard lock(mutex_);
  return managed_;
}

std::vector<mirrored> mirrors::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<mirrored> out;
  for (const auto& [address, m] : blocks_) {
    if (m.shadow && (m.owned || m.mapped)) out.push_back(m);  // the client asks again for what is shared
  }
  return out;
}

std::vector<mirrored> mirrors::shared() const {
  const std::lock_guard lock(mutex_);
  std::vector<mirrored> out;
  for (const auto& [address, m] : blocks_) {
    if (m.kind == host_block::shared) out.push_back(m);
  }
  return out;
}

}  // namespace outboard::backend
