#include "backend/worker/activity.hh"

#include <errno.h>
#include <sys/mman.h>

#include <cstdio>
#include <new>
#include <string>

#include "base/errno_text.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t page_size = 4096;

}  // namespace

std::uint64_t board_number(std::string_view pci_bus_id) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(std::string(pci_bus_id).c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) return 0;
  return (std::uint64_t{domain} << 16 | (bus & 0xff) << 8 | (device & 0xff)) + 1;
}

result<own_activity> own_activity::make() {
  own_activity own;
  own.descriptor = make_sealed_file(page_size, "outboard-activity");
  if (!own.descriptor) return failure("activity page: " + errno_text(errno));
  void* at = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, own.descriptor.get(), 0);
  if (at == MAP_FAILED) return failure("activity page: " + errno_text(errno));
  own.page = new (at) activity_page{};
  return own;
}

namespace {

void* map_sealed(const unique_fd& descriptor, int protection) {
  if (size_of_sealed_file(descriptor.get()).value_or(0) < page_size) return MAP_FAILED;
  return ::mmap(nullptr, page_size, protection, MAP_SHARED, descriptor.get(), 0);
}

}  // namespace

std::optional<shown_activity> shown_activity::open(const unique_fd& descriptor) {
  const void* at = map_sealed(descriptor, PROT_READ);
  if (at == MAP_FAILED) return std::nullopt;
  return shown_activity(static_cast<const activity_page*>(at));
}

std::optional<session_hold> session_hold::open(const unique_fd& descriptor) {
  void* at = map_sealed(descriptor, PROT_READ | PROT_WRITE);
  if (at == MAP_FAILED) return std::nullopt;
  return session_hold(static_cast<activity_page*>(at));
}

session_hold::~session_hold() {
  if (page_) ::munmap(page_, page_size);
}

std::uint64_t shown_activity::bytes_on(std::uint64_t board) const {
  std::uint64_t sum = 0;
  for (const shown_board& b : page_->boards) {
    if (b.board.load(std::memory_order_relaxed) == board) sum += b.bytes.load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint64_t shown_activity::held_bytes() const {
  std::uint64_t sum = 0;
  for (const shown_board& b : page_->boards) sum += b.bytes.load(std::memory_order_relaxed);
  return sum;
}

shown_activity::~shown_activity() {
  if (page_) ::munmap(const_cast<activity_page*>(page_), page_size);
}

}  // namespace outboard::backend
