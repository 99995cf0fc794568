#include "frontend/run_report.hh"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace outboard::frontend {
namespace {

/// An abstract address: it ends with `outboard run`, and no file is left.
unique_fd connect_to(std::string_view name) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof at.sun_path - 1) return {};
  std::copy(name.begin(), name.end(), at.sun_path + 1);
  unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!made || ::connect(made.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0) return {};
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(made.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::geteuid())
    return {};
  return made;
}

}  // namespace

result<run_message> decode_run_message(std::span<const std::byte> bytes) {
  wire::reader r(bytes);
  auto m = marshal::take_body<run_message>(r);
  if (!r.finished()) return failure("a program sent a malformed report of its session");
  return m;
}

unique_fd report_to_run(const run_message& m) {
  const char* const name = std::getenv(run_variable);
  unique_fd held = name ? connect_to(name) : unique_fd();
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  marshal::put_body(w, m);
  if (held && ::send(held.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return {};
  return held;
}

void report_end(const unique_fd& held) {
  const char over = 0;
  if (held) (void)!::send(held.get(), &over, sizeof over, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace outboard::frontend
