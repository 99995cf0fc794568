#include "backend/identity/identity_book.hh"

#include <unistd.h>

#include <utility>

#include "backend/identity/unix_names.hh"

namespace outboard::backend {
namespace {

using number_of_name = std::optional<std::uint32_t> (*)(const std::string&);

/// The numbers of a table's users or groups, each of one table only.
status add_numbers(const identity_settings& from, std::string_view word,
                   const std::vector<std::string>& names, number_of_name number_of, std::size_t at,
                   std::map<std::uint32_t, std::size_t>& into) {
  for (const std::string& name : names) {
    const auto number = number_of(name);
    const std::string what = from.origin + ": [identity." + from.name + "]: ";
    if (!number) return failure(what + "there is no " + std::string(word) + " \"" + name + "\"");
    if (!into.emplace(*number, at).second) {
      return failure(what + std::string(word) + " \"" + name + "\" has the number " +
                     std::to_string(*number) +
                     ", which this table or another names already; nobody belongs to two");
    }
  }
  return {};
}

}  // namespace

status check_right(const std::string& person, const share& has, right wanted) {
  if (allows(has.may, wanted)) return {};
  return outboard::error{action::fail,
                         person + " has not the right \"" + std::string(name(wanted)) +
                             "\" here, but: " + rights_text(has.may) +
                             "; `rights` of [identity.NAME] in the server's configuration gives it",
                         no_right};
}

status identity_book::add_persons(const identity_settings& from, place at) {
  OUTBOARD_TRY(add_numbers(from, "user", from.users, user_number, at, by_user_));
  OUTBOARD_TRY(add_numbers(from, "group", from.groups, group_number, at, by_group_));
  for (const std::string& token : from.tokens) by_person_.emplace("token " + token, at);
  for (const std::string& subject : from.certificates) by_person_.emplace("certificate " + subject, at);
  return {};
}

result<identity_book> identity_book::make(std::span<const identity_settings> tables,
                                          const device_finder& devices) {
  identity_book made;
  for (const identity_settings& from : tables) {
    const place at = made.tables_.size();
    table& t = made.tables_.emplace_back();
    t.has = {.account = "identity " + from.name,
             .table = from.name,
             .sessions = from.sessions,
             .waiting = from.waiting,
             .device_memory = from.device_memory,
             .host_memory = from.host_memory,
             .cpu_weight = from.cpu_weight,
             .may = from.may.value_or(0)};
    t.has_rights = from.may.has_value();
    if (!from.devices.empty()) {
      auto uuids = devices(from.devices);
      if (!uuids.ok())
        return failure(from.origin + ": [identity." + from.name + "]: " + uuids.error().message);
      t.has.devices = std::move(*uuids);
    }
    OUTBOARD_TRY(made.add_persons(from, at));
    if (from.name == default_identity) made.default_ = at;
  }
  return made;
}

/// The table of somebody who has several names or groups, which all have to lead to the same.
class one_table {
 public:
  void add(std::size_t at) {
    if (!found_) found_ = at;
    if (*found_ != at) other_ = at;
  }
  const std::optional<std::size_t>& found() const { return found_; }
  const std::optional<std::size_t>& other() const { return other_; }

 private:
  std::optional<std::size_t> found_, other_;
};

/// A name counts before a group, a certificate's subject before its alternative names. Nothing: no table
/// names it.
result<std::optional<identity_book::place>> identity_book::place_of(const proven_identity& who) const {
  if (const auto at = by_person_.find(who.person); !who.user && at != by_person_.end())
    return std::optional(at->second);
  if (who.user) {
    if (const auto at = by_user_.find(*who.user); at != by_user_.end()) return std::optional(at->second);
  }
  one_table only;
  for (const std::uint32_t group : who.groups) {
    if (const auto at = by_group_.find(group); at != by_group_.end()) only.add(at->second);
  }
  for (const std::string& name : who.also) {
    if (const auto at = by_person_.find(name); !who.user && at != by_person_.end()) only.add(at->second);
  }
  if (only.other()) {
    return failure(who.person + (who.user ? " is in groups of [identity." : " has names of [identity.") +
                   tables_[*only.found()].has.table + "] and of [identity." +
                   tables_[*only.other()].has.table + "]; name it in `" +
                   (who.user ? "users" : "certificates") + "` of the one that it belongs to");
  }
  return only.found();
}

result<share_ptr> identity_book::find(const proven_identity& who, rights without_tables) const {
  const auto at = place_of(who);
  if (!at.ok()) return at.error();
  share has;
  bool has_rights = false;
  if (const auto& of = *at ? *at : default_) {
    has = tables_[*of].has;
    has_rights = tables_[*of].has_rights;
  }
  if (!*at) has.account = who.person, has.table.clear();
  if (!has_rights) has.may = without_tables;
  const bool of_this_machine = who.user && !who.by_munge;
  if (of_this_machine && (*who.user == 0 || *who.user == ::geteuid())) has.may = all_rights;
  return std::make_shared<const share>(std::move(has));
}

}  // namespace outboard::backend
