#include "backend/cuda/any_thread.hh"

#include "api/cuda/functions.hh"
#include "api/cuda/headers.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t per_thread_stream = 2;  ///< CU_STREAM_PER_THREAD

bool plain_launch(wire::reader from) {
  const auto head = marshal::take_body<marshal::launch_head>(from);
  return from.ok() && head.stream != per_thread_stream && !head.per_thread && !head.cooperative &&
         !head.extended;
}

/// `before` handles, then the stream's.
bool on_stream(wire::reader from, int before) {
  for (int i = 0; i < before; ++i) from.get<std::uint64_t>();
  const auto stream = from.get<std::uint64_t>();
  return from.ok() && stream != per_thread_stream;
}

bool is_launch(const api::description& about) {
  return api::is_served(about) && about.leaves == api::left_work::kernels;
}

}  // namespace

std::uint64_t lone_launch_stream(const wire::frame_header& header, std::span<const std::byte> payload) {
  if (header.kind != wire::frame_kind::post ||
      !is_launch(api::about(static_cast<api::opcode>(header.opcode))))
    return 0;
  wire::reader from(payload);
  const std::uint64_t stream = marshal::take_body<marshal::launch_head>(from).stream;
  const auto attributes = from.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < attributes && from.ok(); ++i) {
    const std::uint32_t id = from.get<marshal::launch_attribute>().id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      return 0;
  }
  return from.ok() && stream > per_thread_stream ? stream : 0;
}

bool any_thread_may(const wire::frame_header& header, std::span<const std::byte> payload) {
  if (header.kind != wire::frame_kind::post) return false;
  const api::function_info* const asked = api::find_function(header.opcode);
  if (!asked || api::per_thread(asked->name)) return false;
  const wire::reader from(payload);
  if (is_launch(asked->about)) return plain_launch(from);
  if (asked->about.object == api::object_change::records_event) return on_stream(from, 1);
  return asked->about.object == api::object_change::stream_waits && on_stream(from, 0);
}

}  // namespace outboard::backend
