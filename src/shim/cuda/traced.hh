// The layer between an exported symbol and its end: counts how the call was answered and, if a trace is on,
// writes it. Any thread; with the trace off it costs a load and a few stores to thread-local memory.
#pragma once

#include <chrono>

#include "frontend/lane.hh"
#include "frontend/trace.hh"
#include "marshal/codec.hh"

namespace outboard::shim {

namespace detail {

template <class T>
frontend::trace::argument view(T value) {
  using frontend::trace::form;
  if constexpr (std::is_same_v<T, const char*>) {
    return {form::text, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_pointer_v<T>) {
    return {form::pointer, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, CUdeviceptr>) {
    return {form::address, value};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {form::real, 0, static_cast<double>(value)};
  } else if constexpr (std::is_enum_v<T>) {
    return {form::signed_number, static_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    return {std::is_signed_v<T> ? form::signed_number : form::unsigned_number, bits};
  } else {
    return {form::pointer, 0};  // a struct by value
  }
}

}  // namespace detail

template <api::opcode Op, class End, class... A>
CUresult traced(End&& end, A... arguments) {
  if (!frontend::trace::on()) [[likely]]
    return end(arguments...);
  frontend::lane& own = frontend::this_lane();
  const bool outermost = own.depth++ == 0;
  if (outermost) own.how = frontend::answered::locally;
  const auto begin = std::chrono::steady_clock::now();
  const CUresult result = end(arguments...);
  --own.depth;
  if (outermost) {
    const std::array<frontend::trace::argument, sizeof...(A) + 1> views{detail::view(arguments)..., {}};
    frontend::trace::record(*api::find_function(static_cast<std::uint32_t>(Op)),
                            std::span(views).first(sizeof...(A)), result, own.how,
                            std::chrono::steady_clock::now() - begin);
  }
  return result;
}

}  // namespace outboard::shim
