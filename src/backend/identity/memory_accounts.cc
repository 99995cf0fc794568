#include "backend/identity/memory_accounts.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace outboard::backend {

class memory_account {
 public:
  static result<std::shared_ptr<memory_account>> make() {
    auto made = memory_page::make();
    if (!made.ok()) return std::move(made).error();
    return std::make_shared<memory_account>(std::move(made->first), std::move(made->second));
  }
  memory_account(unique_fd own, memory_page mapped) : file(std::move(own)), page(std::move(mapped)) {}

  /// The lowest free one, so that sums go over few slots.
  std::optional<std::uint32_t> take_slot() {
    const auto free = std::ranges::find(taken_, false);
    const auto slot = static_cast<std::uint32_t>(free - taken_.begin());
    if (slot == most_memory_slots) return std::nullopt;
    free == taken_.end() ? taken_.push_back(true) : void(*free = true);
    page.clear(slot);
    return slot;
  }
  void give_back(std::uint32_t slot) {
    page.clear(slot);
    taken_[slot] = false;
  }

  held_memory held() const {
    const auto slots = static_cast<std::uint32_t>(taken_.size());
    return {page.held_of_fullest_device(slots), page.all_of(host_column, slots).held};
  }

  const unique_fd file;
  memory_page page;

 private:
  std::vector<bool> taken_;
};

memory_lease::~memory_lease() {
  if (of_) of_->give_back(slot_);
}

int memory_lease::file() const { return of_->file.get(); }
std::uint64_t memory_lease::device_bytes() const { return of_->page.held_on_devices(slot_); }
std::uint64_t memory_lease::host_bytes() const { return of_->page.held(slot_, host_column); }

result<memory_lease> memory_accounts::join(const std::string& identity, const memory_limits& limits) {
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<memory_account> account = accounts_[identity].lock();
  if (!account) {
    auto made = memory_account::make();
    if (!made.ok()) return std::move(made).error();
    account = std::move(*made);
    accounts_[identity] = account;
  }
  account->page.set_limits(limits);
  const auto slot = account->take_slot();
  if (!slot)
    return failure(
        fmt::format("{} has {} sessions, and no more can be counted", identity, most_memory_slots));
  return memory_lease(std::move(account), *slot);
}

void memory_accounts::change(const std::string& identity, const memory_limits& limits) {
  const auto at = accounts_.find(identity);
  const auto account = at == accounts_.end() ? nullptr : at->second.lock();
  if (account) account->page.set_limits(limits);
}

held_memory memory_accounts::held(const std::string& identity) const {
  const auto at = accounts_.find(identity);
  const auto account = at == accounts_.end() ? nullptr : at->second.lock();
  return account ? account->held() : held_memory{};
}

memory_limits stricter(const memory_limits& a, const memory_limits& b) {
  const auto less = [](std::uint64_t x, std::uint64_t y) { return x == 0 ? y : y == 0 ? x : std::min(x, y); };
  return {less(a.device, b.device), less(a.host, b.host), less(a.session_host, b.session_host)};
}

}  // namespace outboard::backend
