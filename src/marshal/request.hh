// The front-end's half of a generated function: arguments into a request, a reply into the caller's outputs.
// Layout of a request: each parameter in order; values as they are (or integers as 64 bits:
// api::integers_travel_wide), pointers as a presence byte, then (in, inout) a u64 count and the elements. A
// created handle travels as the id that the front-end chose. Layout of a reply: each present out or inout
// parameter in order: u64 count, elements.
#pragma once

#include <string_view>

#include "marshal/codec.hh"

namespace outboard::marshal {

namespace detail {

template <bool Wide, class T>
void put_elements(wire::writer& w, T pointer, std::uint64_t n) {
  using element = element_of<T>;
  w.put(n);
  if constexpr (std::is_same_v<element, std::byte> || std::is_same_v<element, char>) {
    w.bytes(std::as_bytes(std::span(static_cast<const char*>(static_cast<const void*>(pointer)), n)));
  } else {
    for (std::uint64_t i = 0; i < n; ++i) put_value<Wide>(w, pointer[i]);
  }
}

template <bool Wide, class T, std::size_t N>
void put_argument(wire::writer& w, const api::parameter& p, T argument, bool created,
                  std::uint64_t new_handle, const std::array<std::uint64_t, N>& counts) {
  if (created) {
    w.put(new_handle);
  } else if constexpr (pointer_parameter<T>) {
    w.put(argument != nullptr);
    if (argument == nullptr || !travels_in(p)) return;
    if (p.count == api::count_kind::string) {
      if constexpr (std::is_same_v<pointee<T>, char>) w.text(argument);
    } else {
      put_elements<Wide>(w, argument, elements(p, counts));
    }
  } else {
    put_value<Wide>(w, argument);
  }
}

template <bool Wide, class T>
void take_elements(wire::reader& r, T pointer, std::uint64_t limit) {
  using element = element_of<T>;
  const auto n = r.get<std::uint64_t>();
  if (n > limit) return r.fail();
  if constexpr (std::is_same_v<element, std::byte> || std::is_same_v<element, char>) {
    const auto raw = r.bytes(n);
    if (!raw.empty()) std::memcpy(pointer, raw.data(), raw.size());
  } else {
    for (std::uint64_t i = 0; i < n && r.ok(); ++i) pointer[i] = get_value<Wide, element>(r);
  }
}

template <bool Wide, class T, std::size_t N>
void take_output(wire::reader& r, const api::parameter& p, T argument, bool created,
                 const std::array<std::uint64_t, N>& counts) {
  if constexpr (pointer_parameter<T>) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<T>>) {
      if (!created && argument != nullptr && travels_out(p))
        take_elements<Wide>(r, argument, elements(p, counts));
    }
  }
}

}  // namespace detail

/// Encodes the arguments of a call or post; `new_handle` stands for the parameter that the line `creates`, or
/// comes first if the function `returns` it.
template <auto Op, class... A>
void encode_request([[maybe_unused]] wire::writer& w, [[maybe_unused]] std::uint64_t new_handle,
                    A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  [[maybe_unused]] const std::array<std::uint64_t, sizeof...(A) + 1> counts{counting_value(arguments)..., 0};
  [[maybe_unused]] constexpr bool wide = api::integers_travel_wide<decltype(Op)>;
  if constexpr (about.returns) w.put(new_handle);
  std::size_t i = 0;
  ((detail::put_argument<wide>(w, about.parameters[i], arguments, i == about.creates, new_handle, counts),
    ++i),
   ...);
}

/// Writes the reply's values through the caller's pointers. Returns false if the reply does not fit the call.
template <auto Op, class... A>
bool decode_reply(wire::reader& r, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  [[maybe_unused]] const std::array<std::uint64_t, sizeof...(A) + 1> counts{counting_value(arguments)..., 0};
  std::size_t i = 0;
  ((detail::take_output<api::integers_travel_wide<decltype(Op)>>(r, about.parameters[i], arguments,
                                                                 i == about.creates, counts),
    ++i),
   ...);
  return r.finished();
}

}  // namespace outboard::marshal
