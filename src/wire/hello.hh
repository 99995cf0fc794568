// The messages that open a connection: greeting (server), hello (client), welcome or refusal (server). Either
// side refuses by name what it cannot do. encode_*/decode_* work on a frame's payload. Values; no thread
// rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hh"

namespace outboard::wire {

inline constexpr std::uint64_t magic = 0x4452414f4254554full;  // "OUTBOARD" in memory order
/// Version 2 proves the token both ways (token_proof.hh). Version 1 is refused: a client of it would believe
/// any server.
inline constexpr std::uint16_t protocol_min = 2;
inline constexpr std::uint16_t protocol_max = 2;

/// Features by bit, never reused. Both sides use the intersection.
enum feature : std::uint64_t {
  feature_none = 0,
};
inline constexpr std::uint64_t features_known = feature_none;

using nonce = std::array<std::byte, 32>;
using proof = std::array<std::byte, 32>;
using token_id = std::array<std::byte, 8>;

struct greeting {
  std::uint16_t protocol_lowest = protocol_min;
  std::uint16_t protocol_highest = protocol_max;
  std::uint64_t features = features_known;
  bool token_required = false;
  nonce challenge{};    ///< fresh random bytes, never used twice
  std::string product;  ///< "outboard 0.1.0", for messages
};

enum class purpose : std::uint8_t {
  session = 1,  ///< a program's CUDA session: a worker takes the connection over
  admin = 2,    ///< one question of the command (devices, sessions, doctor): answered in the welcome
};

struct hello {
  std::uint16_t protocol = protocol_max;
  std::uint64_t features = features_known;
  wire::purpose wanted = purpose::session;
  proof answer{};                   ///< token_proof.hh; zeros without a token
  token_id token{};                 ///< which token; zeros without one
  nonce challenge{};                ///< fresh random bytes of the client's
  std::string product;              ///< front-end's version
  std::string host, user, program;  ///< who asks: for lists and logs only, never for decisions
  std::int32_t process = 0;
  std::uint64_t window_base = 0;       ///< device addresses are handed out from here ...
  std::uint64_t window_slot_size = 0;  ///< ... one slot of this size for each device
  std::string admin_question;          ///< purpose::admin
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that the driver itself reads
  std::string credential;  ///< of MUNGE; travels with feature_munge alone
};

struct welcome {
  std::uint16_t protocol = protocol_max;
  std::uint64_t features = features_known;
  std::uint64_t session = 0;
  std::string product;
  std::vector<std::byte> content;  ///< session: the snapshot (marshal/cuda/snapshot.hh); admin: JSON text
  proof answer{};                  ///< token_proof.hh: the last bytes of the payload; zeros without a token
};

enum class refusal_reason : std::uint16_t {
  protocol = 1,   ///< no common protocol version
  token = 2,      ///< missing or wrong
  busy = 3,       ///< too many sessions, or draining: try later
  device = 4,     ///< the device could not be opened on the server
  malformed = 5,  ///< the hello was not understood
  question = 6,   ///< unknown admin question
  window = 7,     ///< the address window cannot be had on the server
  devices = 8,    ///< the client's CUDA_VISIBLE_DEVICES names a device twice
};

struct refusal {
  refusal_reason reason = refusal_reason::malformed;
  std::string message;
};

std::vector<std::byte> encode(const greeting& m);
std::vector<std::byte> encode(const hello& m);
std::vector<std::byte> encode(const welcome& m);
std::vector<std::byte> encode(const refusal& m);

/// A first message that is no greeting is named as such: it is another program's server.
result<greeting> decode_greeting(std::span<const std::byte> payload);
result<hello> decode_hello(std::span<const std::byte> payload);
result<welcome> decode_welcome(std::span<const std::byte> payload);
result<refusal> decode_refusal(std::span<const std::byte> payload);

}  // namespace outboard::wire
