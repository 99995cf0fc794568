// The messages between the daemon and its workers over their control socket (SOCK_SEQPACKET: one packet a
// message). The daemon trusts only their form, because a worker executes a stranger's program. One thread a
// side.
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
  serving,     ///< the worker has taken the connection; from now on it answers for it
  ended,       ///< the session is over
  facts,       ///< a probe's answer
  failed,      ///< why the device could not be opened
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
  // Between the daemon and its gate (gate_messages.hh):
  gate_begin,
  gate_listen,  ///< with a listening socket
  gate_retire,  ///< another gate accepts from now on
  gate_ready,
  gate_arrival,  ///< with a client's socket
  gate_local,    ///< with the local socket for the client of the message before it
  account,       ///< to the worker before `assign`, with the descriptor of what its identity holds
                 ///< (shared_account.hh)
  // About a session that can be resumed (resume_messages.hh):
  door,         ///< to the worker, behind `assign`: wire::resume_terms, with its end of the door
  knock,        ///< to the worker, over the door
  interrupted,  ///< the worker cannot reach its client
  restored,     ///< it can again
  make_room,    ///< from a worker: memory is needed, a session whose client is away should give way
  room,         ///< its answer, one byte: 1 if one has, 0 if there is none
  // About a session that leaves its worker (successor_messages.hh):
  exit,       ///< to the worker, behind `assign`: with its end of what `leave` and `stays` come over
  leave,      ///< to the worker: leave_message
  stays,      ///< from it: why its session has not left
  take_over,  ///< to another worker, in place of `assign`: the same, with its end of what leads to the first
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

/// A session as the helper must know it: which process of which client its worker stands for.
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
  std::uint64_t microseconds = 0;  ///< what opening the device took
  bool context = false;            ///< a primary context is held; false where the device must not be occupied
  std::uint64_t context_bytes = 0;  ///< device memory that the idle worker occupies
};

struct ended_message {
  bool orderly = false;
  std::string why;
};

struct facts_message {
  std::string kind, description;
  std::vector<std::byte> snapshot;  ///< as marshal::encode(snapshot)
  std::string no_profiles;          ///< why profilers see nothing of its work; empty: they do
};

/// Never waits: a full socket is an error, as is a peer that is gone.
status send_control(int socket, control_kind kind, std::span<const std::byte> payload, int descriptor = -1);

/// nullopt: the peer closed. Waits for a message if `wait`; without, nothing there is an error with
/// action::retry.
result<std::optional<control_message>> receive_control(int socket, bool wait);

std::vector<std::byte> encode(const assign_message& m);
std::vector<std::byte> encode(const session_message& m);
std::vector<std::byte> encode(const client_message& m);
std::vector<std::byte> encode(const ready_message& m);
std::vector<std::byte> encode(const ended_message& m);
std::vector<std::byte> encode(const facts_message& m);
/// control_kind::account: which slot of the pages is the worker's.
std::vector<std::byte> encode_slot(std::uint32_t slot);
std::vector<std::byte> encode_text(const std::string& text);

result<assign_message> decode_assign(std::span<const std::byte> payload);
result<session_message> decode_session(std::span<const std::byte> payload);
result<client_message> decode_client(std::span<const std::byte> payload);
result<ready_message> decode_ready(std::span<const std::byte> payload);
result<ended_message> decode_ended(std::span<const std::byte> payload);
result<facts_message> decode_facts(std::span<const std::byte> payload);
result<std::uint32_t> decode_slot(std::span<const std::byte> payload);
result<std::string> decode_text(std::span<const std::byte> payload);

}  // namespace outboard::backend
