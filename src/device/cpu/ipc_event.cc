#include "device/cpu/ipc_event.hh"
#include "base/sealed_file.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <new>
#include <string>

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t file_size = 4096;
constexpr timespec patience{0, 100'000'000};

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

std::string path_of(std::int32_t process, std::int32_t descriptor) {
  const std::string whose = process == 0 ? "self" : std::to_string(process);
  return "/proc/" + whose + "/fd/" + std::to_string(descriptor);
}

unique_fd open_file(std::int32_t process, std::int32_t descriptor) {
  return unique_fd(::open(path_of(process, descriptor).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
}

/// The byte of the file that stands for a process. The kernel releases its lock when the process ends.
struct flock byte_of(std::int32_t process, short kind) {
  struct flock place {};
  place.l_type = kind;
  place.l_whence = SEEK_SET;
  place.l_start = process;
  place.l_len = 1;
  return place;
}

}  // namespace

bool ipc_event::map() {
  presence_ = open_file(0, file_.get());
  mapping_ = shared_mapping::of(file_.get(), file_size);
  return presence_ && mapping_.begin() != 0;
}

/// By its lock, because a confined process can ask nothing about others.
bool ipc_event::is_gone(std::int32_t process) const {
  if (process <= 0 || process == ::getpid()) return false;
  struct flock place = byte_of(process, F_WRLCK);
  return ::fcntl(presence_.get(), F_OFD_GETLK, &place) == 0 && place.l_type == F_UNLCK;
}

std::shared_ptr<ipc_event> ipc_event::make() {
  std::shared_ptr<ipc_event> made(new ipc_event);
  made->file_ = make_shared_file(file_size, "outboard-shared-event");
  if (!made->file_ || !made->map()) return nullptr;
  auto* fresh = new (&made->page()) struct page;
  if (::getrandom(fresh->key.data(), fresh->key.size(), 0) != static_cast<ssize_t>(fresh->key.size()))
    return nullptr;
  return made;
}

std::shared_ptr<ipc_event> ipc_event::open(const CUipcEventHandle& handle, bool& own) {
  name n;
  std::memcpy(static_cast<void*>(&n), &handle, sizeof n);
  if (n.mark != name{}.mark || n.zeros != name{}.zeros || n.process < 0 || n.descriptor < 0) return nullptr;
  own = n.process == ::getpid();
  std::shared_ptr<ipc_event> made(new ipc_event);
  made->file_ = open_file(n.process, n.descriptor);
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

CUipcEventHandle ipc_event::with_descriptor(const CUipcEventHandle& handle, int descriptor) {
  name n;
  std::memcpy(static_cast<void*>(&n), &handle, sizeof n);
  n.process = 0;
  n.descriptor = descriptor;
  CUipcEventHandle received;
  std::memcpy(&received, &n, sizeof received);
  return received;
}

std::uint64_t ipc_event::begin() {
  // Shared, because this process may have opened the event twice.
  struct flock place = byte_of(::getpid(), F_RDLCK);
  ::fcntl(presence_.get(), F_OFD_SETLK, &place);
  page().recorder.store(::getpid());
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
