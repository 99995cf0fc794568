// Connections that were accepted and greeted, but have not completed their hello. A guest costs a descriptor
// and a few bytes and has a few seconds; then it is a session, has its admin answer, or is refused with one
// line in the log (bounded_log.hh). Owned by the daemon; its one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/audit_log.hh"
#include "backend/daemon/bounds/answers.hh"
#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/bounds/guest_sources.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/handshake.hh"
#include "backend/disk/image_terms.hh"
#include "backend/identity/identity_book.hh"
#include "backend/identity/token_book.hh"
#include "base/config.hh"
#include "transport/transport.hh"

namespace outboard::backend {

/// A client that the gate has seen (backend/gate).
struct gate_arrival {
  std::string from;
  unique_fd client;
  unique_fd local;  ///< by which the daemon talks with it; none: it speaks without TLS
};

struct accepted_session {
  unique_fd connection;
  std::string scheme;  ///< transport that continues the descriptor in the worker
  std::string from;    ///< for logs
  std::string peer;    ///< what the transport knows of the peer: a user of this machine, or a host
  /// The owner of the session: sessions share things only within one identity.
  std::string identity;
  credential who;      ///< by which it belongs to the identity
  shared_terms terms;  ///< of the identity
  /// The process at the other end, if the kernel vouches for it; otherwise -1.
  std::int32_t process = -1;
  wire::hello hello;  ///< from a local socket it has the user's name as this machine knows it
  image_terms images = {};
  wire::seal seal = {};  ///< with which the welcome is made
  /// Behind the gate: the socket by which the daemon answers as long as nobody else has the client.
  unique_fd answers = {};

  const unique_fd& to_answer() const { return answers ? answers : connection; }
};

/// Whom local sockets serve besides root, our own user, and those who have a row of an identity.
struct local_users {
  std::vector<std::uint32_t> users;
  bool any = false;
};

struct guest_rules {
  const token_book* tokens = nullptr;         ///< outlives the guests
  const identity_book* identities = nullptr;  ///< likewise; a reload changes it
  audit_log* audit = nullptr;                 ///< likewise; null: there is none
  local_users allowed;
  bool rings = true;             ///< offered to clients that could share memory with us
  bool data_connections = true;  ///< offered where memory cannot be shared
  bool compression = true;       ///< of what data connections carry; offered with them
  bool image_recall = false;     ///< offered where memory cannot be shared, if module images are kept
  limit_settings limits;
};

/// A client with a question.
struct asker {
  const wire::hello& hello;
  credential who;
  shared_terms terms;
  std::string from;  ///< as accepted_session has it

  const std::string& identity() const { return terms->name; }
  /// Else it sees what is its own.
  bool sees_all() const { return terms->may.has(right::list_all); }
};

class guests {
 public:
  using begin_session = std::function<std::optional<wire::refusal>(accepted_session&&)>;
  using answer_question = std::function<result<shared_answer>(const asker& who)>;

  guests(event_loop& loop, guest_rules rules, begin_session begin, answer_question answer);
  ~guests();

  void admit(std::unique_ptr<transport::connection> connection, const std::string& scheme);
  /// A client whose encrypted connection the gate has: its own socket, and the one by which we talk with it.
  void admit_behind_gate(gate_arrival&& arrival, const std::string& scheme);

  /// From now on these limits and local users count.
  void change(const limit_settings& limits, const local_users& allowed);

  std::size_t present() const { return guests_.size(); }
  std::uint64_t refused() const { return refused_; }

 private:
  struct guest;
  using guest_id = std::uint64_t;

  guest& enter(std::unique_ptr<guest> made, int named_by, const std::string& peer);
  void greet(guest& g, const std::string& problem);
  bool read_facts(guest& g);
  accepted_session session_of(guest& g, const shared_terms& terms);
  std::uint64_t features_for(const transport::capabilities& can) const;
  std::string peer_problem(const credential& who) const;
  status watch(guest& g);
  void on_events(guest_id id, std::uint32_t events);
  void read_hello(guest& g);
  void read_rest(guest& g);
  void write_answer(guest& g);
  static std::span<const std::byte> left_to_send(const guest& g);
  void finish_hello(guest& g);
  void answer_admin(guest& g, const shared_terms& terms);
  void refuse(guest& g, const wire::refusal& why);
  void refuse_known(guest& g, const identity_terms& terms, const wire::refusal& why);
  void leave(guest& g, shared_answer last_words);
  void drop(guest& g, std::string_view why);
  void gone(guest& g);
  void erase(guest_id id);

  event_loop& loop_;
  guest_rules rules_;
  token_finder find_token_;
  begin_session begin_session_;
  answer_question answer_question_;
  std::map<guest_id, std::unique_ptr<guest>> guests_;  ///< in the order of arrival
  guest_sources sources_;
  bounded_log log_;
  guest_id next_ = 1;
  std::uint64_t refused_ = 0;
};

/// Returns whether the identity stands for known users. A client that nobody vouches for may be anybody.
bool is_known(const std::string& identity);

/// The refusal of a client without this right.
wire::refusal lacks_right(const identity_terms& who, right needed);

}  // namespace outboard::backend
