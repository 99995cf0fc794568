// Guests: connections that have been accepted and greeted and have not finished their hello. A guest costs a
// descriptor and a few bytes, and has a few seconds. It becomes a session, gets its admin answer, or is
// refused with one line in the log (bounded_log.hh). Owned by the daemon; its one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/audit.hh"
#include "backend/daemon/bounds/answers.hh"
#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/bounds/guest_sources.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/handshake.hh"
#include "backend/disk/image_terms.hh"
#include "backend/identity/identity_book.hh"
#include "backend/identity/token_book.hh"
#include "base/configuration/config.hh"
#include "transport/transport.hh"

namespace outboard::backend {

/// A client that the gate has seen (gate.hh).
struct gate_arrival {
  std::string from;
  unique_fd client;
  unique_fd local;  ///< by which the daemon talks with it; none: it speaks without TLS
};

struct accepted_session {
  unique_fd connection;
  std::string scheme;  ///< transport that continues the descriptor in the worker
  std::string from;    ///< for logs
  std::string peer;    ///< who it is as far as the transport knows: a user of this machine, a host
  /// Whose session it is: what sessions share stays among those of one identity.
  std::string identity;
  /// The process at the other end, if the kernel vouches for it; -1: it does not.
  std::int32_t process = -1;
  wire::hello hello;
  image_terms images = {};
  wire::seal seal = {};  ///< with which the welcome is made
  /// Behind the gate: the socket by which the daemon answers until a worker has the client.
  unique_fd answers = {};
  std::optional<std::uint32_t> user = std::nullopt;  ///< of a local socket, by the kernel's word
  std::vector<std::uint32_t> groups = {};            ///< likewise
  bool by_munge = false;                             ///< both by that, as proven_identity has it
  std::vector<std::string> also = {};                ///< alternative names of its certificate
  share_ptr has = nullptr;                           ///< once the daemon has looked it up

  proven_identity who() const { return {identity, user, groups, by_munge, also}; }
  const unique_fd& to_answer() const { return answers ? answers : connection; }
  /// Whether it may go on with a session of this identity that began by this scheme. It must be encrypted if
  /// the session is; otherwise somebody in between could make the session go on where they can read it.
  bool may_join(const std::string& of, const std::string& begun_by) const;
};

struct guest_rules {
  const token_book* tokens = nullptr;     ///< outlives the guests
  munge_settings munge = {};              ///< whether clients over a network may show who they are
  std::vector<std::uint32_t> peer_users;  ///< user ids besides root and ours that unix: serves
  bool any_peer_user = false;
  bool rings = true;             ///< offered to clients that could share memory with us
  bool data_connections = true;  ///< offered where memory cannot be shared
  bool compression = true;       ///< of what they carry, likewise
  bool image_recall = false;     ///< offered likewise: module images are kept
  limit_settings limits;
  auditor audit = {};
};

class guests {
 public:
  using begin_session = std::function<std::optional<wire::refusal>(accepted_session&&)>;
  using answer_question =
      std::function<result<shared_answer>(const std::string& question, const proven_identity& who)>;

  guests(event_loop& loop, guest_rules rules, begin_session begin, answer_question answer);
  ~guests();

  void admit(std::unique_ptr<transport::connection> connection, const std::string& scheme);
  /// A client whose encrypted connection the gate has: its own socket, and the one by which we talk with it.
  void admit_behind_gate(gate_arrival&& arrival, const std::string& scheme);

  /// Users of local sockets that may come in from now on besides root and ours.
  void let_in(std::vector<std::uint32_t> users, bool any);
  /// By the rules for local sockets; by MUNGE, root and our own user are as all others.
  bool may_come(std::uint32_t user, bool by_munge = false) const;

  std::size_t present() const { return guests_.size(); }
  std::uint64_t refused() const { return refused_; }

 private:
  struct guest;
  using guest_id = std::uint64_t;

  std::uint64_t features_for(const transport::capabilities& can) const;
  /// Why it may not come in; empty: it may.
  std::string peer_problem(const result<transport::peer_identity>& peer) const;
  const token_finder* tokens_for(bool vouched) const;
  /// Of a client over a network.
  void ask_for_munge(guest& g) const;
  guest& enter(std::unique_ptr<guest> made, int named_by);
  void greet(guest& g, const std::string& problem);
  /// False: there is more to come, or the guest is gone.
  bool read_facts(guest& g);
  accepted_session session_of(guest& g);
  status watch(guest& g);
  void on_events(guest_id id, std::uint32_t events);
  void read_hello(guest& g);
  void read_rest(guest& g);
  void write_answer(guest& g);
  void finish_hello(guest& g);
  void tell_of_refusal(const guest& g, const std::string& why);
  static std::span<const std::byte> left_to_send(const guest& g);
  void answer_admin(guest& g);
  void refuse(guest& g, const wire::refusal& why);
  void leave(guest& g, shared_answer last_words);
  void drop(guest& g, const std::string& why);
  void erase(guest_id id);

  event_loop& loop_;
  guest_rules rules_;
  token_finder find_token_, find_shared_token_;
  credential_reader read_credential_;
  begin_session begin_session_;
  answer_question answer_question_;
  std::map<guest_id, std::unique_ptr<guest>> guests_;  ///< in the order of arrival
  guest_sources sources_;
  bounded_log log_;
  guest_id next_ = 1;
  std::uint64_t refused_ = 0;
};

/// Whether a named token is this identity: it sees its own sessions alone.
bool is_named_token(const std::string& identity);

/// Whether something vouches for the clients of this identity. Otherwise its sessions may be anybody's.
bool is_known(const std::string& identity);

/// The uid part of guest_rules out of names and numbers; an unknown name is an error.
status resolve_users(const std::vector<std::string>& names, guest_rules& rules);

}  // namespace outboard::backend
