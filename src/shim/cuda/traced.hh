// The layer between an exported symbol and its end: where a trace or a profile is made, it tells of the call,
// how it was answered and how long it took. Any thread; else it costs a load.
#pragma once

#include <chrono>

#include "frontend/call_watch.hh"
#include "frontend/cuda/api_lock.hh"
#include "frontend/cuda/error_log.hh"
#include "frontend/lane.hh"
#include "frontend/profile.hh"
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

/// The functions that a locked process (api_lock.hh) may call: those that unlock it, and the logs.
constexpr bool passes_lock(api::opcode code) {
  const std::string_view chapter = api::chapter_name(code);
  return chapter == "checkpoint" || chapter == "logs" || chapter == "error";
}

template <api::opcode Op, class End, class... A>
CUresult traced(End&& end, A... arguments) {
  if constexpr (!passes_lock(Op)) frontend::cuda::api_lock::pass();
  if (!frontend::calls_watched()) [[likely]]
    return noted<Op>(end(arguments...));
  frontend::lane& own = frontend::this_lane();
  const bool outermost = own.depth++ == 0;
  if (outermost) own.how = frontend::answered::locally;
  const auto begin = std::chrono::steady_clock::now();
  const CUresult result = noted<Op>(end(arguments...));
  const auto over = std::chrono::steady_clock::now();
  --own.depth;
  if (outermost && frontend::profile::on())
    frontend::profile::note_call(own, api::function<Op>::name, begin, over);
  if (outermost && frontend::trace::on()) {
    const auto seen = detail::views<Op>(result, arguments...);
    frontend::trace::record(api::function<Op>::name, api::function<Op>::about,
                            std::span(seen).first(sizeof...(A)), static_cast<std::int32_t>(result), own.how,
                            over - begin, own.id);
  }
  return result;
}

}  // namespace outboard::shim
