#include "frontend/copying/asides.hh"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/overlap.hh"
#include "frontend/copying/copy_crew.hh"

namespace outboard::frontend {

std::uint32_t asides::adopt(std::uint64_t context, data_connections::links links) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t first = last_name_ + 1;
  for (auto& one : links) {
    links_[++last_name_] = std::make_shared<link>(link{std::move(one), context, {}});
  }
  return first;
}

bool asides::has(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [&](const auto& entry) { return entry.second->context == context; });
}

void asides::drop(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(links_, [&](const auto& entry) { return entry.second->context == context; });
}

void asides::drop_all() {
  const std::lock_guard lock(mutex_);
  links_.clear();
  pending_.store(0, std::memory_order_release);
}

bool asides::expect(const marshal::aside_body& about, std::span<const std::span<std::byte>> places) {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(about.connection);
  if (found == links_.end()) return false;
  found->second->expected.push_back({about.number, {places.begin(), places.end()}});
  pending_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool asides::touch(std::span<const std::byte> memory) {
  if (!pending()) return false;
  const auto meets = [&](std::span<const std::byte> run) { return overlap(run, memory); };
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second->expected,
                               [&](const piece& p) { return std::ranges::any_of(p.places, meets); });
  });
}

std::vector<std::shared_ptr<asides::link>> asides::with_pieces() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<link>> found;
  for (const auto& [number, l] : links_) {
    if (!l->expected.empty()) found.push_back(l);
  }
  return found;
}

/// All that is expected over it. False: it is lost.
bool asides::fetch(link& from, std::atomic<std::uint64_t>& bytes) {
  for (; !from.expected.empty(); from.expected.pop_front()) {
    const piece& next = from.expected.front();
    const auto code = receive_piece(*from.over, next.number, next.places);
    if (!code || *code != 0) return false;
    for (const std::span<std::byte> run : next.places) {
      bytes.fetch_add(run.size(), std::memory_order_relaxed);
    }
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  return true;
}

result<std::uint64_t> asides::collect() {
  if (!pending()) return std::uint64_t{0};
  const auto links = with_pieces();
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> lost{false};
  const std::function<void()> help = [&] {
    for (std::size_t n; (n = next.fetch_add(1)) < links.size();) {
      if (!fetch(*links[n], bytes)) lost.store(true);
    }
  };
  {
    std::optional<copy_crew::shift> shift;
    if (links.size() > 1) shift.emplace(copy_crew::instance(), help, static_cast<int>(links.size()) - 1);
    help();
  }
  if (lost.load()) return failure("a data connection to the server broke");
  return bytes.load();
}

}  // namespace outboard::frontend
