#include "backend/cuda/code/first_uses.hh"

#include <algorithm>
#include <atomic>
#include <tuple>

namespace outboard::backend {
namespace {

/// A bit for each of the first contexts; where there are more, the others' uses are looked up every time.
std::uint64_t bit_of(std::uint64_t context) {
  return std::uint64_t{1} << std::min(wire::handle{context}.index(), 63u);
}

}  // namespace

bool first_uses::by_object::operator()(const first_use& a, const first_use& b) const {
  return std::tie(a.id, a.context, a.variable) < std::tie(b.id, b.context, b.variable);
}

void first_uses::of_kernel(object_tables& objects, std::uint64_t id, const wire::frame_header& asked) {
  server_object* const kernel = objects.find(api::handle_kind::function, id);
  if (!kernel) return;
  const std::uint64_t context = asked.context ? asked.context : kernel->records.front().context;
  const std::uint64_t bit = bit_of(context);
  const std::atomic_ref<std::uint64_t> marks(kernel->marks);
  if ((marks.load(std::memory_order_relaxed) & bit) != 0) return;
  add(objects, {asked.ticket, context, id, {}});
  if (bit >> 63 == 0) marks.fetch_or(bit, std::memory_order_relaxed);
}

/// Another context may have its number next.
void first_uses::forget_context(object_tables& objects, std::uint64_t context) {
  for (const api::handle_kind kind : {api::handle_kind::function, api::handle_kind::kernel}) {
    for (const std::uint64_t id : objects.ids(kind)) {
      if (server_object* const kernel = objects.find(kind, id))
        std::atomic_ref<std::uint64_t>(kernel->marks).fetch_and(~bit_of(context), std::memory_order_relaxed);
    }
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const first_use& u) { return u.context == context; });
}

bool first_uses::of_variable(const object_tables& objects, first_use use) {
  return add(objects, std::move(use));
}

bool first_uses::add(const object_tables& objects, first_use use) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= most_) {
    std::erase_if(known_, [&](const first_use& u) { return !objects.at(u.id); });
    most_ = std::max<std::size_t>(most_, 2 * known_.size());
  }
  return known_.insert(std::move(use)).second;
}

std::size_t first_uses::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

std::vector<first_use> first_uses::all(const object_tables& objects) const {
  const std::lock_guard lock(mutex_);
  std::vector<first_use> there;
  std::ranges::copy_if(known_, std::back_inserter(there),
                       [&](const first_use& u) { return objects.at(u.id) != nullptr; });
  std::ranges::stable_sort(there, {}, &first_use::ticket);
  return there;
}

}  // namespace outboard::backend
