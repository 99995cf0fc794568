#include "frontend/memory/shared_book.hh"

#include <algorithm>

namespace outboard::frontend {

opened_memory* shared_book::find(std::uint64_t base) {
  const auto found = opened_.find(base);
  return found == opened_.end() ? nullptr : &found->second;
}

opened_memory* shared_book::find(const marshal::share_token& token, std::uint64_t context) {
  for (auto& [base, m] : opened_) {
    if (m.context == context && m.token == token) return &m;
  }
  return nullptr;
}

std::vector<opened_memory> shared_book::take_context(std::uint64_t context) {
  const std::lock_guard lock(opening_);
  std::vector<opened_memory> gone;
  std::erase_if(opened_, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    gone.push_back(entry.second);
    return true;
  });
  return gone;
}

bool shared_book::held(descriptors& d) {
  std::erase_if(d.watches, [](const unique_fd& watch) { return !held_by_anyone(watch); });
  return !d.watches.empty();
}

void shared_book::given(std::uint64_t allocation, const marshal::share_token& token, unique_fd watch) {
  const std::lock_guard lock(mutex_);
  descriptors& d = given_[allocation];
  (void)held(d);  // a program that exports one block again and again must not run us out of descriptors
  d.token = token;
  d.watches.push_back(std::move(watch));
}

bool shared_book::released(std::uint64_t allocation) {
  const std::lock_guard lock(mutex_);
  const auto found = given_.find(allocation);
  if (found == given_.end()) return false;
  descriptors d = std::move(found->second);
  given_.erase(found);
  if (!held(d)) return false;
  lasting_.push_back(std::move(d));
  return true;
}

std::vector<marshal::share_token> shared_book::forgotten() {
  const std::lock_guard lock(mutex_);
  std::vector<marshal::share_token> gone;
  std::erase_if(lasting_, [&](descriptors& d) {
    if (held(d)) return false;
    gone.push_back(d.token);
    return true;
  });
  return gone;
}

}  // namespace outboard::frontend
