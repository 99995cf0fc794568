#include "backend/identity/token_book.hh"

#include <algorithm>
#include <utility>

namespace outboard::backend {
namespace {

std::string identity_named(const std::string& name) { return "token " + name; }

/// The identities of those that are not in the other list. A token that was made anew under its name is
/// another one, and its owner another person.
std::vector<std::string> missing_in(const std::vector<named_token>& other,
                                    const std::vector<named_token>& list) {
  std::vector<std::string> missing;
  for (const named_token& one : list) {
    const auto same = [&](const named_token& t) {
      return t.verifier.id == one.verifier.id && t.name == one.name;
    };
    if (std::ranges::none_of(other, same)) missing.push_back(identity_named(one.name));
  }
  return missing;
}

}  // namespace

result<token_book> token_book::open(const std::optional<wire::token_verifier>& shared, std::string path) {
  token_book made;
  if (shared) {
    const sha256_digest secret = wire::file_secret(*shared);
    made.secret_.assign(secret.begin(), secret.end());
    made.shared_ = *shared;
  }
  made.path_ = std::move(path);
  made.read_ = stamp_of(made.path_);
  if (made.path_.empty()) return made;
  auto named = read_named_tokens(made.path_);
  if (!named.ok()) return std::move(named).error();
  made.named_ = std::move(*named);
  made.had_named_ = made.read_ != file_stamp{};
  return made;
}

const named_token* token_book::find_named(const wire::token_id& id) const {
  const auto found = std::ranges::find_if(named_, [&](const named_token& t) { return t.verifier.id == id; });
  return found == named_.end() ? nullptr : &*found;
}

std::optional<wire::token_verifier> token_book::find(const wire::token_id& id, bool vouched) const {
  if (shared_ && shared_->id == id) return shared_;
  if (vouched) return std::nullopt;
  const named_token* named = find_named(id);
  return named ? std::optional(named->verifier) : std::nullopt;
}

std::string token_book::identity_of(const wire::token_id& id) const {
  if (shared_ && shared_->id == id) return "token";
  const named_token* named = find_named(id);
  return named ? identity_named(named->name) : std::string();
}

std::string token_book::problem_of(const wire::token_id& id, std::time_t now) const {
  const named_token* named = find_named(id);
  if (!named || named->expires == 0 || now < named->expires) return {};
  return "the token \"" + named->name + "\" expired on " + minute_text(named->expires) +
         "; ask the server's administrator for a new one";
}

token_changes token_book::reload() {
  const file_stamp now = stamp_of(path_);
  if (now == read_) return {};
  auto fresh = read_named_tokens(path_);
  if (!fresh.ok()) {
    // It is tried again at the next look: what keeps it from being read may pass, and a token may have been
    // revoked.
    const bool told = std::exchange(told_, fresh.error().message) == fresh.error().message;
    return {.gone = {}, .made = {}, .problem = told ? "" : told_};
  }
  read_ = now;
  told_.clear();
  token_changes changes{
      .gone = missing_in(*fresh, named_), .made = missing_in(named_, *fresh), .problem = {}};
  named_ = std::move(*fresh);
  had_named_ = had_named_ || now != file_stamp{};
  return changes;
}

}  // namespace outboard::backend
