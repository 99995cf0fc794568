#include "backend/daemon/queue/fair_shares.hh"

namespace outboard::backend {

bool fair_shares::take(const std::string& identity) {
  if (taken_ >= most_ || taken_by(identity) >= 2 * (most_ - taken_)) return false;
  ++by_identity_[identity];
  ++taken_;
  return true;
}

void fair_shares::give_back(const std::string& identity) {
  const auto at = by_identity_.find(identity);
  if (at == by_identity_.end()) return;
  --taken_;
  if (--at->second == 0) by_identity_.erase(at);
}

std::size_t fair_shares::taken_by(const std::string& identity) const {
  const auto at = by_identity_.find(identity);
  return at == by_identity_.end() ? 0 : at->second;
}

}  // namespace outboard::backend
