// An opcode together with the structs that its line says: what is sent under it, and what comes back, are
// then checked by the compiler. Also requests in a buffer of the caller's, for code that may not use its
// lane's (requests.hh has those). Templates; no state.
#pragma once

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "frontend/session.hh"
#include "marshal/cuda/travel.hh"

namespace outboard::frontend::cuda {

/// A line of the tables or of services.def, known by what its requests carry. Code that sends one of several
/// like requests takes it as an argument; like<Op> is its type, and typed<Op> its value.
template <class Body, class Reply, bool Tail>
class typed_opcode {
 public:
  template <auto Op>
  requires(
      std::is_same_v<Body, marshal::request_of<Op>>&& std::is_same_v<Reply, marshal::reply_of<Op>>&& Tail ==
      marshal::travel_of<Op>().tail) constexpr explicit typed_opcode(std::integral_constant<decltype(Op), Op>)
      : code_(static_cast<api::opcode>(Op)) {}

  constexpr api::opcode code() const { return code_; }

 private:
  api::opcode code_;
};

template <auto Op>
using like = typed_opcode<marshal::request_of<Op>, marshal::reply_of<Op>, marshal::travel_of<Op>().tail>;

template <auto Op>
inline constexpr like<Op> typed{std::integral_constant<decltype(Op), Op>()};

/// A request in `bytes`, which the caller keeps until it has left.
template <auto Op>
outgoing written(std::vector<std::byte>& bytes, std::uint32_t lane, std::uint64_t context,
                 const marshal::request_of<Op>& body = {}, std::span<const std::byte> bulk = {}) {
  bytes.clear();
  wire::writer w(bytes);
  marshal::put_body(w, body);
  return {static_cast<std::uint32_t>(Op), lane, context, bytes, bulk};
}

/// The whole reply as the struct that the line says; nothing: it is something else.
template <auto Op>
std::optional<marshal::reply_of<Op>> read_reply(std::span<const std::byte> bytes) {
  static_assert(marshal::has_reply<Op>() && !marshal::travel_of<Op>().reply_is_optional);
  wire::reader from(bytes);
  auto reply = marshal::take_body<marshal::reply_of<Op>>(from);
  return from.finished() ? std::optional(std::move(reply)) : std::nullopt;
}

}  // namespace outboard::frontend::cuda
