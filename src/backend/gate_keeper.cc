#include "backend/gate_keeper.hh"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>

#include "backend/worker_environment.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

/// Loading and making keys takes milliseconds; a machine that is starting up may take long.
constexpr int start_patience_ms = 20000;

/// A gate that ends at once is not started again at once.
constexpr std::chrono::milliseconds longest_delay{2000};
constexpr std::chrono::seconds good_while{5};

constexpr int messages_at_once = 64;

}  // namespace

gate_keeper::~gate_keeper() {
  const auto end = [this](running& one) {
    loop_.forget(one.watch);
    if (one.process.process > 0) ::kill(one.process.process, SIGKILL);
  };
  if (now_) end(*now_);
  for (const auto& each : before_) end(*each);
}

status gate_keeper::start(const gate_begin_message& terms) {
  terms_ = terms;
  stamps_ = stamps();
  auto first = launch();
  if (!first.ok()) return std::move(first).error();
  OUTBOARD_TRY(take_over(std::move(*first)));
  started_ = true;
  if (!facts_.warning.empty()) log::warn(facts_.warning);
  log::info("TLS by ", facts_.version, "; this server's key is ", facts_.fingerprint);
  return {};
}

/// Starts a gate, and waits for what it says of its certificate.
result<std::unique_ptr<gate_keeper::running>> gate_keeper::launch() {
  std::vector<std::string> arguments = command_.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", "cpu", "--gate"});
  auto process = start_child(command_.program, arguments, worker_environment({}, own_environment_));
  if (!process.ok()) return std::move(process).error();
  auto made = std::make_unique<running>();
  made->process = std::move(*process);
  const int control = made->process.control.get();
  const auto give_up = [&](const std::string& why) {
    ::kill(made->process.process, SIGKILL);  // reaped after SIGCHLD
    return failure("TLS: " + why);
  };
  if (const status sent = send_control(control, control_kind::gate_begin, payload_of(terms_)); !sent.ok())
    return give_up(sent.error().message);
  pollfd one{control, POLLIN, 0};
  if (::poll(&one, 1, start_patience_ms) != 1) return give_up("the gate did not start in time");
  auto answer = receive_control(control, false);
  if (!answer.ok() || !*answer) return give_up("the gate ended while it started");
  if ((*answer)->kind == control_kind::failed) {
    const auto why = decode_text((*answer)->payload);
    return give_up(why.ok() ? *why : "the gate failed");
  }
  auto facts = decoded<gate_ready_message>(**answer, "the gate sent a malformed message");
  if (!facts.ok()) return give_up(facts.error().message);
  facts_ = std::move(*facts);
  began_ = event_loop::clock::now();
  return made;
}

/// From now on this one accepts, and the one before it no longer does.
status gate_keeper::take_over(std::unique_ptr<running> next) {
  running& at = *next;
  for (const served& each : served_)
    OUTBOARD_TRY(send_control(at.process.control.get(), control_kind::gate_listen, payload_of(each.about),
                              each.listening));
  auto watch = loop_.watch(at.process.control.get(), EPOLLIN, [this, &at](std::uint32_t) { on_control(at); });
  if (!watch.ok()) return std::move(watch).error();
  at.watch = *watch;
  if (now_) {
    (void)send_control(now_->process.control.get(), control_kind::gate_retire, {}).ok();
    before_.push_back(std::move(now_));
  }
  now_ = std::move(next);
  return {};
}

status gate_keeper::serve(int listening, const gate_listen_message& about) {
  served_.push_back({listening, about});
  return send_control(now_->process.control.get(), control_kind::gate_listen, payload_of(about), listening);
}

void gate_keeper::on_control(running& from) {
  for (int i = 0; i < messages_at_once; ++i) {
    auto m = receive_control(from.process.control.get(), false);
    if (!m.ok() && m.error().next == action::retry) return;
    if (!m.ok() || !*m) return ended(from);
    if ((*m)->kind == control_kind::gate_local && from.half.client) {
      from.half.local = std::move((*m)->descriptor);
      if (from.half.local) arrived_(std::exchange(from.half, {}));
      continue;
    }
    const auto about = decoded<gate_arrival_message>(**m, "the gate sent a malformed message");
    if ((*m)->kind != control_kind::gate_arrival || !about.ok() || !(*m)->descriptor) {
      log::warn("the gate is ended: it sent what it should not");
      ::kill(from.process.process, SIGKILL);
      return;
    }
    from.half = {about->from, std::move((*m)->descriptor), {}};
    if (!about->encrypted) arrived_(std::exchange(from.half, {}));
  }
}

/// Its control socket is closed.
void gate_keeper::ended(running& one) {
  loop_.forget(std::exchange(one.watch, 0));
  if (&one != now_.get()) {
    std::erase_if(before_, [&](const auto& each) { return each.get() == &one; });
    return;
  }
  log::warn("the gate ended, and is started again; sessions go on");
  now_.reset();
  const bool was_good = event_loop::clock::now() - began_ > good_while;
  delay_ = was_good ? std::chrono::milliseconds(0)
                    : std::min(longest_delay, delay_ * 2 + std::chrono::milliseconds(50));
  loop_.after(delay_, [this] { begin_again(); });
}

void gate_keeper::begin_again() {
  auto next = launch();
  status done = next.ok() ? take_over(std::move(*next)) : status(next.error());
  if (done.ok()) return;
  log::error("no client can come over tcp: ", done.error().message);
  delay_ = longest_delay;
  loop_.after(delay_, [this] { begin_again(); });
}

std::vector<std::int64_t> gate_keeper::stamps() const {
  std::vector<std::int64_t> all;
  for (const std::string* path : {&terms_.certificate, &terms_.key, &terms_.authority}) {
    struct stat about {};
    if (path->empty() || ::stat(path->c_str(), &about) != 0) {
      all.push_back(-1);
      continue;
    }
    for (const std::int64_t n : {std::int64_t(about.st_ino), std::int64_t(about.st_size),
                                 std::int64_t(about.st_mtim.tv_sec), std::int64_t(about.st_mtim.tv_nsec)})
      all.push_back(n);
  }
  return all;
}

void gate_keeper::reload() {
  if (!started_ || !now_) return;
  std::vector<std::int64_t> found = stamps();
  if (found == stamps_) return;
  stamps_ = std::move(found);
  if (!replace("the certificate stays as it was: ")) return;
  if (!facts_.warning.empty()) log::warn(facts_.warning);
  log::info("certificates were read again; this server's key is ", facts_.fingerprint);
}

void gate_keeper::require_certificates(bool required) {
  if (!started_ || !now_ || terms_.certificate_required == required) return;
  terms_.certificate_required = required;
  (void)replace("who needs a certificate changes when the gate starts again: ");
}

/// By a gate with the terms of now. `what`: what is said before the reason if that fails.
bool gate_keeper::replace(const char* what) {
  const gate_ready_message old = facts_;
  auto next = launch();
  const status done = next.ok() ? take_over(std::move(*next)) : status(next.error());
  if (done.ok()) return true;
  facts_ = old;
  log::warn(what, done.error().message);
  return false;
}

}  // namespace outboard::backend
