// The structs that a line of CUDA's tables, or of services.def, names for its request and its reply, as
// types. Both ends take them from here: an end that sends another struct than the handler reads does not
// compile. Templates; no state.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "api/cuda/functions.hh"
#include "marshal/cuda/array_bodies.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/graph_bodies.hh"
#include "marshal/cuda/image_bodies.hh"
#include "marshal/cuda/launch_bodies.hh"
#include "marshal/cuda/resource_bodies.hh"
#include "marshal/cuda/sharing_bodies.hh"
#include "marshal/data_bodies.hh"

namespace outboard::marshal {

namespace detail {

/// A line of services.def, which says like one of the tables how it travels.
template <service Number>
struct service_line;
#define SERVICE(name, ...)                                                                     \
  template <>                                                                                  \
  struct service_line<service::name> {                                                         \
    static constexpr api::description about = api::parse(api::kind::custom, ";" #__VA_ARGS__); \
    static_assert(about.error == api::parse_error::none && !about.travel.request.empty(),      \
                  #name ": says request, and how it travels, and no more");                    \
  };
#include "marshal/cuda/services.def"
#undef SERVICE

}  // namespace detail

/// How a function (api::opcode) or a service travels.
template <auto Op>
constexpr const api::travel& travel_of() {
  if constexpr (std::is_same_v<decltype(Op), api::opcode>) {
    return api::function<Op>::about.travel;
  } else {
    return detail::service_line<Op>::about.travel;
  }
}

/// The reply of a line that says `reply bytes`, or that is `raw`: no struct, both ends know what it holds.
struct plain_bytes {};

template <auto Op>
constexpr bool replies_in_bytes() {
  return travel_of<Op>().reply == "bytes" || travel_of<Op>().raw;
}

/// Is the reply a struct?
template <auto Op>
constexpr bool has_reply() {
  return !travel_of<Op>().reply.empty() && !replies_in_bytes<Op>();
}

template <auto Op>
using request_of = typename message<message_name(travel_of<Op>().request)>::type;

namespace detail {

template <auto Op>
constexpr auto reply_of() {
  if constexpr (replies_in_bytes<Op>()) {
    return plain_bytes();
  } else if constexpr (!has_reply<Op>()) {
    return nothing();
  } else {
    using type = typename message<message_name(travel_of<Op>().reply)>::type;
    if constexpr (travel_of<Op>().reply_is_optional) {
      return std::optional<type>();
    } else {
      return type();
    }
  }
}

}  // namespace detail

/// What a call that succeeded is answered with: `nothing`, a struct, or plain_bytes. An optional struct may
/// be missing, and may come with an error.
template <auto Op>
using reply_of = decltype(detail::reply_of<Op>());

}  // namespace outboard::marshal
