#include "backend/worker/device_output.hh"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/errno_text.hh"
#include "wire/output.hh"

namespace outboard::backend {
namespace {

/// What a client that never waits for its kernels may leave here; the driver then waits for it.
constexpr std::size_t most_kept = 64u << 20;

/// Below a frame, and what the client's buffer for it grows to.
constexpr std::size_t piece = 1u << 20;

/// Of a pipe: with more room a burst needs fewer turns of the thread. The system may say no.
constexpr int pipe_room = 1 << 20;

/// One says why a program fails; a program that goes on all the same must not fill memory with them.
constexpr std::size_t most_lines = 16, longest_line = 4096;

static_assert(STDOUT_FILENO == wire::output_text && STDERR_FILENO == wire::output_errors);

}  // namespace

result<std::unique_ptr<device_output>> device_output::take_over() {
  std::unique_ptr<device_output> made(new device_output);
  made->stop_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!made->stop_) return failure("eventfd: " + errno_text(errno));
  for (source& s : made->sources_) {
    s.descriptor = &s == made->sources_.data() ? STDOUT_FILENO : STDERR_FILENO;
    std::array<int, 2> ends{};
    s.before.reset(::fcntl(s.descriptor, F_DUPFD_CLOEXEC, 3));
    if (!s.before || ::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("pipe: " + errno_text(errno));
    s.reading.reset(ends[0]);
    const unique_fd writing(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ::fcntl(ends[0], F_SETPIPE_SZ, pipe_room);
    if (::dup2(writing.get(), s.descriptor) < 0) return failure("dup2: " + errno_text(errno));
  }
  made->thread_ = std::thread([raw = made.get()] { raw->work(); });
  return made;
}

device_output::~device_output() {
  std::fflush(stdout);
  for (source& s : sources_) {
    if (s.before) ::dup2(s.before.get(), s.descriptor);
  }
  const std::uint64_t one = 1;
  if (thread_.joinable() && ::write(stop_.get(), &one, sizeof one) == sizeof one) thread_.join();
}

/// With the lock: takes what is in the pipe now.
void device_output::drain(source& from) {
  while (from.kept.size() < most_kept) {
    std::array<char, 16u << 10> some;
    const ssize_t got = ::read(from.reading.get(), some.data(), some.size());
    if (got <= 0) return;
    from.kept.append(some.data(), static_cast<std::size_t>(got));
    kept_.store(true, std::memory_order_relaxed);
  }
}

void device_output::work() {
  for (;;) {
    std::array<pollfd, 3> wanted{pollfd{stop_.get(), POLLIN, 0}};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::lock_guard lock(mutex_);
      const bool room = sources_[i].kept.size() < most_kept;
      wanted[i + 1] = {room ? sources_[i].reading.get() : -1, POLLIN, 0};
    }
    // With a full store, look again from time to time: whoever empties it does not say so.
    const bool full = wanted[1].fd < 0 || wanted[2].fd < 0;
    if (::poll(wanted.data(), wanted.size(), full ? 10 : -1) < 0 && errno != EINTR) return;
    if (wanted[0].revents) return;
    const std::lock_guard lock(mutex_);
    for (source& s : sources_) drain(s);
  }
}

void device_output::tell(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() >= most_lines) return;
  lines_.emplace_back(line.substr(0, longest_line));
  kept_.store(true, std::memory_order_relaxed);
}

void device_output::flush(const std::function<void(std::uint8_t what, std::string_view text)>& send) {
  std::fflush(stdout);  // the driver may print by way of stdio
  const std::lock_guard lock(mutex_);
  kept_.store(false, std::memory_order_relaxed);
  // One question for both: nearly always there is nothing, and every wait of the program's comes by here.
  std::array<pollfd, 2> written{};
  for (std::size_t i = 0; i < sources_.size(); ++i) written[i] = {sources_[i].reading.get(), POLLIN, 0};
  const bool asked = ::poll(written.data(), written.size(), 0) >= 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    source& s = sources_[i];
    bool more = !asked || written[i].revents != 0 || !s.kept.empty();
    while (more) {
      drain(s);
      more = s.kept.size() >= most_kept;  // then there may be more in the pipe
      for (std::string_view rest = s.kept; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
        send(static_cast<std::uint8_t>(s.descriptor), rest.substr(0, piece));
      }
      s.kept.clear();
    }
  }
  for (const std::string& line : std::exchange(lines_, {})) send(wire::output_log, line);
}

}  // namespace outboard::backend
