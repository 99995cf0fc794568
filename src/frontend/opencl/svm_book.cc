#include "frontend/opencl/svm_book.hh"

#include "base/pages.hh"

namespace outboard::frontend::opencl {
namespace {

std::uint64_t number(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

}  // namespace

svm_book& svm_book::instance() {
  static svm_book* const the_one = new svm_book;  // never destroyed: programs free memory from destructors
  return *the_one;
}

bool svm_book::add(std::uint64_t address, std::size_t size, cl_context context, int file) {
  const bool same = file >= 0;
  if (address + size < address || page_up(address + size) < address || (same && address % page_size()))
    return false;
  const std::size_t taken = same ? page_up(size) : size;
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.lower_bound(address + taken);
  if (after != blocks_.begin() && std::prev(after)->first + std::prev(after)->second.taken > address)
    return false;
  if (!(same ? pages_.share(address, taken, file) : pages_.open(address, size))) return false;
  blocks_[address] = {size, taken, same, needed(context), {}, {}};
  return true;
}

void svm_book::charge(std::uint64_t address, memory_claim claim) {
  const std::lock_guard lock(mutex_);
  if (const auto found = blocks_.find(address); found != blocks_.end())
    found->second.claim = std::move(claim);
}

std::optional<svm_book::removed> svm_book::remove(const void* at) {
  const std::lock_guard lock(mutex_);
  auto found = blocks_.extract(number(at));
  if (found.empty()) return std::nullopt;
  // Pages at its ends may be shared with other blocks.
  const std::uint64_t begin = page_up(number(at)), end = page_down(number(at) + found.mapped().taken);
  if (begin < end) pages_.close(begin, end - begin);
  return removed{std::move(found.mapped().context), std::move(found.mapped().claim)};
}

svm_book::blocks::const_iterator svm_book::block_of(const void* at) const {
  const auto after = blocks_.upper_bound(number(at));
  if (after == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(after);
  return number(at) - found->first < found->second.size ? found : blocks_.end();
}

std::optional<svm_book::place> svm_book::find(const void* at, std::size_t size) const {
  const std::lock_guard lock(mutex_);
  const auto found = block_of(at);
  if (found == blocks_.end()) return std::nullopt;
  const std::size_t left = found->second.size - (number(at) - found->first);
  return place{found->second.context.get(), size <= left, found->second.same_pages};
}

void svm_book::map(const svm_mapping& part) {
  const std::lock_guard lock(mutex_);
  const auto found = block_of(part.at);
  if (found != blocks_.end()) blocks_[found->first].mapped.push_back(part);
}

std::optional<svm_mapping> svm_book::unmap(const void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = block_of(at);
  if (found == blocks_.end()) return std::nullopt;
  auto& mapped = blocks_[found->first].mapped;
  for (auto latest = mapped.rbegin(); latest != mapped.rend(); ++latest) {
    if (latest->at != at) continue;
    const svm_mapping part = *latest;
    mapped.erase(std::next(latest).base());
    return part;
  }
  return std::nullopt;
}

}  // namespace outboard::frontend::opencl
