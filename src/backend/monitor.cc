#include "backend/monitor.hh"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/log.hh"

namespace outboard::backend {

monitor::monitor(monitor_settings settings, workers& w) : settings_(std::move(settings)), workers_(w) {
  workers_.set_watcher(this);
}

monitor::~monitor() {
  workers_.set_watcher(nullptr);
  if (helper_.process < 0) return;
  ::kill(helper_.process, SIGKILL);
  while (::waitpid(helper_.process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

status monitor::start() {
  if (helper_.process >= 0) return {};
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(),
                   {"--parent", std::to_string(::getpid()), "--device", settings_.device, "--monitor"});
  for (const std::string& address : settings_.visible)
    arguments.insert(arguments.end(), {"--visible", address});
  if (settings_.in_order) arguments.emplace_back("--visible-in-order");
  auto helper =
      start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
  if (!helper.ok()) return std::move(helper).error();
  helper_ = std::move(*helper);
  log::debug("NVML helper ", helper_.process, " started");
  workers_.tell_all(*this);
  return {};
}

void monitor::forget_helper() {
  helper_.control.reset();
  helper_.process = -1;
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
  if (const status started = start(); !started.ok())
    return wire::refusal{wire::refusal_reason::busy, started.error().message};
  const client_message m{client.peer, {next_client_++, client.scheme, encode(client.hello), {}, client.seal}};
  if (const status sent = send(control_kind::client, encode(m), client.connection.get()); !sent.ok())
    return wire::refusal{wire::refusal_reason::busy, sent.error().message};
  log::debug("NVML client ", m.assign.session, ": ", client.hello.user, "@", client.hello.host, " ",
             client.hello.program, "[", client.hello.process, "] from ", client.from);
  return std::nullopt;
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
  forget_helper();
}

}  // namespace outboard::backend
