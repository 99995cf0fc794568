// The messages between the daemon and its workers over their control socket (SOCK_SEQPACKET, one message per
// packet). The daemon trusts only the form of a message, because a worker executes a stranger's program. One
// thread on each side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/disk/image_terms.hh"
#include "base/fd.hh"
#include "base/result.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

enum class control_kind : std::uint8_t {
  assign = 1,  ///< to the worker, with the connection's descriptor: serve this session
  ready,       ///< a warm worker has opened its device
  serving,     ///< the worker has taken the connection, and from now on answers its client
  ended,       ///< the session is over
  facts,       ///< a probe's answer
  failed,      ///< the device could not be opened; says why
  // To the helper that answers NVML:
  client,         ///< with the connection's descriptor: answer this client
  session_began,  ///< with the descriptor of its activity page, if it has one
  session_over,
  // What sessions share (broker.hh): a worker asks, the daemon answers at once.
  offer,
  offered,
  seek,
  sought,
  withdraw,
  withdrawn,
  // Between the daemon and its gate (backend/gate/gate_messages.hh):
  gate_begin,
  gate_listen,  ///< with a listening socket
  gate_retire,  ///< another gate accepts from now on
  gate_ready,
  gate_arrival,  ///< with a client's socket
  gate_local,    ///< with the local socket for the client of the message before it
  // About a session that can be resumed (backend/resuming/messages.hh):
  door,         ///< to the worker, behind assign
  knock,        ///< to the worker, over the door
  interrupted,  ///< the worker cannot reach its client
  restored,     ///< it can again
  make_room,    ///< from a worker: memory is needed, sessions without a client should give way
  room,         ///< its answer, one byte: 1 if one has, 0 if there is none
  /// With the descriptor of an identity's page of memory (memory_page.hh): to the worker, behind assign, and
  /// to the helper that answers NVML, behind session_began.
  memory,
};

struct control_message {
  control_kind kind = control_kind::failed;
  std::vector<std::byte> payload;
  unique_fd descriptor;
};

struct assign_message {
  std::uint64_t session = 0;
  std::string scheme;            ///< transport that continues the descriptor
  std::vector<std::byte> hello;  ///< as wire::encode(hello)
  image_terms images = {};
  wire::seal seal = {};  ///< with which the welcome is made
};

struct memory_message {
  std::int32_t worker = -1;  ///< whose slot it is
  std::uint32_t slot = 0;
};

/// What the NVML helper must know of a session: the process of the client that its worker stands for.
struct session_message {
  std::int32_t worker = -1;
  std::int32_t client_process = 0;
  std::string peer, host;  ///< as accepted_session and the hello have them
};

struct client_message {
  std::string peer;
  assign_message assign;
};

struct ready_message {
  std::uint64_t microseconds = 0;   ///< time that opening the device took
  bool context = false;             ///< it holds a primary context; false where it must not occupy the device
  std::uint64_t context_bytes = 0;  ///< device memory that the idle worker occupies
};

struct ended_message {
  bool orderly = false;
  std::string why;
};

struct facts_message {
  std::string kind, description;
  std::vector<std::byte> snapshot;  ///< as marshal::encode(snapshot)
};

/// Never waits. A full or closed socket is an error.
status send_control(int socket, control_kind kind, std::span<const std::byte> payload, int descriptor = -1);

/// nullopt: the peer closed. With `wait`, waits for a message; without, an empty socket is an error with
/// action::retry.
result<std::optional<control_message>> receive_control(int socket, bool wait);

std::vector<std::byte> encode(const assign_message& m);
std::vector<std::byte> encode(const memory_message& m);
std::vector<std::byte> encode(const session_message& m);
std::vector<std::byte> encode(const client_message& m);
std::vector<std::byte> encode(const ready_message& m);
std::vector<std::byte> encode(const ended_message& m);
std::vector<std::byte> encode(const facts_message& m);
std::vector<std::byte> encode_text(const std::string& text);

result<assign_message> decode_assign(std::span<const std::byte> payload);
/// An error, too, if there is no such slot.
result<memory_message> decode_memory(std::span<const std::byte> payload);
result<session_message> decode_session(std::span<const std::byte> payload);
result<client_message> decode_client(std::span<const std::byte> payload);
result<ready_message> decode_ready(std::span<const std::byte> payload);
result<ended_message> decode_ended(std::span<const std::byte> payload);
result<facts_message> decode_facts(std::span<const std::byte> payload);
result<std::string> decode_text(std::span<const std::byte> payload);

}  // namespace outboard::backend
