#include "backend/cuda/any_thread.hh"

#include "api/cuda/functions.hh"
#include "marshal/cuda/launch_bodies.hh"
#include "wire/cursor.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t per_thread_stream = 2;  ///< CU_STREAM_PER_THREAD

/// The default streams are 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
constexpr std::uint64_t last_default_stream = 2;

bool launch(wire::reader from) {
  const auto head = marshal::take_body<marshal::launch_head>(from);
  return from.ok() && head.stream != per_thread_stream && !head.per_thread;
}

/// `before` handles, then the stream's.
bool on_stream(wire::reader from, int before) {
  for (int i = 0; i < before; ++i) from.get<std::uint64_t>();
  const auto stream = from.get<std::uint64_t>();
  return from.ok() && stream != per_thread_stream;
}

}  // namespace

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

std::array<std::uint32_t, 2> launch_opcodes() {
  return {static_cast<std::uint32_t>(api::opcode::cuLaunchKernel),
          static_cast<std::uint32_t>(api::opcode::cuLaunchKernelEx)};
}

std::uint64_t lone_launch_stream(const wire::frame_header& header, std::span<const std::byte> payload) {
  const auto code = static_cast<api::opcode>(header.opcode);
  if (header.kind != wire::frame_kind::post ||
      (code != api::opcode::cuLaunchKernel && code != api::opcode::cuLaunchKernelEx))
    return 0;
  wire::reader from(payload);
  const auto launch = marshal::take_body<marshal::launch_body>(from);
  for (std::size_t i = 0; i < launch.attributes.size(); ++i) {
    const std::uint32_t id = launch.attributes[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      return 0;
  }
  return from.ok() && launch.head.stream > last_default_stream ? launch.head.stream : 0;
}

}  // namespace outboard::backend
