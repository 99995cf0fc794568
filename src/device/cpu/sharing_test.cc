// What processes of the cpu device share, from below its entries: files of memory and pools, and events
// between processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "device/cpu/ipc_event.hh"
#include "device/cpu/memory/pool.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t granule = memory::granularity;

std::unique_ptr<memory> make_memory() {
  auto made = memory::create(64 * granule);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

CUmemAllocationProp shareable() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

unsigned* mapped(memory& m, std::uint64_t handle) {
  std::uint64_t at = 0;
  EXPECT_EQ(m.reserve(granule, 0, 0, at), CUDA_SUCCESS);
  EXPECT_EQ(m.map(at, granule, 0, handle), CUDA_SUCCESS);
  return reinterpret_cast<unsigned*>(at);
}

TEST(shared_memory, is_the_same_on_both_sides_and_outlives_its_maker) {
  auto maker = make_memory(), taker = make_memory();
  std::uint64_t made = 0, taken = 0;
  ASSERT_EQ(maker->create_physical(granule, shareable(), made), CUDA_SUCCESS);
  unique_fd fd;
  ASSERT_EQ(maker->export_physical(made, fd), CUDA_SUCCESS);
  ASSERT_EQ(taker->import_physical(fd.get(), taken), CUDA_SUCCESS);
  EXPECT_EQ(taker->used(), 0u) << "in the maker's account";
  EXPECT_EQ(maker->used(), granule);
  unsigned* there = mapped(*maker, made);
  unsigned* here = mapped(*taker, taken);
  *there = 7;
  EXPECT_EQ(*here, 7u);
  maker.reset();
  fd.reset();
  EXPECT_EQ(*here, 7u);
  EXPECT_NE(taker->export_physical(taken, fd), CUDA_SUCCESS) << "only its maker exports";
}

TEST(shared_memory, takes_no_other_file) {
  auto m = make_memory();
  std::uint64_t made = 0;
  const unique_fd null(::open("/dev/null", O_RDWR)), open_file(::memfd_create("unsealed", 0));
  ASSERT_EQ(::ftruncate(open_file.get(), granule), 0);
  const unique_fd small = make_shared_file(4096, "small");
  for (const int fd : {-1, 1000, null.get(), open_file.get(), small.get()})
    EXPECT_EQ(m->import_physical(fd, made), CUDA_ERROR_UNKNOWN) << fd;
}

TEST(shared_memory, is_exported_only_if_made_for_it) {
  auto m = make_memory();
  std::uint64_t made = 0;
  unique_fd fd;
  ASSERT_EQ(m->create_physical(granule, CUmemAllocationProp{}, made), CUDA_SUCCESS);
  EXPECT_EQ(m->export_physical(made, fd), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(m->export_physical(12345, fd), CUDA_ERROR_INVALID_VALUE);
}

TEST(shared_pool, gives_its_blocks_to_others_by_name) {
  auto maker_memory = make_memory(), taker_memory = make_memory();
  pool maker(*maker_memory, 1, {}), other(*maker_memory, 2, {}), taker(*taker_memory, 3, {});
  ASSERT_TRUE(maker.share() && other.share());
  unique_fd fd;
  ASSERT_EQ(maker.export_to(fd), CUDA_SUCCESS);
  ASSERT_TRUE(taker.import(fd.get()));
  std::uint64_t block = 0, stranger = 0, seen = 0, again = 0;
  ASSERT_EQ(maker.allocate(1000, 1, block), CUDA_SUCCESS);
  ASSERT_EQ(other.allocate(1000, 1, stranger), CUDA_SUCCESS);
  CUmemPoolPtrExportData name{}, wrong{};
  ASSERT_EQ(maker.export_pointer(block, name), CUDA_SUCCESS);
  ASSERT_EQ(other.export_pointer(stranger, wrong), CUDA_SUCCESS);
  EXPECT_EQ(taker.import_pointer(wrong, 1, seen), CUDA_ERROR_INVALID_VALUE) << "of another pool";
  ASSERT_EQ(taker.import_pointer(name, 1, seen), CUDA_SUCCESS);
  ASSERT_EQ(taker.import_pointer(name, 1, again), CUDA_SUCCESS);
  EXPECT_EQ(seen, again);
  std::memset(reinterpret_cast<void*>(block), 0x55, 1000);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(seen + 999), 0x55);
  EXPECT_EQ(taker.allocate(1000, 1, again), CUDA_ERROR_INVALID_VALUE) << "the maker allocates";
  EXPECT_TRUE(taker.release(seen, 0));
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(block), 0x55) << "the taker's end is not the block's";
  EXPECT_FALSE(taker.release(seen, 0));
  EXPECT_TRUE(maker.release(block, 0));
  ASSERT_EQ(maker.allocate(1000, 1, block), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(block + 999), 0) << "fresh memory is zero";
}

