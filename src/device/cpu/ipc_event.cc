#include "device/cpu/ipc_event.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <new>
#include <string>

#include "base/random.hh"
#include "base/sealed_file.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t file_size = 4096;
constexpr timespec patience{0, 100'000'000};

/// In place of a process in a handle: the descriptor is this one's, which another has sent.
constexpr std::int32_t received = 0;

struct name {
  std::array<char, 8> mark{'o', 'b', 'e', 'v', 'e', 'n', 't', '1'};
  std::int32_t process = 0, descriptor = 0;
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 32> zeros{};
};
static_assert(sizeof(name) == sizeof(CUipcEventHandle));

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

/// In place of the process of the last recording: it could not lock its byte (no memory for locks, or another
/// process holds that byte), so that nobody can see whether it lives.
constexpr std::int32_t unknown = 0;

/// A byte of the file for each process: numbers of processes are positive.
struct flock byte_of(std::int32_t process, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = process;
  lock.l_len = 1;
  return lock;
}

}  // namespace

bool ipc_event::map() {
  mapping_ = shared_mapping::of(file_.get(), file_size);
  return mapping_.begin() != 0;
}

std::shared_ptr<ipc_event> ipc_event::make() {
  std::shared_ptr<ipc_event> made(new ipc_event);
  made->file_ = make_shared_file(file_size, "outboard-shared-event");
  if (!made->file_ || !made->map()) return nullptr;
  auto* fresh = new (&made->page()) struct page;
  fill_random(std::as_writable_bytes(std::span(fresh->key)));
  return made;
}

std::shared_ptr<ipc_event> ipc_event::open(const CUipcEventHandle& handle, bool& own) {
  name n;
  std::memcpy(static_cast<void*>(&n), &handle, sizeof n);
  if (n.mark != name{}.mark || n.zeros != name{}.zeros || n.process < received || n.descriptor < 0)
    return nullptr;
  own = n.process == ::getpid();
  const std::string process = n.process == received ? "self" : std::to_string(n.process);
  const std::string path = "/proc/" + process + "/fd/" + std::to_string(n.descriptor);
  std::shared_ptr<ipc_event> made(new ipc_event);
  made->file_ = unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!made->file_ || size_of_sealed_file(made->file_.get()) != file_size || !made->map()) return nullptr;
  return made->page().key == n.key ? made : nullptr;
}

CUipcEventHandle ipc_event::handle() const {
  name n;
  n.process = ::getpid();
  n.descriptor = file_.get();
  n.key = page().key;
  CUipcEventHandle out;
  std::memcpy(&out, &n, sizeof out);
  return out;
}

int ipc_event::descriptor_of(const CUipcEventHandle& handle) {
  name n;
  std::memcpy(static_cast<void*>(&n), &handle, sizeof n);
  return n.mark == name{}.mark && n.process == ::getpid() ? n.descriptor : -1;
}

CUipcEventHandle ipc_event::received_with(const CUipcEventHandle& handle, int descriptor) {
  name n;
  std::memcpy(static_cast<void*>(&n), &handle, sizeof n);
  n.process = received;
  n.descriptor = descriptor;
  CUipcEventHandle out;
  std::memcpy(&out, &n, sizeof out);
  return out;
}

/// A worker that is locked in cannot ask whether another process is there; a lock on the file goes with it.
bool ipc_event::is_gone(std::int32_t process) const {
  if (process <= unknown || process == ::getpid()) return false;
  struct flock lock = byte_of(process, F_WRLCK);
  return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool ipc_event::lock_own_byte() {
  if (locked_.load(std::memory_order_relaxed)) return true;
  struct flock lock = byte_of(::getpid(), F_RDLCK);
  const bool locked = ::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
  if (locked) locked_.store(true, std::memory_order_relaxed);
  return locked;
}

std::uint64_t ipc_event::begin() {
  page().recorder.store(lock_own_byte() ? ::getpid() : unknown);
  return page().recorded.fetch_add(1) + 1;
}

void ipc_event::finish(std::uint64_t number) {
  std::uint64_t seen = page().finished.load();
  while (seen < number && !page().finished.compare_exchange_weak(seen, number)) {
  }
  page().changed.fetch_add(1);
  futex(page().changed, FUTEX_WAKE, ~0u >> 1, nullptr);
}

bool ipc_event::done(std::uint64_t number) const {
  return page().finished.load(std::memory_order_acquire) >= number;
}

void ipc_event::await(std::uint64_t number, const std::function<bool()>& given_up) {
  while (!done(number)) {
    const std::uint32_t seen = page().changed.load();
    if (done(number) || given_up()) return;
    if (is_gone(page().recorder.load())) return finish(number);
    futex(page().changed, FUTEX_WAIT, seen, &patience);
  }
}

}  // namespace outboard::device::cpu
