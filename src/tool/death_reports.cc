#include "tool/death_reports.hh"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

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

std::string fresh_name() { return "outboard-run-" + hex(random_value<std::array<std::byte, 16>>()); }

}  // namespace

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

void death_reports::look() {
  admit();
  for (auto at = holders_.begin(); at != holders_.end();) {
    const auto here = at++;
    if (read(*here)) continue;
    if (here->session && !here->over) end_session(*here->session);
    holders_.erase(here);
    full_ = false;
  }
}

void death_reports::ended(pid_t process) {
  look();
  for (auto at = holders_.begin(); at != holders_.end();) {
    const auto here = at++;
    if (here->process != process) continue;
    if (here->session && !here->over) end_session(*here->session);
    holders_.erase(here);
    full_ = false;
  }
}

void death_reports::end_session(const frontend::run_message& m) const {
  wire::hello hello;
  hello.product = product;
  hello.wanted = wire::purpose_resume;
  const auto complete = [&](wire::hello& h, const wire::nonce& server) {
    h.admin_question = wire::encode_resume_question(
        {.session = m.session, .wish = wire::resume_wish::end_session}, m.secret, {server, h.challenge});
    return true;
  };
  const auto done =
      frontend::dial(means_->transports, m.url, std::move(hello), means_->token,
                     transport::clock::now() + patience, std::chrono::seconds(1), means_->encrypts, complete);
  if (!done.ok())
    log::debug("session ", m.session, " of ", m.url, " could not be ended: ", done.error().message);
}

}  // namespace outboard::tool
