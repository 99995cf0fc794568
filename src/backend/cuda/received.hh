// Between a request that came and the handler that its line in the tables has: the handler's type, made of
// those of request and reply (marshal/cuda/travel.hh), and one wrapper that decodes the one and encodes the
// other. Templates; no state.
#pragma once

#include <type_traits>

#include "backend/cuda/call.hh"
#include "marshal/cuda/travel.hh"

namespace outboard::backend {

namespace detail {

/// What a function without requests of its own has in the place of a handler: it can be declared, and no
/// more.
struct no_request {};

/// A type without a value of it, for the choice below.
template <class F>
struct type {
  using is = F;
};

template <auto Op>
constexpr auto handler_type() {
  constexpr bool has_body =
      !std::is_same_v<marshal::request_of<Op>, marshal::nothing> && !marshal::travel_of<Op>().raw;
  if constexpr (has_body && marshal::has_reply<Op>()) {
    return type<outcome(call&, const marshal::request_of<Op>&, marshal::reply_of<Op>&)>();
  } else if constexpr (has_body) {
    return type<outcome(call&, const marshal::request_of<Op>&)>();
  } else if constexpr (marshal::has_reply<Op>()) {
    return type<outcome(call&, marshal::reply_of<Op>&)>();
  } else {
    return type<outcome(call&)>();
  }
}

template <auto Op, api::kind How>
constexpr auto end_type() {
  if constexpr (How != api::kind::custom) {
    return type<void(no_request)>();
  } else if constexpr (marshal::travel_of<Op>().request.empty()) {
    return type<void(no_request)>();
  } else {
    return decltype(handler_type<Op>())();
  }
}

}  // namespace detail

/// The type of the handler that a line of a table or of services.def asks for.
template <auto Op, api::kind How>
using end_type = typename decltype(detail::end_type<Op, How>())::is;

/// Decodes the request, has `End` carry it out, and encodes what it answered. An answer travels with success;
/// an optional one whenever there is one, with an error too.
template <auto Op, auto* End>
outcome received(call& c) {
  constexpr const api::travel& travel = marshal::travel_of<Op>();
  if constexpr (travel.raw) {
    return End(c);
  } else {
    using request = marshal::request_of<Op>;
    const auto body = marshal::take_body<request>(c.body);
    if (!(travel.tail ? c.body.ok() : c.body.finished())) return outcome::malformed();
    const auto carry_out = [&](auto&... reply) {
      if constexpr (std::is_same_v<request, marshal::nothing>) {
        return End(c, reply...);
      } else {
        return End(c, body, reply...);
      }
    };
    if constexpr (marshal::has_reply<Op>()) {
      marshal::reply_of<Op> reply{};
      const outcome what = carry_out(reply);
      if (!what.well_formed) return what;
      if constexpr (travel.reply_is_optional) {
        if (reply) c.keep_outputs_on_error = true, marshal::put_body(c.reply, *reply);
      } else if (what.code == CUDA_SUCCESS) {
        marshal::put_body(c.reply, reply);
      }
      return what;
    } else {
      return carry_out();
    }
  }
}

}  // namespace outboard::backend
