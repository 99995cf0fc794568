#include "backend/worker/shared_account.hh"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/errno_text.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t last_place = most_account_devices - 1;
/// Others' claims last as long as one allocation of theirs. Two that see each other both step back, and come
/// again at different times.
constexpr int most_tries = 40;
constexpr std::chrono::microseconds first_pause{20}, longest_pause{1000};

/// What a thread has claimed for the request that it carries out. A session carries out several requests at
/// once, each on one thread from its beginning to its end, so a thread's claims are those of its request:
/// nobody else settles them, and none of them needs a lock.
struct claim_of_thread {
  const account_slot* by;
  std::atomic<std::uint64_t>* claimed;
  std::uint64_t bytes;
};
thread_local std::vector<claim_of_thread> claims;

account_pages* map(const unique_fd& descriptor) {
  void* at = ::mmap(nullptr, sizeof(account_pages), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  return at == MAP_FAILED ? nullptr : static_cast<account_pages*>(at);
}

void unmap(account_pages* pages) {
  if (pages) ::munmap(pages, sizeof(account_pages));
}

}  // namespace

result<memory_account> memory_account::make(std::uint64_t most, std::span<const std::uint64_t> boards) {
  unique_fd file = make_sealed_file(sizeof(account_pages), "outboard-account");
  if (!file) return failure("pages of an identity's memory: " + errno_text(errno));
  account_pages* pages = map(file);  // of zeros, which is what an empty one is
  if (!pages) return failure("pages of an identity's memory: " + errno_text(errno));
  pages->most.store(most);
  for (std::size_t i = 0; i < std::min(boards.size(), pages->boards.size()); ++i)
    pages->boards[i].store(boards[i]);
  return memory_account(std::move(file), pages);
}

memory_account::~memory_account() { unmap(pages_); }

std::optional<std::uint32_t> memory_account::take_slot() {
  const auto at = std::ranges::find(taken_, false);
  if (at == taken_.end()) return std::nullopt;
  *at = true;
  const auto slot = static_cast<std::uint32_t>(at - taken_.begin());
  if (pages_->slots.load() <= slot) pages_->slots.store(slot + 1);
  return slot;
}

void memory_account::give_back(std::uint32_t slot) {
  for (auto& each : pages_->all[slot].claimed) each.store(0);
  for (auto& each : pages_->all[slot].held) each.store(0);
  taken_[slot] = false;
}

bool memory_account::is_unused() const { return std::ranges::find(taken_, true) == taken_.end(); }

std::vector<std::uint64_t> memory_account::held() const {
  std::vector<std::uint64_t> sums(most_account_devices);
  for (std::size_t slot = 0; slot < taken_.size(); ++slot) {
    for (std::size_t i = 0; taken_[slot] && i < sums.size(); ++i) sums[i] += pages_->all[slot].held[i].load();
  }
  return sums;
}

std::optional<account_share> account_share::open(const unique_fd& descriptor, std::uint32_t slot) {
  if (size_of_sealed_file(descriptor.get()).value_or(0) < sizeof(account_pages)) return std::nullopt;
  if (slot >= most_account_slots) return std::nullopt;
  account_pages* pages = map(descriptor);
  return pages ? std::optional(account_share(pages, slot)) : std::nullopt;
}

void account_share::set_devices(std::span<const std::uint64_t> boards) {
  places_.clear();
  for (const std::uint64_t board : boards) {
    const auto at = std::ranges::find_if(pages_->boards,
                                         [&](const auto& one) { return board != 0 && one.load() == board; });
    places_.push_back(
        static_cast<std::size_t>(at - pages_->boards.begin()));  // the last one where there is none
  }
}

std::size_t account_share::place_of(std::int32_t device) const {
  const auto at = static_cast<std::size_t>(device);
  return device >= 0 && at < places_.size() ? places_[at] : last_place;
}

void account_share::change(std::int32_t device, std::uint64_t bytes) {
  own().held[place_of(device)].fetch_add(bytes);
}

/// What is about to be taken is read first: what is gone from there has arrived in `held`.
account_share::sum account_share::sum_of(std::size_t place) const {
  sum all;
  const std::size_t slots = std::min<std::size_t>(pages_->slots.load(), most_account_slots);
  for (std::size_t i = 0; i < slots; ++i) all.claimed += pages_->all[i].claimed[place].load();
  for (std::size_t i = 0; i < slots; ++i) all.held += pages_->all[i].held[place].load();
  return all;
}

bool account_share::claim(std::int32_t device, std::uint64_t bytes, std::uint64_t spare) {
  const std::size_t place = place_of(device);
  const std::uint64_t most = pages_->most.load();
  auto& claimed = own().claimed[place];
  auto pause = first_pause + std::chrono::microseconds(slot_ % 16);
  for (int i = 0; bytes <= most && i < most_tries; ++i) {
    claimed.fetch_add(bytes);
    const sum all = sum_of(place);
    const std::uint64_t used = all.held - std::min(spare, all.held);
    // This one is among them.
    if (used + all.claimed <= most) {
      claims.push_back({&own(), &claimed, bytes});
      return true;
    }
    claimed.fetch_sub(bytes);
    if (used + bytes > most) return false;  // without what others are about to take
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, longest_pause + std::chrono::microseconds(slot_));
  }
  return false;
}

void account_share::settle() {
  std::erase_if(claims, [&](const claim_of_thread& each) {
    if (each.by != &own()) return false;
    each.claimed->fetch_sub(each.bytes);
    return true;
  });
}

std::optional<std::uint64_t> account_share::left(std::int32_t device) const {
  const sum all = sum_of(place_of(device));
  const std::uint64_t most = pages_->most.load();
  if (all.held > most) return std::nullopt;
  return most - all.held;
}

}  // namespace outboard::backend
