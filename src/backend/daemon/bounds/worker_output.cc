#include "backend/daemon/bounds/worker_output.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/log.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// A worker's own log has 33 lines; the rest is for what a crashing process prints, above all a sanitizer.
constexpr double most_at_once = 256 << 10;
constexpr double most_a_second = 1 << 10;
/// While more comes than is passed on, the worker writes at most 0.8 MB a second, which is thrown away.
constexpr std::size_t most_a_round = 16 << 10;
constexpr auto pause_time = 20ms;
constexpr std::size_t longest_line = 4096;
/// More than a pipe holds.
constexpr int most_last_rounds = 64;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

worker_output::worker_output(event_loop& loop, unique_fd from)
    : loop_(loop),
      from_(std::move(from)),
      // The server's owner asked for everything: then a worker's own log has no limit either.
      bytes_(log::enabled(log::level::debug) ? bucket(1e18, 1e18) : bucket(most_at_once, most_a_second)) {}

worker_output::~worker_output() {
  read_all();
  if (!begun_.empty()) write_all(begun_ + '\n');
  if (left_out_ != 0) log::warn(left_out_, " bytes that a worker wrote are left out");
  stop();
}

status worker_output::start() {
  // The pipe's two ends have flags of their own.
  if (::fcntl(from_.get(), F_SETFL, O_NONBLOCK) != 0) return failure("a pipe cannot be made non-blocking");
  return watch();
}

status worker_output::watch() {
  auto made = loop_.watch(from_.get(), EPOLLIN, [this](std::uint32_t) { on_readable(); });
  if (!made.ok()) return std::move(made).error();
  watch_ = *made;
  return {};
}

void worker_output::on_readable() {
  const std::uint64_t before = left_out_;
  if (!read_some() || left_out_ == before) return;
  loop_.forget(std::exchange(watch_, 0));
  timer_ = loop_.after(pause_time, [this] {
    // Without a watch the rest comes at the worker's end.
    (void)watch().ok();
  });
}

void worker_output::read_all() {
  for (int i = 0; i < most_last_rounds && read_some(); ++i) {
  }
}

/// Returns whether there was anything.
bool worker_output::read_some() {
  std::array<char, most_a_round> room;
  ssize_t got;
  while ((got = ::read(from_.get(), room.data(), room.size())) < 0 && errno == EINTR) {
  }
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) return stop(), false;
  const auto size = static_cast<std::size_t>(got);
  if (bytes_.take(event_loop::clock::now(), static_cast<double>(size))) {
    pass_on({room.data(), size});
  } else {
    left_out_ += size;
    begun_.clear();
  }
  return true;
}

/// Whole lines, so that they do not mix with the daemon's.
void worker_output::pass_on(std::string_view text) {
  begun_ += text;
  std::size_t whole = begun_.rfind('\n') + 1;  // 0: there is none
  if (begun_.size() - whole > longest_line) {
    begun_ += '\n';
    whole = begun_.size();
  }
  write_all(std::string_view(begun_).substr(0, whole));
  begun_.erase(0, whole);
}

void worker_output::stop() {
  loop_.forget(std::exchange(watch_, 0));
  loop_.forget(std::exchange(timer_, 0));
}

}  // namespace outboard::backend
