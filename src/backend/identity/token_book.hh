// The tokens that a running server knows: the shared one of its token file, which is one identity for all who
// have it, and named ones, each an identity of its own, from a file that it reads again when that changes.
// Owned by the daemon; its one thread.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "backend/identity/named_tokens.hh"
#include "base/file_stamp.hh"

namespace outboard::backend {

/// What came of reading the file again, as identities.
struct token_changes {
  std::vector<std::string> gone, made;  ///< a token that was made anew is in both
  std::string problem;                  ///< why it cannot be read, once; empty: it can, or that was said
};

class token_book {
 public:
  token_book() = default;
  /// `shared`: of the token that all may know; none: there is none. `path` empty: there are no named ones. A
  /// file that cannot be read is an error; one that does not exist yet is not.
  static result<token_book> open(const std::optional<wire::token_verifier>& shared, std::string path);

  /// Must a client prove a token? `vouched`: the kernel says which user it is; then only the shared one is
  /// asked for. Once there have been named tokens, a network client needs one, even if all were revoked.
  bool asks(bool vouched) const { return shared_ || (!vouched && had_named_); }

  /// What checks this token; nothing: no token has this id. Of a client that is `vouched` for, only the
  /// shared one counts: its identity is the user's, which no named token's revocation would end.
  std::optional<wire::token_verifier> find(const wire::token_id& id, bool vouched = false) const;
  /// The identity that it stands for; empty: none.
  std::string identity_of(const wire::token_id& id) const;
  /// Why this token lets nobody in although it exists; empty: it does.
  std::string problem_of(const wire::token_id& id, std::time_t now) const;

  /// With which the names of kept files are made (wire::file_secret); empty without a shared token.
  std::span<const std::byte> secret() const { return secret_; }
  std::size_t named() const { return named_.size(); }

  /// Reads the file again if it has changed. Sessions of identities that are no more must end. While the file
  /// cannot be read, what was known stays.
  token_changes reload();

 private:
  const named_token* find_named(const wire::token_id& id) const;

  std::vector<std::byte> secret_;
  std::optional<wire::token_verifier> shared_;
  std::string path_;
  file_stamp read_;
  std::string told_;  ///< why it could not be read at the last look; empty: it could
  std::vector<named_token> named_;
  bool had_named_ = false;
};

}  // namespace outboard::backend
