// A launch as it arrives, decoded in place: the worker takes no memory for it. Spans point into the request's
// frame.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/objects.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

/// Attributes of launches, kernel nodes and streams whose values are plain: no handle or pointer of the
/// peer's process is in them. One that a later driver knows may have such a thing, so an unknown one is not
/// passed on.
bool is_plain_attribute(std::uint32_t id);
/// What a call with one that is not plain answers: an unknown one is answered as by a driver that does not
/// know it.
CUresult refusal_of_attribute(std::uint32_t id);
/// A value that the driver gave, without what only this process may know. False: of an unknown attribute.
bool hide_handles(std::uint32_t id, CUlaunchAttributeValue& value);

/// Launch attributes as the driver takes them, handles translated.
class native_attributes {
 public:
  /// False: malformed. `code` gets the refusal of a dead event, or of what a peer may not ask for.
  [[nodiscard]] bool take(wire::reader& from, object_tables& objects, CUresult& code);
  /// The flag of cuLaunchCooperativeKernel, unless the attributes say it themselves.
  void add_cooperative();
  CUlaunchAttribute* data() { return values_.data(); }
  unsigned count() const { return count_; }

 private:
  // One more than may arrive: the cooperative flag may become an attribute.
  std::array<CUlaunchAttribute, marshal::max_launch_attributes + 1> values_;
  unsigned count_ = 0;
};

/// A marshal::launch_body.
struct arrived_launch : marshal::launch_head {
  native_attributes attributes;
  std::span<const std::byte> parameters;

  [[nodiscard]] bool take(wire::reader& from, object_tables& objects, CUresult& code);
};

/// Where a launch leaves its work.
struct launch_place {
  CUstream stream = nullptr;
  bool per_thread = false;
  std::uint64_t kernel = 0;  ///< its id
};

/// Takes a launch in, finds what it names and makes it; reads the tables, no more. `refused`: why it may not
/// be made. nullopt: malformed.
std::optional<CUresult> make_launch(const api::driver_table& driver, object_tables& objects,
                                    wire::reader& from, CUresult refused, launch_place& where);

}  // namespace outboard::backend
