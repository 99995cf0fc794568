// The layer between a slot of the dispatch table and its end: counts how the call was answered and, if a
// trace is on, writes it. Any thread; with the trace off it costs a load.
#pragma once

#include <array>
#include <chrono>
#include <type_traits>

#include "api/opencl/functions.hh"
#include "frontend/lane.hh"
#include "frontend/trace.hh"

namespace outboard::shim::opencl {

template <class T>
frontend::trace::argument view(T value) {
  using frontend::trace::form;
  if constexpr (std::is_pointer_v<T>) {
    return {form::pointer, reinterpret_cast<std::uint64_t>(value)};
  } else {
    const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    return {std::is_signed_v<T> ? form::signed_number : form::unsigned_number, bits};
  }
}

/// The result in the trace: a code, or 0 if an object was returned and -1 if none was.
template <class R>
std::int32_t shown_result(const R& result) {
  if constexpr (std::is_pointer_v<R>) {
    return result ? 0 : -1;
  } else {
    return result;
  }
}

template <api::opencl::opcode Op, class R, class End, class... A>
R traced(End&& end, A... arguments) {
  if (!frontend::trace::on()) [[likely]]
    return end(arguments...);
  frontend::lane& own = frontend::this_lane();
  const bool outermost = own.depth++ == 0;
  if (outermost) own.how = frontend::answered::locally;
  const auto begin = std::chrono::steady_clock::now();
  const auto done = [&](std::int32_t result) {
    --own.depth;
    if (!outermost) return;
    const std::array<frontend::trace::argument, sizeof...(A) + 1> seen{view(arguments)..., {}};
    frontend::trace::record(api::function<Op>::name, api::function<Op>::about,
                            std::span(seen).first(sizeof...(A)), result, own.how,
                            std::chrono::steady_clock::now() - begin, own.id);
  };
  if constexpr (std::is_void_v<R>) {
    end(arguments...);
    done(0);
  } else {
    const R result = end(arguments...);
    done(shown_result(result));
    return result;
  }
}

}  // namespace outboard::shim::opencl
