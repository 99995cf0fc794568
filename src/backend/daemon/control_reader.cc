#include "backend/daemon/control_reader.hh"

#include <sys/epoll.h>

#include <utility>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// An honest worker sends three messages, and one or two for each thing that its program shares; a program
/// may share thousands at its start. One message costs the daemon some 10 us, so a worker takes a hundredth
/// of its thread in the long run, and 0.2 ms between two looks at everybody else.
constexpr double most_at_once = 4096;
constexpr double most_a_second = 1000;
constexpr int most_a_round = 16;
constexpr auto pause_time = 50ms;
/// More than the kernel keeps of one socket's small messages.
constexpr int most_last = 1024;

}  // namespace

control_reader::control_reader(event_loop& loop, int socket, on_message message, on_breach breach)
    : loop_(loop),
      socket_(socket),
      on_message_(std::move(message)),
      on_breach_(std::move(breach)),
      messages_(most_at_once, most_a_second) {}

control_reader::~control_reader() { stop(); }

status control_reader::start() { return watch(); }

status control_reader::watch() {
  auto made = loop_.watch(socket_, EPOLLIN, [this](std::uint32_t) { on_readable(); });
  if (!made.ok()) return std::move(made).error();
  watch_ = *made;
  return {};
}

void control_reader::on_readable() {
  for (int i = 0; i < most_a_round; ++i) {
    if (!messages_.has(event_loop::clock::now())) return pause();
    if (read_one() != progress::read) return;
  }
}

/// The worker waits, because its socket is soon full; nobody else does.
void control_reader::pause() {
  loop_.forget(std::exchange(watch_, 0));
  timer_ = loop_.after(pause_time, [this] {
    if (const status watched = watch(); !watched.ok()) breach(watched.error().message);
  });
}

void control_reader::read_last() {
  process_ended_ = true;
  for (int i = 0; i < most_last && !over_ && read_one() == progress::read; ++i) {
  }
  stop();
}

control_reader::progress control_reader::read_one() {
  auto message = receive_control(socket_, false);
  if (!message.ok() && message.error().next == action::retry) return progress::nothing_there;
  if (!message.ok()) {
    breach(message.error().message);
  } else if (!*message) {
    stop();  // it has closed its end
  } else {
    (void)messages_.take(event_loop::clock::now());
    const status understood = on_message_(**message);
    if (understood.ok() || process_ended_) return progress::read;
    breach(understood.error().message);
  }
  return progress::over;
}

void control_reader::stop() {
  over_ = true;
  loop_.forget(std::exchange(watch_, 0));
  loop_.forget(std::exchange(timer_, 0));
}

void control_reader::breach(const std::string& why) {
  stop();
  if (!process_ended_) on_breach_(why);
}

}  // namespace outboard::backend
