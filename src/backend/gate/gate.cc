#include "backend/gate/gate.hh"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/bounds/guest_sources.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/gate/gate_visitor.hh"
#include "backend/gate/server_key.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "transport/tcp/address.hh"
#include "transport/tls/library.hh"
#include "transport/tls/pem_file.hh"

namespace outboard::backend {
namespace {

constexpr int control = worker_control_descriptor;

/// Accepting costs little, and a flood must not fill the kernel's queue, in which all sources are equal.
constexpr int accepted_at_once = 64;
/// A handshake takes a third of a millisecond; between two looks at the sockets there are so many.
constexpr int answered_at_once = 4;

constexpr std::chrono::milliseconds pause{50};

/// Whose turn it is to be answered: sources go in turn, whatever each of them has.
class answer_queue {
 public:
  void add(const std::string& source, gate_visitor::id id) { waiting_[source].push_back(id); }
  bool empty() const { return waiting_.empty(); }
  gate_visitor::id next() {
    auto at = waiting_.upper_bound(last_);
    if (at == waiting_.end()) at = waiting_.begin();
    const gate_visitor::id id = at->second.front();
    at->second.pop_front();
    last_ = at->first;
    if (at->second.empty()) waiting_.erase(at);
    return id;
  }

 private:
  std::map<std::string, std::deque<gate_visitor::id>> waiting_;
  std::string last_;
};

class gate {
 public:
  gate(event_loop loop, const gate_begin_message& terms, std::shared_ptr<transport::tls::context> context)
      : loop_(std::move(loop)),
        context_(std::move(context)),
        seconds_(terms.seconds),
        sources_(terms.unfinished),
        log_(loop_) {
    host_.wants_to_answer = [this](gate_visitor::id id) { enqueue(id); };
    host_.pass_on = [](gate_visitor& v, unique_fd local) { return pass_on(v, std::move(local)); };
    host_.shaken = [this](gate_visitor::id id) { shaken(id); };
    host_.gone = [this](gate_visitor::id id, const std::string& why) { gone(id, why); };
  }

  int run();

 private:
  struct listening {
    unique_fd socket;
    gate_listen_message about;
    event_loop::id watch = 0;
  };
  struct present {
    std::unique_ptr<gate_visitor> visitor;
    event_loop::id timer = 0;
    bool counted = true;  ///< among those of its source whose handshake is not done
  };

  void on_control();
  void listen(gate_listen_message about, unique_fd socket);
  void accept_from(std::size_t index);
  void admit(unique_fd client, const listening& by);
  void enqueue(gate_visitor::id id);
  void answer_some();
  static bool pass_on(gate_visitor& v, unique_fd local);
  void shaken(gate_visitor::id id);
  void gone(gate_visitor::id id, const std::string& why);
  void erase(gate_visitor::id id);

