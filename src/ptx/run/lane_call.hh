// A call of a function that the device provides, as one lane makes it. Lives on the stack of the worker that
// runs the block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ptx/run/code.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {

/// The arguments and the result of the call.
struct lane_call {
  warp* w;
  const call_site& site;
  int lane;

  char* in_frame(std::uint32_t offset) const {
    return w->local + static_cast<std::uint64_t>(lane) * w->local_stride + w->current->local_base + offset;
  }
  template <class T>
  T argument(std::size_t n) const {
    const transfer& t = site.in[n];
    const char* from = t.caller_register ? w->base[t.caller & 1] + t.caller +
                                               static_cast<std::uint32_t>(lane) * std::max(t.bytes, 2u)
                                         : in_frame(t.caller);
    T value{};
    std::memcpy(&value, from, std::min<std::size_t>(t.bytes, sizeof value));
    return value;
  }
  template <class T>
  void give(T value) const {
    for (const transfer& t : site.out) {
      char* to = t.caller_register
                     ? w->base[0] + t.caller + static_cast<std::uint32_t>(lane) * std::max(t.bytes, 2u)
                     : in_frame(t.caller);
      std::memcpy(to, &value, std::min<std::size_t>(t.bytes, sizeof value));
    }
  }
};

}  // namespace outboard::ptx
