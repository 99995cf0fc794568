#include "backend/opencl/memory_ledger.hh"

#include <algorithm>

namespace outboard::backend::opencl {

void memory_ledger::add(cl_device_id device, std::uint64_t board, std::uint64_t memory) {
  places_[device] = static_cast<std::int32_t>(boards_.size());
  boards_.push_back(board);
  memory_.push_back(memory);
}

void memory_ledger::add_part(cl_device_id part, cl_device_id whole) {
  if (const auto found = places_.find(whole); found != places_.end()) places_[part] = found->second;
}

std::uint64_t memory_ledger::bytes(cl_device_id device) const {
  const auto found = places_.find(device);
  return found == places_.end() ? 0 : tally_.bytes(found->second);
}

memory_ledger::places memory_ledger::places_of(std::span<const cl_device_id> devices) const {
  places on;
  for (const cl_device_id each : devices) {
    const auto found = places_.find(each);
    if (found != places_.end() && std::ranges::find(on, found->second) == on.end())
      on.push_back(found->second);
  }
  return on;
}

bool memory_ledger::fits(const places& on, std::uint64_t bytes) const {
  return most_ == 0 ||
         std::ranges::all_of(on, [&](std::int32_t place) { return tally_.fits(place, bytes, most_); });
}

std::shared_ptr<memory_ledger::hold> memory_ledger::take(places on, std::uint64_t bytes) {
  if (!fits(on, bytes)) return nullptr;
  const bool claimed =
      !account_ || std::ranges::all_of(on, [&](std::int32_t place) { return account_->claim(place, bytes); });
  if (claimed) {
    for (const std::int32_t place : on) tally_.add(place, bytes);
  }
  if (account_) account_->settle();  // what was claimed of some devices, too, if the rest was not to be had
  if (!claimed) return nullptr;
  return std::make_shared<hold>(shared_from_this(), std::move(on), bytes);
}

std::optional<room_message> memory_ledger::room_for(const places& on, std::uint64_t bytes) const {
  if (!fits(on, bytes)) return std::nullopt;
  std::vector<std::uint64_t> full, all;  // by the identity's limit, which comes first
  for (const std::int32_t place : on) {
    const auto at = static_cast<std::size_t>(place);
    if (bytes > memory_[at]) return std::nullopt;
    all.push_back(boards_[at]);
    if (account_ && account_->lacks(place, bytes)) full.push_back(boards_[at]);
  }
  const bool own = !full.empty();
  return room_message{own, own ? std::move(full) : std::move(all)};
}

memory_ledger::hold::~hold() {
  for (const std::int32_t place : on_) ledger_->tally_.take(place, bytes_);
  if (dying_.load()) ledger_->dying_.fetch_sub(bytes_);
}

void memory_ledger::hold::let_go() {
  if (!dying_.exchange(true)) ledger_->dying_.fetch_add(bytes_);
}

std::shared_ptr<void> end_with_handle(std::shared_ptr<memory_ledger::hold> held) {
  void* const what = held.get();
  return {what, [held = std::move(held)](void*) mutable {
            held->let_go();
            held.reset();
          }};
}

}  // namespace outboard::backend::opencl