  event_loop loop_;
  std::shared_ptr<transport::tls::context> context_;
  std::uint32_t seconds_;
  guest_sources sources_;
  bounded_log log_;
  gate_visitor::host host_;
  std::vector<listening> listeners_;
  std::map<gate_visitor::id, present> visitors_;
  answer_queue queue_;
  gate_visitor::id next_ = 1;
  bool answering_soon_ = false, replaced_ = false, ended_ = false;
};

int gate::run() {
  const auto watch = loop_.watch(control, EPOLLIN, [this](std::uint32_t) { on_control(); });
  if (!watch.ok()) return 1;
  while (!ended_ && !(replaced_ && visitors_.empty())) loop_.run_once();
  return 0;
}

void gate::on_control() {
  auto m = receive_control(control, false);
  if (!m.ok() && m.error().next == action::retry) return;
  if (!m.ok() || !*m) {
    ended_ = true;
    return;
  }
  if ((*m)->kind == control_kind::gate_listen) {
    auto about = decoded<gate_listen_message>(**m, "a malformed message of the daemon");
    if (about.ok() && (*m)->descriptor) listen(std::move(*about), std::move((*m)->descriptor));
  } else if ((*m)->kind == control_kind::gate_retire) {
    for (const listening& each : listeners_) loop_.forget(each.watch);
    listeners_.clear();
    replaced_ = true;
  }
}

void gate::listen(gate_listen_message about, unique_fd socket) {
  const std::size_t index = listeners_.size();
  const auto watch = loop_.watch(socket.get(), EPOLLIN, [this, index](std::uint32_t) { accept_from(index); });
  if (!watch.ok()) return log::error(about.url, ": ", watch.error().message);
  listeners_.push_back({std::move(socket), std::move(about), *watch});
}

void gate::accept_from(std::size_t index) {
  if (index >= listeners_.size()) return;
  for (int i = 0; i < accepted_at_once; ++i) {
    unique_fd client(::accept4(listeners_[index].socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client && errno == ECONNABORTED) continue;
    if (client) {
      admit(std::move(client), listeners_[index]);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) {
      // No descriptor is left; the listener stays readable, and without a pause this would spin.
      loop_.change(listeners_[index].watch, 0);
      loop_.after(pause, [this, index] {
        if (index < listeners_.size()) loop_.change(listeners_[index].watch, EPOLLIN);
      });
    }
    return;
  }
}

void gate::admit(unique_fd client, const listening& by) {
  const int on = 1;
  ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto peer = transport::remote_address(client.get());
  if (!peer.ok()) return;  // it has gone
  plain_clients plain = by.about.plain;
  if (plain == plain_clients::of_this_host && !peer->is_loopback()) plain = plain_clients::none;
  const std::string source = source_of(client.get(), "?");
  if (const auto in_the_way = sources_.in_the_way_of(source)) gone(in_the_way->guest, in_the_way->why);
  const gate_visitor::id id = next_++;
  auto engine = context_->start("");
  if (!engine) return;
  present& made = visitors_[id];
  made.visitor = std::make_unique<gate_visitor>(loop_, host_, id, std::move(client), "tcp:" + peer->text(),
                                                plain, std::move(engine));
  made.visitor->source = source;
  sources_.enter(source, id);
  made.timer = loop_.after(std::chrono::seconds(seconds_), [this, id] {
    gone(id, "its TLS handshake was not done within " + std::to_string(seconds_) + " s");
  });
  if (const status started = made.visitor->start(); !started.ok()) gone(id, started.error().message);
}

void gate::enqueue(gate_visitor::id id) {
  queue_.add(visitors_.at(id).visitor->source, id);
  if (std::exchange(answering_soon_, true)) return;
  loop_.after(std::chrono::seconds(0), [this] { answer_some(); });
}

void gate::answer_some() {
  for (int i = 0; i < answered_at_once && !queue_.empty();) {
    const auto at = visitors_.find(queue_.next());
    if (at == visitors_.end()) continue;  // it was in the way of another
    at->second.visitor->answer();
    ++i;
  }
  answering_soon_ = !queue_.empty();
  if (answering_soon_) loop_.after(std::chrono::seconds(0), [this] { answer_some(); });
}

/// The daemon closes what it cannot take. If it reads too slowly, the client goes.
bool gate::pass_on(gate_visitor& v, unique_fd local) {
  const gate_arrival_message about{v.from(), static_cast<bool>(local)};
  if (!send_control(control, control_kind::gate_arrival, payload_of(about), v.client()).ok()) return false;
  return !local || send_control(control, control_kind::gate_local, {}, local.get()).ok();
}

void gate::shaken(gate_visitor::id id) {
  present& p = visitors_.at(id);
  loop_.forget(std::exchange(p.timer, 0));
  sources_.leave(p.visitor->source, id);
  p.counted = false;
}

void gate::gone(gate_visitor::id id, const std::string& why) {
  const auto at = visitors_.find(id);
  if (at == visitors_.end()) return;
  const gate_visitor& v = *at->second.visitor;
  if (!why.empty()) log_.info(v.source, "refused ", v.from(), ": ", why);
  erase(id);
}

void gate::erase(gate_visitor::id id) {
  const auto at = visitors_.find(id);
  loop_.forget(at->second.timer);
  if (at->second.counted) sources_.leave(at->second.visitor->source, id);
  visitors_.erase(at);
}

/// Everything that needs files.
result<std::shared_ptr<transport::tls::context>> prepare(transport::tls::library& by,
                                                         const gate_begin_message& terms) {
  transport::tls::server_terms server;
  server.certificate_required = terms.certificate_required;
  auto certificate = terms.certificate.empty() ? own_certificate(by, terms.own_key)
                                               : transport::tls::read_pem(terms.certificate);
  if (!certificate.ok()) return std::move(certificate).error();
  server.certificate = std::move(*certificate);
  server.key = server.certificate;
  if (!terms.certificate.empty() && !terms.key.empty()) {
    auto key = transport::tls::read_pem(terms.key);
    if (!key.ok()) return std::move(key).error();
    server.key = std::move(*key);
  }
  if (!terms.authority.empty()) {
    auto authority = transport::tls::read_pem(terms.authority);
    if (!authority.ok()) return std::move(authority).error();
    server.authorities = std::move(*authority);
  }
  return by.make_server(server);
}

status confine() {
  if (!confinement_lacks().empty())
    log::warn("the gate is not fully confined: this kernel lacks ", confinement_lacks());
  return confine_the_gate();
}

}  // namespace

int run_gate(pid_t parent) {
  if (const status tied = die_with_parent(parent); !tied.ok()) return 1;
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "outboard-gate");
  const auto failed = [](const error& why) {
    (void)send_control(control, control_kind::failed, encode_text(why.message)).ok();
    return 1;
  };
  auto message = receive_control(control, true);
  if (!message.ok() || !*message) return 1;
  const auto terms = decoded<gate_begin_message>(**message, "a malformed message of the daemon");
  if (!terms.ok()) return failed(terms.error());
  const auto library = transport::tls::load();
  if (!library.ok()) return failed(library.error());
  auto context = prepare(**library, *terms);
  if (!context.ok()) return failed(context.error());
  auto loop = event_loop::make();
  if (!loop.ok()) return failed(loop.error());
  if (const status confined = confine(); !confined.ok())
    return failed(failure("the gate cannot be confined: " + confined.error().message));
  const gate_ready_message ready{(*context)->fingerprint(), (*context)->warning(), (*library)->version()};
  if (!send_control(control, control_kind::gate_ready, payload_of(ready)).ok()) return 1;
  return gate(std::move(*loop), *terms, std::move(*context)).run();
}

}  // namespace outboard::backend
