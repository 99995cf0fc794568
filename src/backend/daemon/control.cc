#include "backend/daemon/control.hh"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/errno_text.hh"
#include "wire/cursor.hh"
#include "wire/frame.hh"

namespace outboard::backend {
namespace {

/// A hello, or the snapshot of many devices; below the kernel's usual limit for one packet (208 KiB).
constexpr std::size_t max_packet = 160u << 10;
constexpr std::size_t max_text = 4096;

template <class T>
result<T> finish(const wire::reader& r, T message, const char* name) {
  if (!r.finished()) return failure(std::string("malformed ") + name + " message of a worker");
  return message;
}

void attach_descriptor(msghdr& header, std::span<char> room, int fd) {
  header.msg_control = room.data();
  header.msg_controllen = room.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

unique_fd take_descriptor(msghdr& header) {
  unique_fd taken;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    taken.reset(fd);
  }
  return taken;
}

/// Room for one packet. Each thread has its own for good, and it is not cleared: messages are small, and a
/// peer may send many.
std::span<std::byte> packet_room() {
  thread_local const std::unique_ptr<std::byte[]> room(new std::byte[max_packet]);
  return {room.get(), max_packet};
}

}  // namespace

status send_control(int socket, control_kind kind, std::span<const std::byte> payload, int descriptor) {
  std::array<iovec, 2> parts{iovec{&kind, sizeof kind},
                             iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  if (descriptor >= 0) attach_descriptor(header, room, descriptor);
  while (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return failure("control socket: " + errno_text(errno));
  }
  return {};
}

result<std::optional<control_message>> receive_control(int socket, bool wait) {
  control_message m;
  const std::span<std::byte> packet = packet_room();
  std::array<iovec, 2> parts{iovec{&m.kind, sizeof m.kind}, iovec{packet.data(), packet.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  header.msg_control = room.data();
  // Exactly one descriptor: the kernel closes further ones. CMSG_SPACE has room for two, by its padding, and
  // the second one would stay open in this process.
  header.msg_controllen = CMSG_LEN(sizeof(int));
  ssize_t got;
  while ((got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT))) < 0) {
    // Whoever closes with messages unread resets the other end, which hears that once, before what was sent
    // to it: a worker that refuses its session says why and ends.
    if (errno == EINTR || errno == ECONNRESET) continue;
    if (errno == EAGAIN) return outboard::error{action::retry, "nothing there"};
    return failure("control socket: " + errno_text(errno));
  }
  m.descriptor = take_descriptor(header);
  if (got == 0) return std::optional<control_message>();
  if ((header.msg_flags & MSG_TRUNC) != 0) return failure("a worker's message is larger than its limit");
  const auto payload = packet.first(static_cast<std::size_t>(got) - sizeof m.kind);
  m.payload.assign(payload.begin(), payload.end());
  return std::optional(std::move(m));
}

std::vector<std::byte> encode(const assign_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.put(m.session);
  w.text(m.scheme);
  w.sized(m.hello);
  w.bytes(m.images.challenge);
  w.bytes(m.images.scope);
  w.bytes(m.seal);
  return out;
}

result<assign_message> decode_assign(std::span<const std::byte> payload) {
  wire::reader r(payload);
  assign_message m;
  m.session = r.get<std::uint64_t>();
  m.scheme = r.text(max_text);
  const auto hello = r.sized(wire::max_hello_payload);
  m.hello.assign(hello.begin(), hello.end());
  m.images.challenge = r.get<wire::nonce>();
  m.images.scope = r.get<image_scope>();
  m.seal = r.get<wire::seal>();
  return finish(r, std::move(m), "assign");
}

std::vector<std::byte> encode(const session_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.put(m.worker);
  w.put(m.client_process);
  w.text(m.peer);
  w.text(m.host);
  return out;
}

result<session_message> decode_session(std::span<const std::byte> payload) {
  wire::reader r(payload);
  session_message m;
  m.worker = r.get<std::int32_t>();
  m.client_process = r.get<std::int32_t>();
  m.peer = r.text(max_text);
  m.host = r.text(max_text);
  return finish(r, std::move(m), "session");
}

std::vector<std::byte> encode(const client_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.text(m.peer);
  w.sized(encode(m.assign));
  return out;
}

result<client_message> decode_client(std::span<const std::byte> payload) {
  wire::reader r(payload);
  client_message m;
  m.peer = r.text(max_text);
  auto assign = decode_assign(r.sized(max_packet));
  if (!assign.ok()) return std::move(assign).error();
  m.assign = std::move(*assign);
  return finish(r, std::move(m), "client");
}

std::vector<std::byte> encode_slot(std::uint32_t slot) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  w.put(slot);
  return payload;
}

result<std::uint32_t> decode_slot(std::span<const std::byte> payload) {
  wire::reader r(payload);
  const auto slot = r.get<std::uint32_t>();
  return finish(r, slot, "account");
}

std::vector<std::byte> encode(const ready_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.put(m.microseconds);
  w.put(m.context);
  w.put(m.context_bytes);
  return out;
}

result<ready_message> decode_ready(std::span<const std::byte> payload) {
  wire::reader r(payload);
  ready_message m;
  m.microseconds = r.get<std::uint64_t>();
  m.context = r.flag();
  m.context_bytes = r.get<std::uint64_t>();
  return finish(r, m, "ready");
}

std::vector<std::byte> encode(const ended_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.put(m.orderly);
  w.text(m.why.substr(0, max_text));
  return out;
}

result<ended_message> decode_ended(std::span<const std::byte> payload) {
  wire::reader r(payload);
  ended_message m;
  m.orderly = r.flag();
  m.why = r.text(max_text);
  return finish(r, std::move(m), "ended");
}

std::vector<std::byte> encode(const facts_message& m) {
  std::vector<std::byte> out;
  wire::writer w(out);
  w.text(m.kind);
  w.text(m.description.substr(0, max_text));
  w.sized(m.snapshot);
  w.text(m.no_profiles.substr(0, max_text));
  return out;
}

result<facts_message> decode_facts(std::span<const std::byte> payload) {
  wire::reader r(payload);
  facts_message m;
  m.kind = r.text(max_text);
  m.description = r.text(max_text);
  const auto snapshot = r.sized();
  m.snapshot.assign(snapshot.begin(), snapshot.end());
  m.no_profiles = r.text(max_text);
  return finish(r, std::move(m), "facts");
}

std::vector<std::byte> encode_text(const std::string& text) {
  std::vector<std::byte> out;
  wire::writer(out).text(text.substr(0, max_text));
  return out;
}

result<std::string> decode_text(std::span<const std::byte> payload) {
  wire::reader r(payload);
  std::string text(r.text(max_text));
  return finish(r, std::move(text), "text");
}

}  // namespace outboard::backend
