#include "backend/cuda/any_thread.hh"

#include "api/cuda/functions.hh"
#include "api/cuda/headers.hh"
#include "wire/cursor.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t per_thread_stream = 2;  ///< CU_STREAM_PER_THREAD

/// {kernel, stream, grid, block, shared memory, per_thread, ...}: launch_body.
bool launch(wire::reader from) {
  from.get<std::uint64_t>();
  const auto stream = from.get<std::uint64_t>();
  from.bytes(7 * sizeof(std::uint32_t));
  const auto per_thread = from.get<std::uint8_t>();
  return from.ok() && stream != per_thread_stream && per_thread == 0;
}

/// `before` handles, then the stream's.
bool on_stream(wire::reader from, int before) {
  for (int i = 0; i < before; ++i) from.get<std::uint64_t>();
  const auto stream = from.get<std::uint64_t>();
  return from.ok() && stream != per_thread_stream;
}

}  // namespace

std::uint64_t lone_launch_stream(const wire::frame_header& header, std::span<const std::byte> payload) {
  const auto code = static_cast<api::opcode>(header.opcode);
  if (header.kind != wire::frame_kind::post ||
      (code != api::opcode::cuLaunchKernel && code != api::opcode::cuLaunchKernelEx))
    return 0;
  wire::reader from(payload);
  from.get<std::uint64_t>();
  const auto stream = from.get<std::uint64_t>();
  from.bytes(7 * sizeof(std::uint32_t) + 3);
  const auto attributes = from.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < attributes && from.ok(); ++i) {
    const auto id = from.get<std::uint32_t>();
    from.bytes(sizeof(std::uint32_t) + sizeof(CUlaunchAttributeValue));
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      return 0;
  }
  return from.ok() && stream > per_thread_stream ? stream : 0;
}

bool any_thread_may(const wire::frame_header& header, std::span<const std::byte> payload) {
  if (header.kind != wire::frame_kind::post) return false;
  switch (static_cast<api::opcode>(header.opcode)) {
    case api::opcode::cuLaunchKernel:
      return launch(wire::reader(payload));
    case api::opcode::cuEventRecord:
      return on_stream(wire::reader(payload), 1);
    case api::opcode::cuStreamWaitEvent:
      return on_stream(wire::reader(payload), 0);
    default:
      return false;
  }
}

}  // namespace outboard::backend
