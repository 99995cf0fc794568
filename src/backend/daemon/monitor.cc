#include "backend/daemon/monitor.hh"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/queue/waiting_line.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

/// Each keeps a descriptor here for as long as it asks: with that a client is ended at once, whatever the
/// helper does. A message to the helper would wait while that opens a driver, and be no more than a request
/// to a process that reads strangers' bytes; and the helper would have to report each client that leaves.
constexpr std::size_t most_revocable = 512;

/// What keeps a helper from confining itself does not mend itself soon, and each try costs a process.
constexpr std::chrono::seconds pause_after_unconfined{30};

constexpr const char* unconfined =
    "the NVML helper cannot confine itself, and the server's log says why; with worker.confine = \"off\" "
    "it starts unconfined";

}  // namespace

monitor::monitor(event_loop& loop, monitor_settings settings, workers& w)
    : loop_(loop), settings_(std::move(settings)), workers_(w) {
  workers_.set_watcher(this);
}

monitor::~monitor() {
  while (!revocable_.empty()) forget_client(revocable_.begin()->first);
  workers_.set_watcher(nullptr);
  if (helper_.process < 0) return;
  ::kill(helper_.process, SIGKILL);
  while (::waitpid(helper_.process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

status monitor::start() {
  if (helper_.process >= 0) return {};
  if (event_loop::clock::now() < not_before_) return failure(unconfined);
  if (const std::string why = why_no_helper(settings_.confine, helper_kind::nvml); !why.empty())
    return failure(why);
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(),
                   {"--parent", std::to_string(::getpid()), "--device", settings_.device, "--monitor"});
  for (const std::string& address : settings_.visible)
    arguments.insert(arguments.end(), {"--visible", address});
  if (settings_.in_order) arguments.emplace_back("--visible-in-order");
  if (settings_.confine != confine_choice::off) arguments.emplace_back("--confine-helper");
  auto helper =
      start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
  if (!helper.ok()) return std::move(helper).error();
  helper_ = std::move(*helper);
  log::debug("NVML helper ", helper_.process, " started");
  workers_.tell_all(*this);
  return {};
}

void monitor::forget_helper() {
  // Nobody answers them any more.
  while (!revocable_.empty()) forget_client(revocable_.begin()->first);
  helper_.control.reset();
  helper_.process = -1;
}

/// Of a helper that has read nothing of them: nobody has answered their hellos.
void monitor::refuse_all(const std::string& why) {
  for (const auto& [id, client] : revocable_) {
    if (!client.encrypted) send_refusal(client.connection, {wire::refusal_reason::device, why});
  }
}

status monitor::send(control_kind kind, const std::vector<std::byte>& payload, int descriptor) {
  const status sent = send_control(helper_.control.get(), kind, payload, descriptor);
  if (sent.ok()) return {};
  // It has ended, or it does not listen: then what it knows is no longer right. The next client gets another.
  log::warn("NVML helper ", helper_.process, " is ended: ", sent.error().message);
  ::kill(helper_.process, SIGKILL);
  return sent.error();
}

std::optional<wire::refusal> monitor::begin(accepted_session&& client) {
  if (const status started = start(); !started.ok()) {
    const bool later = started.error().next == action::retry;
    return wire::refusal{later ? wire::refusal_reason::busy : wire::refusal_reason::device,
                         started.error().message};
  }
  if (revocable_.size() >= most_revocable)
    return wire::refusal{wire::refusal_reason::busy, "too many NVML clients"};
  const client_message m{client.peer, {next_client_++, client.scheme, encode(client.hello), {}, client.seal}};
  if (const status sent = send(control_kind::client, encode(m), client.connection.get()); !sent.ok())
    return wire::refusal{wire::refusal_reason::busy, sent.error().message};
  remember(m.assign.session, client);
  log::debug("NVML client ", m.assign.session, ": ", client.hello.user, "@", client.hello.host, " ",
             client.hello.program, "[", client.hello.process, "] from ", client.from);
  return std::nullopt;
}

/// A client that cannot be remembered is let go: what could not end must not begin.
void monitor::remember(std::uint64_t id, const accepted_session& client) {
  revocable& kept = revocable_[id];
  kept.who = client.who();
  kept.connection.reset(::fcntl(client.connection.get(), F_DUPFD_CLOEXEC, 0));
  kept.encrypted = client.answers.get() >= 0;
  // Only for its end: the bytes are the helper's.
  const auto watch = loop_.watch(kept.connection.get(), EPOLLRDHUP | EPOLLONESHOT,
                                 [this, id](std::uint32_t) { forget_client(id); });
  if (watch.ok()) {
    kept.watch = *watch;
    return;
  }
  ::shutdown(client.connection.get(), SHUT_RDWR);
  revocable_.erase(id);
}

void monitor::forget_client(std::uint64_t id) {
  const auto at = revocable_.find(id);
  loop_.forget(at->second.watch);
  ::shutdown(at->second.connection.get(), SHUT_RDWR);
  revocable_.erase(at);
}

void monitor::end_some(const std::function<bool(const proven_identity&)>& may_not) {
  for (auto at = revocable_.begin(); at != revocable_.end();) {
    const auto one = at++;
    if (may_not(one->second.who)) forget_client(one->first);
  }
}

void monitor::session_began(const session_info& session, int activity) {
  if (helper_.process < 0) return;
  const session_message m{session.worker, session.client_process, session.peer, session.host};
  (void)send(control_kind::session_began, encode(m), activity).ok();
}

void monitor::session_over(pid_t worker) {
  if (helper_.process < 0) return;
  (void)send(control_kind::session_over, encode(session_message{.worker = worker, .peer = {}, .host = {}}),
             -1)
      .ok();
}

void monitor::other_child_ended(pid_t process, int wait_status) {
  if (process != helper_.process) return;
  log::warn("NVML helper ", process, " ended: ", describe_exit(wait_status));
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == exit_unconfined) {
    not_before_ = event_loop::clock::now() + pause_after_unconfined;
    refuse_all(unconfined);
  }
  forget_helper();
}

}  // namespace outboard::backend
