#include "frontend/memory/page_gate.hh"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "transport/wakeup.hh"

namespace outboard::frontend {
namespace {

// By number: the headers of older systems lack them, and what the kernel has is asked when it runs.
constexpr std::uint64_t missing_in_shared_memory = 1 << 5;  // UFFD_FEATURE_MISSING_SHMEM
constexpr std::uint64_t minor_in_shared_memory = 1 << 10;   // UFFD_FEATURE_MINOR_SHMEM, Linux 5.14
constexpr std::uint64_t register_minor = 1 << 2;            // UFFDIO_REGISTER_MODE_MINOR
constexpr int user_mode_only = 1;                           // UFFD_USER_MODE_ONLY

/// A page lies in the file at its own address: neighbours in memory are neighbours in the file, and the
/// kernel joins their mappings.
constexpr std::uint64_t file_size = 1ull << 47;

/// Of which system calls are held as well if they may; only some users may ask for that.
unique_fd make_faults(bool& in_kernel_too) {
  for (const int only : {0, user_mode_only}) {
    unique_fd made(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | only)));
    if (made.get() < 0) continue;
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = missing_in_shared_memory | minor_in_shared_memory;
    if (::ioctl(made.get(), UFFDIO_API, &api) != 0) return {};
    in_kernel_too = only == 0;
    return made;
  }
  return {};
}

/// A file as large as the address space needs a limit that lets it grow; over it a signal would come.
bool may_grow() {
  rlimit most{};
  return ::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur == RLIM_INFINITY;
}

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

bool page_gate::possible() {
  static const bool known = page_gate().open();
  return known;
}

bool page_gate::open() {
  if (is_open()) return true;
  if (!may_grow()) return false;
  unique_fd faults = make_faults(in_kernel_too_);
  unique_fd memory(::memfd_create("outboard-managed", MFD_CLOEXEC));
  unique_fd wakes(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (faults.get() < 0 || memory.get() < 0 || wakes.get() < 0) return false;
  if (::ftruncate(memory.get(), static_cast<off_t>(file_size)) != 0) return false;
  faults_ = transport::out_of_the_way(std::move(faults));
  memory_ = transport::out_of_the_way(std::move(memory));
  wakes_ = transport::out_of_the_way(std::move(wakes));
  return true;
}

std::byte* page_gate::map(std::uint64_t address, std::uint64_t size) {
  const auto offset = static_cast<off_t>(address);
  constexpr int both = PROT_READ | PROT_WRITE;
  void* view = ::mmap(nullptr, size, both, MAP_SHARED | MAP_NORESERVE, memory_.get(), offset);
  if (view == MAP_FAILED) return nullptr;
  void* theirs =
      ::mmap(at(address), size, both, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, memory_.get(), offset);
  if (theirs == MAP_FAILED) return ::munmap(view, size), nullptr;
  // A driver's managed memory is not there in a child either.
  ::madvise(view, size, MADV_DONTFORK);
  ::madvise(theirs, size, MADV_DONTFORK);
  return static_cast<std::byte*>(view);
}

void page_gate::unmap(std::uint64_t address, std::uint64_t size, std::byte* view, bool alone) {
  reopen(address, size);
  ::munmap(view, size);
  if (!alone) return;
  (void)::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address),
                    static_cast<off_t>(size));
}

bool page_gate::close(std::uint64_t address, std::uint64_t size) {
  uffdio_register what{};
  what.range = {address, size};
  what.mode = UFFDIO_REGISTER_MODE_MISSING | register_minor;
  if (::ioctl(faults_.get(), UFFDIO_REGISTER, &what) != 0) return false;
  // Takes the pages out of this mapping, not out of the file: each next touch is a fault, which is ours.
  if (::madvise(at(address), size, MADV_DONTNEED) == 0) return true;
  reopen(address, size);
  return false;
}

void page_gate::reopen(std::uint64_t address, std::uint64_t size) {
  uffdio_range range{address, size};
  (void)::ioctl(faults_.get(), UFFDIO_UNREGISTER, &range);
  // That wakes who waits, and only then lets go of the pages: who was woken and touches them in between
  // (Linux 6.7 and later: faults take no lock of the whole memory) would sleep for ever.
  (void)::ioctl(faults_.get(), UFFDIO_WAKE, &range);
}

std::optional<std::uint64_t> page_gate::next_touch(std::optional<std::chrono::nanoseconds> patience) {
  const bool waits = !patience || patience->count() > 0;
  while (true) {
    uffd_msg touch{};
    if (::read(faults_.get(), &touch, sizeof touch) == sizeof touch) {
      const std::uint64_t address = touch.arg.pagefault.address;  // packed
      if (touch.event == UFFD_EVENT_PAGEFAULT) return address;
      continue;
    }
    if (!waits) return std::nullopt;
    std::array<pollfd, 2> both{pollfd{faults_.get(), POLLIN, 0}, pollfd{wakes_.get(), POLLIN, 0}};
    timespec most{};
    if (patience)
      most.tv_sec = patience->count() / 1'000'000'000, most.tv_nsec = patience->count() % 1'000'000'000;
    if (::ppoll(both.data(), both.size(), patience ? &most : nullptr, nullptr) <= 0) return std::nullopt;
    std::uint64_t times = 0;
    if (both[1].revents & POLLIN) return (void)!::read(wakes_.get(), &times, sizeof times), std::nullopt;
  }
}

void page_gate::wake() {
  constexpr std::uint64_t once = 1;
  if (is_open()) (void)!::write(wakes_.get(), &once, sizeof once);
}

}  // namespace outboard::frontend
