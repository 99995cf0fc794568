// The layer between an exported symbol and its end: where a trace or a profile is made, it tells of the call,
// how it was answered and how long it took. Any thread; else it costs a load.
#pragma once

#include <array>
#include <chrono>
#include <cstring>

#include "frontend/call_watch.hh"
#include "frontend/cuda/api_lock.hh"
#include "frontend/cuda/error_log.hh"
#include "frontend/lane.hh"
#include "frontend/profile/profile.hh"
#include "frontend/trace.hh"
#include "marshal/codec.hh"

namespace outboard::shim {

namespace detail {

template <class T>
frontend::trace::argument view(T value) {
  using frontend::trace::form;
  if constexpr (std::is_same_v<T, const char*>) {
    return {form::text, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, const CUlaunchConfig*>) {
    return {form::launch, reinterpret_cast<std::uint64_t>(value)};
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

/// Adds what a call that succeeded gave through the pointer: one handle or address, no list.
template <class T>
frontend::trace::argument given(frontend::trace::argument seen, T value, const api::parameter& p) {
  if constexpr (std::is_pointer_v<T>) {
    using pointee = std::remove_pointer_t<T>;
    if constexpr (!std::is_const_v<pointee> &&
                  (std::is_pointer_v<pointee> || std::is_same_v<pointee, CUdeviceptr>)) {
      if (value && p.dir == api::direction::out && p.count == api::count_kind::one) {
        seen.gives = true;
        if constexpr (std::is_pointer_v<pointee>) {
          seen.given = reinterpret_cast<std::uint64_t>(*value);
        } else {
          seen.given = *value;
        }
      }
    }
  }
  return seen;
}

/// The arguments as the fields of a struct, which is how tools read them.
template <class... A>
struct parameter_block {
  static constexpr std::size_t offset_of(std::size_t which) {
    constexpr std::array<std::size_t, sizeof...(A) + 1> sizes{sizeof(A)..., 0}, places{alignof(A)..., 1};
    std::size_t at = 0;
    for (std::size_t i = 0; i <= which; ++i) {
      at = (at + places[i] - 1) / places[i] * places[i];
      if (i < which) at += sizes[i];
    }
    return at;
  }
  void set(const A&... values) {
    std::size_t i = 0;
    ((std::memcpy(bytes.data() + offset_of(i++), &values, sizeof values)), ...);
  }
  alignas(16) std::array<std::byte, offset_of(sizeof...(A)) + 16> bytes;
};

template <class T>
const void* stream_in(const void* known, const T& argument) {
  if constexpr (std::is_same_v<T, CUstream>) return argument;
  if constexpr (std::is_same_v<T, const CUlaunchConfig*>) return argument ? argument->hStream : known;
  return known;
}

/// All arguments of one call, after it.
template <api::opcode Op, class... A>
auto views(CUresult result, A... arguments) {
  std::array<frontend::trace::argument, sizeof...(A) + 1> seen{view(arguments)..., {}};
  if (result == CUDA_SUCCESS) {
    std::size_t i = 0;
    ((seen[i] = given(seen[i], arguments, api::function<Op>::about.parameters[i]), ++i), ...);
  }
  return seen;
}

}  // namespace detail

/// Errors go into the log of failed calls; that work is still under way is none.
template <api::opcode Op>
CUresult noted(CUresult result) {
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) [[unlikely]]
    frontend::cuda::error_log::instance().note(api::function<Op>::name, result);
  return result;
}

template <api::opcode Op, class End, class... A>
CUresult traced(End&& end, A... arguments) {
  if constexpr (!api::function<Op>::about.unlocked) frontend::cuda::api_lock::pass();
  if (!frontend::calls_watched()) [[likely]]
    return noted<Op>(end(arguments...));
  detail::parameter_block<A...> parameters;
  parameters.set(arguments...);
  const void* stream = nullptr;
  ((stream = detail::stream_in(stream, arguments)), ...);
  frontend::watched_call watched(
      {static_cast<std::uint32_t>(Op), api::function<Op>::name.data(), parameters.bytes.data(), stream});
  CUresult result = noted<Op>(end(arguments...));
  watched.over(&result);
  if (watched.outermost() && frontend::trace::on()) {
    const auto seen = detail::views<Op>(result, arguments...);
    frontend::trace::record(api::function<Op>::name, api::function<Op>::about,
                            std::span(seen).first(sizeof...(A)), static_cast<std::int32_t>(result),
                            watched.own().how, watched.took(), watched.own().id);
  }
  return result;
}

}  // namespace outboard::shim