TEST(shared_pool, checks_every_byte_of_a_name) {
  auto maker_memory = make_memory(), taker_memory = make_memory();
  pool maker(*maker_memory, 1, {}), taker(*taker_memory, 2, {});
  ASSERT_TRUE(maker.share());
  unique_fd fd;
  ASSERT_EQ(maker.export_to(fd), CUDA_SUCCESS);
  ASSERT_TRUE(taker.import(fd.get()));
  std::uint64_t block = 0, seen = 0;
  ASSERT_EQ(maker.allocate(1000, 1, block), CUDA_SUCCESS);
  CUmemPoolPtrExportData name{};
  ASSERT_EQ(maker.export_pointer(block, name), CUDA_SUCCESS);
  auto* bytes = reinterpret_cast<std::uint8_t*>(&name);
  for (std::size_t i = 0; i < sizeof name; ++i) {
    if (i >= 8 && i < 24) continue;  // offset and size: inside the file, they are other blocks' names
    bytes[i] ^= 1;
    EXPECT_EQ(taker.import_pointer(name, 1, seen), CUDA_ERROR_INVALID_VALUE) << i;
    bytes[i] ^= 1;
  }
  const std::uint64_t far[] = {0, granule - 1, ~0ull, 1ull << 60};
  for (const std::uint64_t offset : far) {
    CUmemPoolPtrExportData forged = name;
    std::memcpy(reinterpret_cast<char*>(&forged) + 8, &offset, sizeof offset);
    EXPECT_EQ(taker.import_pointer(forged, 1, seen), CUDA_ERROR_INVALID_VALUE) << offset;
  }
}

bool never() { return false; }

TEST(ipc_event, is_seen_by_another_process) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  const std::uint64_t number = event->begin();
  EXPECT_FALSE(event->done(number));
  const CUipcEventHandle handle = event->handle();
  const pid_t child = ::fork();
  if (child == 0) {
    bool own = true;
    const auto opened = ipc_event::open(handle, own);
    if (!opened || own || opened->last() != number) ::_exit(1);
    ::usleep(50'000);
    opened->finish(number);
    ::_exit(0);
  }
  event->await(number, never);
  EXPECT_TRUE(event->done(number));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ipc_event, is_opened_by_the_descriptor_that_comes_with_its_handle) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  const int sent = ::dup(ipc_event::descriptor_of(event->handle()));
  ASSERT_GE(sent, 0);
  bool own = true;
  const auto opened = ipc_event::open(ipc_event::received_with(event->handle(), sent), own);
  ::close(sent);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(own);
  const std::uint64_t number = event->begin();
  opened->finish(number);
  EXPECT_TRUE(event->done(number));
  EXPECT_EQ(ipc_event::descriptor_of(CUipcEventHandle{}), -1);
}

TEST(ipc_event, of_a_recorder_that_opened_it_is_waited_for_while_that_lives) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  const CUipcEventHandle handle = event->handle();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    bool own = false;
    const auto opened = ipc_event::open(handle, own);
    if (opened) (void)opened->begin();
    (void)!::write(ready[1], "x", 1);
    ::usleep(10'000'000);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  int asked = 0;
  event->await(1, [&] { return ++asked > 2; });  // a tenth of a second and more
  EXPECT_FALSE(event->done(1)) << "it was given up while its recorder lives";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  event->await(1, never);
  EXPECT_TRUE(event->done(1));
  ::close(ready[0]), ::close(ready[1]);
}

TEST(ipc_event, of_a_recorder_that_cannot_say_that_it_lives_is_waited_for) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  const int own = ipc_event::descriptor_of(event->handle());
  // Opened anew, it is somebody else for locks.
  const unique_fd file(::open(("/proc/self/fd/" + std::to_string(own)).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file);
  int go[2], begun[2];
  ASSERT_TRUE(::pipe(go) == 0 && ::pipe(begun) == 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    (void)!::read(go[0], &byte, 1);
    const std::uint64_t number = event->begin();
    (void)!::write(begun[1], "x", 1);
    (void)!::read(go[0], &byte, 1);
    event->finish(number);
    ::_exit(0);
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = child;
  lock.l_len = 1;
  ASSERT_EQ(::fcntl(file.get(), F_OFD_SETLK, &lock), 0);
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  ASSERT_EQ(::read(begun[0], &byte, 1), 1);
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(file.get(), F_OFD_SETLK, &lock), 0);
  int asked = 0;
  event->await(1, [&] { return ++asked > 2; });
  EXPECT_FALSE(event->done(1)) << "its recorder lives and has not finished";
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  event->await(1, never);
  EXPECT_TRUE(event->done(1));
  ::waitpid(child, nullptr, 0);
  for (const int end : {go[0], go[1], begun[0], begun[1]}) ::close(end);
}

TEST(ipc_event, of_a_recorder_that_died_does_not_hang) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)event->begin();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(event->last(), 1u);
  event->await(1, never);
  EXPECT_TRUE(event->done(1));
}

TEST(ipc_event, handles_that_nobody_gave_out_open_nothing) {
  const auto event = ipc_event::make();
  ASSERT_TRUE(event);
  bool own = false;
  CUipcEventHandle handle = event->handle();
  EXPECT_TRUE(ipc_event::open(handle, own));
  EXPECT_TRUE(own);
  auto* bytes = reinterpret_cast<std::uint8_t*>(&handle);
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    bytes[i] ^= 1;
    EXPECT_FALSE(ipc_event::open(handle, own)) << i;
    bytes[i] ^= 1;
  }
  EXPECT_FALSE(ipc_event::open(CUipcEventHandle{}, own));
}

}  // namespace
}  // namespace outboard::device::cpu
