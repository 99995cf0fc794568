#include "frontend/cupti/markers.hh"

#include <unistd.h>

#include <utility>

#include "frontend/lane.hh"

namespace outboard::frontend::cupti {

void markers::annotated_now(const annotated& about) {
  if (!activities_.wants_markers()) return;
  const bool mark = about.kind == annotation_kind::mark;
  activities_.note_marker({static_cast<std::uint32_t>(mark ? CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS
                                                           : CUPTI_ACTIVITY_FLAG_MARKER_START),
                           static_cast<std::uint32_t>(about.id), about.begin, about.what});
}

void markers::range_over(const annotated& about) {
  if (!activities_.wants_markers()) return;
  noted_marker end{CUPTI_ACTIVITY_FLAG_MARKER_END, static_cast<std::uint32_t>(about.id), about.end, {}};
  end.what.domain = about.what.domain;
  activities_.note_marker(std::move(end));
}

void markers::named(const given_name& name) {
  if (!activities_.wants_names()) return;
  const lane& own = this_lane();
  noted_name noted;
  noted.name = name.name;
  const auto in_context = [&](std::uint64_t context) {
    noted.id.dcs.contextId = numbers_.of_context(context);
    if (const context_state* const owner = own.owner(); owner && owner->handle == context)
      noted.id.dcs.deviceId = static_cast<std::uint32_t>(owner->device);
  };
  switch (name.what) {
    case named_thing::thread:
      noted.kind = CUPTI_ACTIVITY_OBJECT_THREAD;
      noted.id.pt = {static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(name.handle)};
      break;
    case named_thing::device:
      noted.kind = CUPTI_ACTIVITY_OBJECT_DEVICE;
      noted.id.dcs.deviceId = static_cast<std::uint32_t>(name.handle);
      break;
    case named_thing::context:
      noted.kind = CUPTI_ACTIVITY_OBJECT_CONTEXT;
      in_context(name.handle);
      break;
    case named_thing::stream:
      noted.kind = CUPTI_ACTIVITY_OBJECT_STREAM;
      in_context(own.context_handle());
      noted.id.dcs.streamId =
          numbers_.of_stream(noted.id.dcs.contextId, reinterpret_cast<const void*>(name.handle), false);
      break;
  }
  activities_.note_name(std::move(noted));
}

void markers::annotation_called(const annotation_call& call) {
  callbacks_.tell_nvtx({call.name, call.parameters, call.result});
}

}  // namespace outboard::frontend::cupti
