#include "tool/death_reports.hh"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/errno_text.hh"
#include "base/hex.hh"
#include "base/log.hh"
#include "base/random.hh"
#include "base/version.hh"

namespace outboard::tool {
namespace {

/// The session has to be gone within a second.
constexpr std::chrono::milliseconds patience{700};
/// Programs of one run that have sessions.
constexpr std::size_t most_holders = 4096;
constexpr int backlog = 128;
/// A part of the connections that a server lets be while their handshakes last.
constexpr std::size_t most_at_once = 32;

std::string fresh_name() { return "outboard-run-" + hex(random_value<std::array<std::byte, 16>>()); }

/// False: the server has not answered in time.
bool end_session(const asking_means& means, const frontend::run_message& m) {
  wire::hello hello;
  hello.product = product;
  hello.wanted = wire::purpose_resume;
  const auto complete = [&](wire::hello& h, const wire::nonce& server) {
    h.admin_question = wire::encode_resume_question(
        {.session = m.session, .wish = wire::resume_wish::end_session}, m.secret, {server, h.challenge});
    return true;
  };
  const auto until = transport::clock::now() + patience;
  const auto done = frontend::dial(means.transports, m.url, std::move(hello), means.token, until,
                                   std::chrono::seconds(1), means.encrypts, complete);
  if (done.ok()) return true;
  log::debug("session ", m.session, " of ", m.url, " could not be ended: ", done.error().message);
  return transport::clock::now() < until;
}

}  // namespace

/// Ends sessions in threads of its own: a far server takes some round trips for each, and programs die at any
/// time. Those that are left are ended before this object goes.
class death_reports::endings {
 public:
  explicit endings(const asking_means& means) : means_(means) {}
  ~endings() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    more_.notify_all();
  }
  void add(frontend::run_message m) {
    std::unique_lock lock(mutex_);
    left_.push_back({std::move(m), transport::clock::now()});
    try {
      if (idle_ < left_.size() && helpers_.size() < most_at_once) helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // Those that there are do it, else we.
      if (helpers_.empty()) end_next(lock);
    }
    more_.notify_one();
  }

 private:
  struct dead {
    frontend::run_message session;
    transport::clock::time_point since;
  };

  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      more_.wait(lock, [this] { return stopping_ || !left_.empty(); });
      --idle_;
      if (left_.empty()) return;
      end_next(lock);
    }
  }

  /// A server that lets one of them wait in vain would do so with all that died before that.
  void end_next(std::unique_lock<std::mutex>& lock) {
    const dead next = std::move(left_.front());
    left_.pop_front();
    const auto silent = silent_since_.find(next.session.url);
    if (silent != silent_since_.end() && next.since < silent->second) return;
    lock.unlock();
    const bool answers = end_session(means_, next.session);
    lock.lock();
    if (!answers) silent_since_[next.session.url] = transport::clock::now();
  }

  const asking_means& means_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable more_;
  std::deque<dead> left_;
  std::map<std::string, transport::clock::time_point> silent_since_;
  std::size_t idle_ = 0;  ///< helpers that wait
  bool stopping_ = false;
  std::vector<std::jthread> helpers_;  ///< the last member: they end before the others go
};

death_reports::death_reports(const asking_means& means, unique_fd socket, std::string name)
    : socket_(std::move(socket)), name_(std::move(name)), endings_(std::make_unique<endings>(means)) {}
death_reports::death_reports(death_reports&&) noexcept = default;
death_reports::~death_reports() = default;

result<death_reports> death_reports::make(const asking_means& means) {
  std::string name = fresh_name();
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::ranges::copy(name, at.sun_path + 1);
  unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
      ::listen(socket.get(), backlog) != 0)
    return failure(fmt::format("a socket for reports of the program: {}", errno_text(errno)));
  return death_reports(means, std::move(socket), std::move(name));
}

void death_reports::add_to(std::vector<pollfd>& list) const {
  list.push_back({full_ ? -1 : socket_.get(), POLLIN, 0});
  for (const holder& each : holders_) list.push_back({each.held.get(), POLLIN, 0});
}

void death_reports::admit() {
  while (true) {
    unique_fd held(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!held) {
      // Those that wait would wake us again and again; they are let in when a descriptor is free.
      full_ = errno == EMFILE || errno == ENFILE;
      return;
    }
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = ::getsockopt(held.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    if (!known || peer.uid != ::geteuid() || holders_.size() >= most_holders) continue;
    holders_.push_back({std::move(held), peer.pid, std::nullopt, false});
  }
}

/// False: the process has closed its end, by dying if `over` does not say otherwise.
bool death_reports::read(holder& from) {
  std::array<std::byte, 8192> room;
  while (true) {
    const ssize_t got = ::recv(from.held.get(), room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    if (from.session) {
      from.over = true;
      continue;
    }
    auto m = frontend::decode_run_message(std::span(room).first(static_cast<std::size_t>(got)));
    if (!m.ok()) return from.over = true, false;
    from.session = std::move(*m);
  }
}

void death_reports::look() { reap(-1); }

void death_reports::ended(pid_t process) { reap(process); }

void death_reports::reap(pid_t dead) {
  admit();
  for (auto at = holders_.begin(); at != holders_.end();) {
    const auto here = at++;
    if (read(*here) && here->process != dead) continue;
    if (here->session && !here->over) endings_->add(std::move(*here->session));
    holders_.erase(here);
    full_ = false;
  }
}

}  // namespace outboard::tool
