#include "frontend/cuda/share_descriptor.hh"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace outboard::frontend {
namespace {

struct message {
  std::array<char, 12> mark{'o', 'u', 't', 'b', 'o', 'a', 'r', 'd', ' ', 'f', 'd', '\n'};
  std::uint32_t kind = 0;
  marshal::share_token token{};
};
static_assert(sizeof(message) == 48, "sent as it lies in memory");

}  // namespace

std::optional<share_descriptor> make_share_descriptor(share_kind kind, const marshal::share_token& token) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
    return std::nullopt;
  share_descriptor made{unique_fd(pair[0]), unique_fd(pair[1])};
  message m;
  m.kind = static_cast<std::uint32_t>(kind);
  m.token = token;
  if (::send(made.watch.get(), &m, sizeof m, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof m))
    return std::nullopt;
  return made;
}

std::optional<marshal::share_token> read_share_descriptor(share_kind kind, int fd) {
  message got;
  // One byte more than fits: a longer message is not ours. Peeking leaves it to the next holder.
  std::array<char, sizeof(message) + 1> raw;
  const ssize_t n = ::recv(fd, raw.data(), raw.size(), MSG_PEEK | MSG_DONTWAIT);
  if (n != static_cast<ssize_t>(sizeof got)) return std::nullopt;
  std::memcpy(static_cast<void*>(&got), raw.data(), sizeof got);
  if (got.mark != message{}.mark || got.kind != static_cast<std::uint32_t>(kind)) return std::nullopt;
  return got.token;
}

bool held_by_anyone(const unique_fd& watch) {
  pollfd end{watch.get(), 0, 0};
  return ::poll(&end, 1, 0) == 0 || (end.revents & POLLHUP) == 0;
}

}  // namespace outboard::frontend
