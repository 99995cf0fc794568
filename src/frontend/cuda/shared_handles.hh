// The 64-byte handles that programs send to each other (memory, events, pointers of pools): a mark, a token,
// and zeros. Values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "frontend/cuda/requests.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {

struct shared_handle {
  static constexpr std::array<std::uint8_t, 16> right_mark{'o', 'u', 't', 'b', 'o', 'a', 'r', 'd',
                                                           ' ', 'h', 'a', 'n', 'd', 'l', 'e', 1};
  std::array<std::uint8_t, 16> mark = right_mark;
  marshal::share_token token{};
  std::array<std::uint8_t, 16> zeros{};
};
static_assert(sizeof(shared_handle) == CU_IPC_HANDLE_SIZE);

template <class H>
void write_handle(H& out, const marshal::share_token& token) {
  static_assert(sizeof(H) == sizeof(shared_handle));
  shared_handle made;
  made.token = token;
  std::memcpy(static_cast<void*>(&out), &made, sizeof made);
}

/// Nothing: it is none of ours, or a bit is not as it was.
template <class H>
std::optional<marshal::share_token> read_handle(const H& in) {
  static_assert(sizeof(H) == sizeof(shared_handle));
  shared_handle read;
  std::memcpy(static_cast<void*>(&read), &in, sizeof read);
  const bool whole = read.mark == shared_handle::right_mark && read.zeros == shared_handle{}.zeros;
  return whole ? std::optional(read.token) : std::nullopt;
}

template <class Request>
CUresult call_for_token(typed_request<Request, marshal::share_reply>& r, marshal::share_token& out) {
  marshal::share_reply reply;
  const CUresult code = r.call(reply);
  if (code == CUDA_SUCCESS) out = reply.token;
  return code;
}

}  // namespace outboard::frontend::cuda
