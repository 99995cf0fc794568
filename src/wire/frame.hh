// Frames: what travels on a connection after the hello, and the hello's own messages. A fixed 40-byte header,
// then `size` bytes. See docs/wire.md for the grammar. Values; no thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hh"

namespace outboard::wire {

enum class frame_kind : std::uint16_t {
  greeting = 1,   ///< server, first bytes of a connection
  hello = 2,      ///< client's answer
  welcome = 3,    ///< server: the session (or the admin request) is accepted; carries the snapshot
  refusal = 4,    ///< server: why not; the connection ends
  post = 5,       ///< client: a request without reply
  call = 6,       ///< client: a request with reply
  reply = 7,      ///< server: answers the call with the same ticket
  notice = 8,     ///< server: a sticky error of a context
  data = 9,       ///< server: bytes of a finished device-to-host copy for an address of the client
  lane_end = 10,  ///< client: the lane's thread has ended
  goodbye = 11,   ///< client: orderly end
  output = 12,    ///< server: what the device printed; goes to the client's stdout or stderr
  callback = 13,  ///< server: a function of the program is to run (callback_body), or is no longer needed
  callback_done = 14,  ///< client: it has run; the ticket repeats the callback's
  descriptor = 15,     ///< server: the next byte carries a descriptor, for the call with this ticket
  aside = 16,          ///< server: as data, but the bytes come over a data connection
  packed = 17,         ///< on data connections: as data, but packed (marshal/piece_packing.hh)
  count
};

struct frame_header {
  std::uint32_t size = 0;  ///< bytes behind the header
  frame_kind kind = frame_kind::post;
  std::uint16_t flags = 0;    ///< none defined: must be 0
  std::uint32_t opcode = 0;   ///< function of the request; 0 where it means nothing
  std::uint32_t lane = 0;     ///< the client thread's number, from 1; 0 outside lanes
  std::uint64_t ticket = 0;   ///< session-wide, from 1, in the order of sending; a reply repeats its call's
  std::uint64_t ack = 0;      ///< highest ticket the sender has executed (server) or had answered (client)
  std::uint64_t context = 0;  ///< handle of the context the request runs in; 0: none
};

/// The header of the reply to this request, but for what its sender fills in.
inline frame_header reply_to(const frame_header& request) {
  frame_header reply;
  reply.kind = frame_kind::reply;
  reply.opcode = request.opcode;
  reply.lane = request.lane;
  reply.ticket = request.ticket;
  return reply;
}

inline constexpr std::size_t header_size = 40;

/// Largest frame either side accepts; bulk copies are cut below it. 16 MiB keeps a worker's receive buffer
/// small and costs nothing: the header is 40 bytes in 16 million.
inline constexpr std::uint32_t max_frame_payload = (16u << 20) + (64u << 10);
/// Offset in a data frame that says: this copy failed and brings no more bytes.
inline constexpr std::uint64_t copy_failed = ~0ull;

/// Set in the ticket of a data frame: the rest is the number of a host box of the client, which a launch of a
/// graph copies to.
inline constexpr std::uint64_t graph_copy = 1ull << 63;

/// A data frame begins with where its bytes belong.
struct data_place {
  std::uint64_t what = 0;    ///< the ticket of the copy, or graph_copy and a box
  std::uint64_t offset = 0;  ///< of the bytes in what is copied, or copy_failed
};
inline constexpr std::size_t data_place_size = 16;

/// Before the hello is finished a peer is nobody: its frames must be small.
inline constexpr std::uint32_t max_hello_payload = 64u << 10;

std::array<std::byte, data_place_size> encode_data_place(const data_place& place);
data_place decode_data_place(std::span<const std::byte, data_place_size> in);

void encode_header(const frame_header& header, std::span<std::byte, header_size> out);

/// Checks size against `max_payload`, kind and flags; the message names the value and the limit.
result<frame_header> decode_header(std::span<const std::byte, header_size> in, std::uint32_t max_payload);

}  // namespace outboard::wire
