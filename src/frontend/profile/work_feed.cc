#include "frontend/profile/work_feed.hh"

#include <algorithm>
#include <utility>

namespace outboard::frontend {
namespace {

/// That wait for one who does not fetch: what is more is lost to it, and counted.
constexpr std::size_t most_waiting = std::size_t{1} << 21;

}  // namespace

/// Takes what is fetched for one member, or for none: for it, and for the others.
class work_feed::splitter final : public profile_receiver {
 public:
  splitter(work_feed& feed, profile_receiver* one) : feed_(feed), one_(one) {}

  void begin_fetch() override {
    if (!one_) return;
    one_->begin_fetch();
    member& own = feed_.members_.at(one_);
    for (answer& a : std::exchange(own.waiting, {})) one_->add(std::move(a.reply), a.asked, a.answered);
    own.records = 0;
  }

  void add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) override {
    feed_.names_.insert(feed_.names_.end(), reply.names.begin(), reply.names.end());
    const bool news = !reply.names.empty() || !reply.records.empty();
    for (auto& [receiver, m] : feed_.members_) {
      if (!m.joined) continue;
      m.names = feed_.names_.size();
      if (receiver != one_ && news) keep(m, reply, asked, answered);
    }
    if (!one_) return;
    reply.dropped += feed_.members_.at(one_).lost;
    one_->add(std::move(reply), asked, answered);
  }

  void end_fetch() override {
    if (one_) one_->end_fetch();
  }

 private:
  /// A copy of what this one has room for; of the names all, because later records count them.
  static void keep(member& m, const marshal::profile_take_reply& reply, std::int64_t asked,
                   std::int64_t answered) {
    answer a{{reply.came, reply.left, reply.dropped, reply.more, reply.names, {}}, asked, answered};
    if (m.records + reply.records.size() > most_waiting) {
      m.lost += reply.records.size();
    } else {
      a.reply.records = reply.records;
      m.records += reply.records.size();
    }
    a.reply.dropped += m.lost;
    m.waiting.push_back(std::move(a));
  }

  work_feed& feed_;
  profile_receiver* const one_;
};

work_feed& work_feed::instance() {
  static work_feed* const one = new work_feed;  // never destroyed: see process::instance()
  return *one;
}

/// With the lock.
bool work_feed::anybody() const {
  return std::ranges::any_of(members_, [](const auto& one) { return one.second.joined; });
}

std::string work_feed::join(session& server, profile_receiver& one, profile_services services) {
  const std::lock_guard lock(mutex_);
  if (!source_) source_ = std::make_unique<profile_source>(server, services);
  if (anybody()) {
    // What was done before is for those that were here.
    splitter others(*this, nullptr);
    source_->fetch(false, others);
  } else if (std::string refusal = source_->start(); !refusal.empty()) {
    return refusal;
  }
  member& m = members_[&one];
  m.joined = true;
  m.records = 0;
  if (m.names == names_.size()) return {};
  // Records count all names from the first one on.
  answer missed;
  missed.reply.names.assign(names_.begin() + static_cast<std::ptrdiff_t>(m.names), names_.end());
  m.names = names_.size();
  m.waiting.push_back(std::move(missed));
  return {};
}

void work_feed::leave(profile_receiver& one) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(&one);
  if (found == members_.end() || !std::exchange(found->second.joined, false)) return;
  for (const answer& a : std::exchange(found->second.waiting, {}))
    found->second.names -= a.reply.names.size();
  if (!anybody()) source_->stop();
}

void work_feed::fetch(bool all, profile_receiver& one) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(&one);
  if (found == members_.end() || !found->second.joined) return;
  splitter everybody(*this, &one);
  source_->fetch(all, everybody);
}

}  // namespace outboard::frontend
