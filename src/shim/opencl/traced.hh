// The layer between a slot of the dispatch table and its end: where a trace or a profile is made, it tells of
// the call, how it was answered and how long it took. Any thread; else it costs a load.
#pragma once

#include <array>
#include <type_traits>

#include "api/opencl/functions.hh"
#include "frontend/call_watch.hh"
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

/// What the trace shows as the result: a code, or 0 for an object and -1 for none.
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
  if (!frontend::calls_watched()) [[likely]]
    return end(arguments...);
  frontend::watched_call watched({static_cast<std::uint32_t>(Op), api::function<Op>::name.data()});
  const auto done = [&](std::int32_t result) {
    watched.over(&result);
    if (!watched.outermost() || !frontend::trace::on()) return;
    const std::array<frontend::trace::argument, sizeof...(A) + 1> seen{view(arguments)..., {}};
    frontend::trace::record(api::function<Op>::name, api::function<Op>::about,
                            std::span(seen).first(sizeof...(A)), result, watched.own().how, watched.took(),
                            watched.own().id);
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
