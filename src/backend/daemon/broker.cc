#include "backend/daemon/broker.hh"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hh"

namespace outboard::backend {
namespace {

/// The driver's handles are 64 bytes.
constexpr std::size_t most_native = 256;

/// The cpu device's events are files, a driver's are not.
bool fits(share_class what, bool with_descriptor) {
  const bool needed = what == share_class::memory || what == share_class::allocation ||
                      what == share_class::pool || what == share_class::connection;
  return needed == with_descriptor || what == share_class::event;
}

marshal::share_token fresh_token() {
  marshal::share_token token;
  // Below 256 bytes getrandom(2) is neither short nor interrupted.
  CHECK(::getrandom(token.data(), token.size(), 0) == static_cast<ssize_t>(token.size()));
  return token;
}

template <class Body>
bool decoded(const control_message& m, Body& body) {
  wire::reader r(m.payload);
  body = marshal::take_body<Body>(r);
  return r.finished();
}

}  // namespace

std::size_t broker::token_hash::operator()(const marshal::share_token& t) const {
  std::size_t value = 0;
  std::memcpy(&value, t.data(), sizeof value);
  return value;
}

offered_message broker::take(owner_id owner, const std::string& identity, offer_message&& m, int descriptor) {
  owned& own = by_owner_[owner];
  // A connection is a session's own, and keep_connection() limits how many wait.
  const bool counts = descriptor >= 0 && m.what != share_class::connection;
  const auto theirs = by_identity_.find(identity);
  const std::size_t held = theirs == by_identity_.end() ? 0 : theirs->second;
  if (own.tokens.size() >= limits_.per_session ||
      (counts && (descriptors_ >= limits_.descriptors || held >= limits_.per_identity))) {
    // Once for each session, which may ask as often as it likes.
    if (!std::exchange(own.reported, true))
      log::warn("a session shares ", own.tokens.size(), " things, all sessions of ", identity, " together ",
                held, " descriptors, everybody ", descriptors_, ": the limits are ", limits_.per_session,
                ", ", limits_.per_identity, " and ", limits_.descriptors);
    return {};
  }
  offer made{owner, identity, m.what, std::move(m.about), {}};
  if (descriptor >= 0) {
    made.descriptor = unique_fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!made.descriptor) return {};
    if (counts) ++descriptors_, ++by_identity_[identity];
  }
  const marshal::share_token token = fresh_token();
  offers_.emplace(token, std::move(made));
  own.tokens.push_back(token);
  return {true, token};
}

offered_message broker::keep_connection(owner_id owner, const std::string& identity,
                                        const std::string& scheme, const unique_fd& connection) {
  const auto waiting = std::ranges::count_if(by_owner_[owner].tokens, [&](const marshal::share_token& token) {
    return offers_.at(token).what == share_class::connection;
  });
  if (static_cast<std::size_t>(waiting) >= limits_.connections) return {};
  offer_message m;
  m.what = share_class::connection;
  m.about.native.assign(scheme.begin(), scheme.end());
  return take(owner, identity, std::move(m), connection.get());
}

std::optional<broker_answer> broker::answer(owner_id owner, const std::string& identity,
                                            const control_message& m) {
  if (m.kind == control_kind::offer) {
    offer_message offered;
    if (!decoded(m, offered) || offered.about.native.size() > most_native ||
        !fits(offered.what, static_cast<bool>(m.descriptor))) {
      return std::nullopt;
    }
    const int fd = m.descriptor ? m.descriptor.get() : -1;
    return broker_answer{control_kind::offered,
                         marshal::payload_of(take(owner, identity, std::move(offered), fd))};
  }
  seek_message wanted;
  if ((m.kind != control_kind::seek && m.kind != control_kind::withdraw) || !decoded(m, wanted))
    return std::nullopt;
  const auto found = offers_.find(wanted.token);
  if (m.kind == control_kind::withdraw) {
    if (found != offers_.end() && found->second.owner == owner) {
      std::erase(by_owner_[owner].tokens, wanted.token);
      erase(wanted.token);
    }
    return broker_answer{};
  }
  sought_message got;
  broker_answer reply{control_kind::sought, {}};
  // A token of another identity is answered like one that never existed.
  if (found != offers_.end() && found->second.identity == identity && found->second.what == wanted.what) {
    got = {true, found->second.owner == owner, found->second.about};
    if (found->second.descriptor) reply.descriptor = found->second.descriptor.get();
  }
  reply.payload = marshal::payload_of(got);
  return reply;
}

void broker::erase(const marshal::share_token& token) {
  const auto found = offers_.find(token);
  if (found == offers_.end()) return;
  const offer& gone = found->second;
  if (gone.descriptor && gone.what != share_class::connection) {
    --descriptors_;
    const auto theirs = by_identity_.find(gone.identity);
    if (--theirs->second == 0) by_identity_.erase(theirs);
  }
  offers_.erase(found);
}

void broker::forget(owner_id owner) {
  const auto own = by_owner_.find(owner);
  if (own == by_owner_.end()) return;
  for (const marshal::share_token& token : own->second.tokens) erase(token);
  by_owner_.erase(own);
}

}  // namespace outboard::backend
