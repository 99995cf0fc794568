// Launches as they arrive, made where they are found to be in order: by the handler, or by a lane's own
// thread beside others (session/side_launches.hh). Nothing here takes memory; what a body shows lies in the
// request's frame.
#pragma once

#include <array>
#include <span>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/objects.hh"
#include "marshal/cuda/launch_bodies.hh"

namespace outboard::backend {

/// Attributes of launches, kernel nodes and streams whose values are plain: no handle or pointer of the
/// peer's process is in them. One that a later driver knows may have such a thing, so an unknown one is not
/// passed on.
bool is_plain_attribute(std::uint32_t id);
/// What a call with one that is not plain returns: an unknown one is answered as by a driver that does not
/// know it.
CUresult refusal_of_attribute(std::uint32_t id);

/// Launch attributes as the driver takes them, handles translated.
class native_attributes {
 public:
  /// The refusal of a dead event or of what a peer may not ask for, else CUDA_SUCCESS.
  CUresult take(const marshal::launch_attributes& arrived, object_tables& objects);
  /// The flag of cuLaunchCooperativeKernel, unless the attributes say it themselves.
  void add_cooperative();
  CUlaunchAttribute* data() { return values_.data(); }
  unsigned count() const { return count_; }

 private:
  // One more than may arrive: the cooperative flag may become an attribute.
  std::array<CUlaunchAttribute, marshal::max_launch_attributes + 1> values_;
  unsigned count_ = 0;
};

/// Where a launch leaves its work.
struct launch_place {
  CUstream stream = nullptr;
  bool per_thread = false;
};

/// Finds what a launch names and makes it; reads the tables, no more. `refused`: why it may not be made.
CUresult make_launch(const api::driver_table& driver, object_tables& objects,
                     const marshal::launch_body& launch, CUresult refused, launch_place& where);

}  // namespace outboard::backend
