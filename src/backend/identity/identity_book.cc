#include "backend/identity/identity_book.hh"

#include <unistd.h>

#include <fmt/format.h>

#include "backend/identity/local_names.hh"

namespace outboard::backend {
namespace {

shared_terms terms_by(std::string name, const identity_settings& s) {
  return std::make_shared<const identity_terms>(identity_terms{
      .name = std::move(name),
      .may = rights::of(s.rights),
      .devices = s.devices,
      .sessions = s.sessions,
      .running = s.running,
      .waiting = s.waiting,
      .weight = s.weight,
      .priority = s.priority,
      .memory = {.device = s.device_memory, .host = s.host_memory, .session_host = s.session_host_memory}});
}

/// Adds a member under its key, which only one row may have.
template <class Key>
status add_to(std::map<Key, shared_terms>& members, const Key& key, const shared_terms& row,
              const std::string& member) {
  const auto [at, is_new] = members.emplace(key, row);
  if (is_new) return {};
  return failure(fmt::format("identity.{}: \"{}\" already belongs to the identity {}", row->name, member,
                             at->second->name));
}

}  // namespace

result<identity_book> identity_book::make(const config& c) {
  identity_book made;
  made.for_all_ = c.identity;
  for (const named_identity& row : c.identities) {
    const shared_terms terms = terms_by(row.name, row.is);
    made.rows_.push_back(terms);
    std::vector<std::string> members = row.is.members;
    if (members.empty()) members = {fmt::format("token {}", row.name)};
    for (const std::string& member : members) {
      const std::string name = member.substr(member.find(' ') + 1);
      if (member.starts_with("token") || member.starts_with("certificate")) {
        OUTBOARD_TRY(add_to(made.tokens_, member, terms, member));
      } else if (member.starts_with("user")) {
        const auto user = user_named(name);
        if (!user) return failure(fmt::format("identity.{}: there is no user \"{}\"", row.name, name));
        OUTBOARD_TRY(add_to(made.users_, *user, terms, member));
      } else {
        const auto number = group_named(name);
        if (!number) return failure(fmt::format("identity.{}: there is no group \"{}\"", row.name, name));
        made.groups_.emplace(*number, terms);
      }
    }
  }
  return made;
}

shared_terms identity_book::row_of(const credential& who) const {
  if (!who.user) {
    const auto token = tokens_.find(who.name);
    return token == tokens_.end() ? nullptr : token->second;
  }
  if (const auto user = users_.find(*who.user); user != users_.end()) return user->second;
  shared_terms found;
  for (const std::uint32_t number : who.groups) {
    const auto [first, last] = groups_.equal_range(number);
    for (auto at = first; at != last; ++at) {
      if (!found || at->second->name < found->name) found = at->second;
    }
  }
  return found;
}

shared_terms identity_book::terms_of(const credential& who) const {
  const shared_terms row = row_of(who);
  if (row && !is_local_administrator(who)) return row;
  identity_terms terms = row ? *row : *terms_by(who.name, for_all_);
  if (is_local_administrator(who)) terms.may = rights::all();
  return std::make_shared<const identity_terms>(std::move(terms));
}

bool identity_book::has_row_for(std::uint32_t user, const std::vector<std::uint32_t>& groups) const {
  return row_of({.name = {}, .user = user, .groups = groups}) != nullptr;
}

bool is_local_administrator(const credential& who) {
  return who.user && (*who.user == 0 || *who.user == ::geteuid());
}

}  // namespace outboard::backend
