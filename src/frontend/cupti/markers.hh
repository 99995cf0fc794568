// The program's own annotations (NVTX) on their way to its profiler: as records of markers and names, and as
// callbacks of NVTX's functions. Owned by tool_of_program. Any thread.
#pragma once

#include "frontend/annotations.hh"
#include "frontend/cupti/activities.hh"
#include "frontend/cupti/callbacks.hh"
#include "frontend/cupti/numbers.hh"

namespace outboard::frontend::cupti {

class markers final : public annotation_observer {
 public:
  /// All three outlive this.
  markers(cupti::activities& to, const cupti::callbacks& told, cupti::numbers& shown)
      : activities_(to), callbacks_(told), numbers_(shown) {}

  bool wants_annotations() const override { return activities_.wants_markers() || activities_.wants_names(); }
  bool wants_annotation_calls() const override { return callbacks_.wants_nvtx(); }
  void annotated_now(const annotated& about) override;
  void range_over(const annotated& about) override;
  void named(const given_name& name) override;
  void annotation_called(const annotation_call& call) override;

 private:
  cupti::activities& activities_;
  const cupti::callbacks& callbacks_;
  cupti::numbers& numbers_;
};

}  // namespace outboard::frontend::cupti
