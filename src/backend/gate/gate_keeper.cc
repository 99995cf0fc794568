#include "backend/gate/gate_keeper.hh"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>

#include "backend/daemon/workers/worker_environment.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

/// A gate that ends at once is not started again at once.
constexpr std::chrono::milliseconds longest_delay{2000};
constexpr std::chrono::seconds good_while{5};

constexpr int messages_at_once = 64;

constexpr const char* too_slow = "the gate did not start in time";

/// Reaped after SIGCHLD.
void end_process(const child& one) {
  if (one.process > 0) ::kill(one.process, SIGKILL);
}

}  // namespace

gate_keeper::~gate_keeper() {
  const auto end = [this](running& one) {
    loop_.forget(one.watch);
    end_process(one.process);
  };
  loop_.forget(next_.deadline);
  if (next_.gate) end(*next_.gate);
  if (now_) end(*now_);
  for (const auto& each : before_) end(*each);
}

status gate_keeper::start(const gate_begin_message& terms) {
  terms_ = terms;
  stamps_ = stamps();
  auto first = launch();
  if (!first.ok()) return std::move(first).error();
  pollfd one{(*first)->process.control.get(), POLLIN, 0};
  const bool spoke = ::poll(&one, 1, static_cast<int>(patience_.count())) == 1;
  auto facts = spoke ? take_answer(**first) : failure(too_slow);
  if (!facts.ok()) {
    end_process((*first)->process);
    return failure("TLS: " + facts.error().message);
  }
  OUTBOARD_TRY(take_over(std::move(*first), std::move(*facts)));
  started_ = true;
  came(reason::first);
  return {};
}

/// Starts a gate and tells it what it must know.
result<std::unique_ptr<gate_keeper::running>> gate_keeper::launch() {
  std::vector<std::string> arguments = command_.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", "cpu", "--gate"});
  auto process = start_child(command_.program, arguments, worker_environment({}, own_environment_));
  if (!process.ok()) return std::move(process).error();
  auto made = std::make_unique<running>();
  made->process = std::move(*process);
  const status sent = send_control(made->process.control.get(), control_kind::gate_begin, payload_of(terms_));
  if (sent.ok()) return made;
  end_process(made->process);
  return sent.error();
}

/// What a gate says of its certificate.
result<gate_ready_message> gate_keeper::take_answer(const running& from) {
  auto answer = receive_control(from.process.control.get(), false);
  if (!answer.ok() || !*answer) return failure("the gate ended while it started");
  if ((*answer)->kind == control_kind::failed) {
    const auto why = decode_text((*answer)->payload);
    return failure(why.ok() ? *why : "the gate failed");
  }
  return decoded<gate_ready_message>(**answer, "the gate sent a malformed message");
}

/// From now on this one accepts, and the one before it no longer does.
status gate_keeper::take_over(std::unique_ptr<running> next, gate_ready_message facts) {
  running& at = *next;
  status done;
  for (const served& each : served_) {
    if (!done.ok()) break;
    done = send_control(at.process.control.get(), control_kind::gate_listen, payload_of(each.about),
                        each.listening);
  }
  if (done.ok()) {
    auto watch =
        loop_.watch(at.process.control.get(), EPOLLIN, [this, &at](std::uint32_t) { on_control(at); });
    if (watch.ok()) at.watch = *watch;
    if (!watch.ok()) done = std::move(watch).error();
  }
  if (!done.ok()) return end_process(at.process), done;
  if (now_) {
    (void)send_control(now_->process.control.get(), control_kind::gate_retire, {}).ok();
    before_.push_back(std::move(now_));
  }
  now_ = std::move(next);
  facts_ = std::move(facts);
  began_ = event_loop::clock::now();
  return {};
}

/// Starts a gate beside the one that there may be. The daemon serves meanwhile.
void gate_keeper::begin(reason why) {
  if (next_.gate) return;
  if (const status begun = watch_start(why); !begun.ok()) did_not_come(why, begun.error().message);
}

status gate_keeper::watch_start(reason why) {
  auto made = launch();
  if (!made.ok()) return std::move(made).error();
  auto watch =
      loop_.watch((*made)->process.control.get(), EPOLLIN, [this](std::uint32_t) { started_or_not(); });
  if (!watch.ok()) {
    end_process((*made)->process);
    return std::move(watch).error();
  }
  (*made)->watch = *watch;
  next_ = {std::move(*made), why, loop_.after(patience_, [this] {
             starting late = std::exchange(next_, {});
             loop_.forget(late.gate->watch);
             end_process(late.gate->process);
             did_not_come(late.why, too_slow);
           })};
  return {};
}

void gate_keeper::started_or_not() {
  starting one = std::exchange(next_, {});
  loop_.forget(one.deadline);
  loop_.forget(std::exchange(one.gate->watch, 0));
  auto facts = take_answer(*one.gate);
  if (!facts.ok()) {
    end_process(one.gate->process);
    return did_not_come(one.why, facts.error().message);
  }
  const status taken = take_over(std::move(one.gate), std::move(*facts));
  taken.ok() ? came(one.why) : did_not_come(one.why, taken.error().message);
}

void gate_keeper::came(reason why) {
  if (why != reason::first && why != reason::new_files) return;
  if (!facts_.warning.empty()) log::warn(facts_.warning);
  if (why == reason::first)
    log::info("TLS by ", facts_.version, "; this server's key is ", facts_.fingerprint);
  else
    log::info("certificates were read again; this server's key is ", facts_.fingerprint);
}

void gate_keeper::did_not_come(reason why, const std::string& problem) {
  if (why == reason::new_files) log::warn("the certificate stays as it was: TLS: ", problem);
  if (why == reason::new_terms)
    log::warn("who needs a certificate changes when the gate starts again: TLS: ", problem);
  if (now_) return;
  if (why == reason::ended) log::error("no client can come over tcp: TLS: ", problem);
  delay_ = longest_delay;
  loop_.after(delay_, [this] { begin(reason::ended); });
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
  if (next_.gate) return;  // that one takes its place
  const bool was_good = event_loop::clock::now() - began_ > good_while;
  delay_ = was_good ? std::chrono::milliseconds(0)
                    : std::min(longest_delay, delay_ * 2 + std::chrono::milliseconds(50));
  loop_.after(delay_, [this] { begin(reason::ended); });
}

std::vector<file_stamp> gate_keeper::stamps() const {
  return {stamp_of(terms_.certificate), stamp_of(terms_.key), stamp_of(terms_.authority)};
}

void gate_keeper::reload() {
  if (!started_ || !now_ || next_.gate) return;
  std::vector<file_stamp> found = stamps();
  if (found == stamps_) return;
  stamps_ = std::move(found);
  begin(reason::new_files);
}

void gate_keeper::require_certificates(bool required) {
  if (!started_ || !now_ || next_.gate || terms_.certificate_required == required) return;
  terms_.certificate_required = required;
  begin(reason::new_terms);
}

}  // namespace outboard::backend
