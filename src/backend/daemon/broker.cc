#include "backend/daemon/broker.hh"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/daemon/control_body.hh"
#include "base/log.hh"
#include "base/random.hh"

namespace outboard::backend {
namespace {

/// The driver's handles are 64 bytes.
constexpr std::size_t most_native = 256;

bool needs_descriptor(share_class what) {
  return what == share_class::memory || what == share_class::allocation || what == share_class::pool ||
         what == share_class::connection || what == share_class::host_allocation;
}

}  // namespace

std::size_t broker::token_hash::operator()(const marshal::share_token& t) const {
  std::size_t value = 0;
  std::memcpy(&value, t.data(), sizeof value);
  return value;
}

broker_limits limits_for_this_process() {
  broker_limits limits;
  rlimit own{};
  if (::getrlimit(RLIMIT_NOFILE, &own) != 0 || own.rlim_cur == RLIM_INFINITY) return limits;
  limits.descriptors = std::min<std::size_t>(limits.descriptors, own.rlim_cur / 4);
  limits.all_connections = std::min<std::size_t>(limits.all_connections, own.rlim_cur / 8);
  return limits;
}

bool broker::take_places(const std::string& identity, share_class what, bool with_descriptor) {
  if (what == share_class::connection) return shares_.connections.take(identity);
  if (!shares_.offers.take(identity)) return false;
  if (!with_descriptor || shares_.descriptors.take(identity)) return true;
  shares_.offers.give_back(identity);
  return false;
}

void broker::give_places_back(const std::string& identity, share_class what, bool with_descriptor) {
  if (what == share_class::connection) return shares_.connections.give_back(identity);
  shares_.offers.give_back(identity);
  if (with_descriptor) shares_.descriptors.give_back(identity);
}

offered_message broker::take(owner_id owner, const std::string& identity, offer_message&& m, int descriptor) {
  owned& own = by_owner_[owner];
  const share_class what = m.what;
  if (own.tokens.size() - own.connections >= limits_.per_session && what != share_class::connection) {
    if (!std::exchange(own.reported, true))
      log::warn("a session shares ", limits_.per_session, " things, which is the limit");
    return {};
  }
  if (!take_places(identity, what, descriptor >= 0)) {
    if (what != share_class::connection && !std::exchange(own.reported, true)) {
      log::warn("the sessions of ", identity, " share ", shares_.offers.taken_by(identity), " things with ",
                shares_.descriptors.taken_by(identity), " descriptors, everybody's ", shares_.offers.taken(),
                " with ", shares_.descriptors.taken(), ": no more, so that others find room (of ",
                limits_.offers, " and ", limits_.descriptors, ")");
    }
    return {};
  }
  offer made{owner, identity, what, std::move(m.about), {}};
  if (descriptor >= 0) {
    made.descriptor = unique_fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!made.descriptor) return give_places_back(identity, what, true), offered_message{};
  }
  const auto token = random_value<marshal::share_token>();
  offers_.emplace(token, std::move(made));
  own.tokens.push_back(token);
  if (what == share_class::connection) ++own.connections;
  return {true, token};
}

offered_message broker::keep_connection(owner_id owner, const std::string& identity,
                                        const std::string& scheme, const unique_fd& connection) {
  if (by_owner_[owner].connections >= limits_.connections) return {};
  offer_message m;
  m.what = share_class::connection;
  m.about.native.assign(scheme.begin(), scheme.end());
  return take(owner, identity, std::move(m), connection.get());
}

std::optional<broker_answer> broker::answer(owner_id owner, const std::string& identity,
                                            const control_message& m) {
  if (m.kind == control_kind::offer) {
    auto offered = body_of<offer_message>(m.payload);
    if (!offered || offered->about.native.size() > most_native ||
        (offered->what != share_class::event &&
         needs_descriptor(offered->what) != static_cast<bool>(m.descriptor))) {
      return std::nullopt;
    }
    const int fd = m.descriptor ? m.descriptor.get() : -1;
    return broker_answer{control_kind::offered, payload_of(take(owner, identity, std::move(*offered), fd))};
  }
  if (m.kind != control_kind::seek && m.kind != control_kind::withdraw) return std::nullopt;
  const auto wanted = body_of<seek_message>(m.payload);
  if (!wanted) return std::nullopt;
  const auto found = offers_.find(wanted->token);
  if (m.kind == control_kind::withdraw) {
    if (found != offers_.end() && found->second.owner == owner) {
      owned& own = by_owner_[owner];
      std::erase(own.tokens, wanted->token);
      if (found->second.what == share_class::connection) --own.connections;
      erase(wanted->token);
    }
    return broker_answer{};
  }
  sought_message got;
  broker_answer reply{control_kind::sought, {}};
  // A token of another identity is as unknown as one that never was.
  if (found != offers_.end() && found->second.identity == identity && found->second.what == wanted->what) {
    got = {true, found->second.owner == owner, found->second.about};
    if (found->second.descriptor) reply.descriptor = found->second.descriptor.get();
  }
  reply.payload = payload_of(got);
  return reply;
}

void broker::erase(const marshal::share_token& token) {
  const auto found = offers_.find(token);
  if (found == offers_.end()) return;
  const offer& gone = found->second;
  give_places_back(gone.identity, gone.what, static_cast<bool>(gone.descriptor));
  offers_.erase(found);
}

void broker::forget(owner_id owner) {
  const auto own = by_owner_.find(owner);
  if (own == by_owner_.end()) return;
  for (const marshal::share_token& token : own->second.tokens) erase(token);
  by_owner_.erase(own);
}

}  // namespace outboard::backend
