#include "backend/daemon/queue/places.hh"

#include <deque>

namespace outboard::backend {
namespace {

/// Those of one identity who wait.
struct line {
  const identity_terms* who = nullptr;
  std::deque<std::size_t> waiting;
};

/// Does `a` get a place before `b`?
bool goes_first(const line& a, const line& b, const taken_places& taken) {
  if (a.who->priority != b.who->priority) return a.who->priority > b.who->priority;
  const std::size_t left = taken.taken_by(a.who->name) * b.who->weight;
  const std::size_t right = taken.taken_by(b.who->name) * a.who->weight;
  return left != right ? left < right : a.waiting.front() < b.waiting.front();
}

std::vector<line> lines_of(std::span<const identity_terms* const> waiting) {
  std::vector<line> lines;
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const auto [at, is_new] = by_name.emplace(waiting[i]->name, lines.size());
    if (is_new) lines.push_back({waiting[i], {}});
    lines[at->second].waiting.push_back(i);
  }
  return lines;
}

bool below_own_limit(const identity_terms& who, const taken_places& taken) {
  return who.running == 0 || taken.taken_by(who.name) < who.running;
}

/// The line whose first one is next, of those below their own limit.
line* next_line(std::vector<line>& lines, const taken_places& taken) {
  line* best = nullptr;
  for (line& one : lines) {
    if (one.waiting.empty() || !below_own_limit(*one.who, taken)) continue;
    if (!best || goes_first(one, *best, taken)) best = &one;
  }
  return best;
}

}  // namespace

std::size_t taken_places::taken_by(const std::string& identity) const {
  const auto at = of.find(identity);
  return at == of.end() ? 0 : at->second;
}

void taken_places::take(const std::string& identity) {
  ++all;
  ++of[identity];
}

bool taken_places::free_for(const identity_terms& who) const {
  return (most == 0 || all < most) && below_own_limit(who, *this);
}

std::optional<std::size_t> next_for_place(std::span<const identity_terms* const> waiting,
                                          const taken_places& taken) {
  if (taken.most != 0 && taken.all >= taken.most) return std::nullopt;
  std::vector<line> lines = lines_of(waiting);
  const line* next = next_line(lines, taken);
  return next ? std::optional(next->waiting.front()) : std::nullopt;
}

std::vector<std::size_t> order_of_places(std::span<const identity_terms* const> waiting, taken_places taken) {
  std::vector<line> lines = lines_of(waiting);
  std::vector<std::size_t> order;
  while (line* next = next_line(lines, taken)) {
    order.push_back(next->waiting.front());
    next->waiting.pop_front();
    taken.take(next->who->name);
  }
  for (const line& stopped : lines) order.insert(order.end(), stopped.waiting.begin(), stopped.waiting.end());
  return order;
}

}  // namespace outboard::backend
