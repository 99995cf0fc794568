// A CUDA session as one worker gives it to the next: what its image holds behind the session's own part
// (session_image.hh), and what both ends need. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/session.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

/// Device memory of the window: stays where it is, and is not copied.
struct device_part {
  std::uint64_t address = 0, size = 0, context = 0, ticket = 0;
  std::int32_t device = 0;
  std::uint32_t descriptor = 0;  ///< number in the image
  OUTBOARD_FIELDS(address, size, context, ticket, device, descriptor)
};

/// Page-locked memory of which the client has the same pages.
struct host_part {
  std::uint64_t address = 0, size = 0, context = 0;
  std::uint32_t descriptor = 0;
  OUTBOARD_FIELDS(address, size, context, descriptor)
};

/// A variable of a module or a library: the driver places it, and programs may have its address.
struct variable_part {
  std::uint64_t code = 0, context = 0;  ///< the module or library, and in which context
  std::string name;
  std::uint64_t address = 0;
  std::vector<std::uint8_t> content;
  OUTBOARD_FIELDS(code, context, name, address, content)
};

/// What a lane has to tell its client yet.
struct lane_part {
  std::uint32_t lane = 0;
  std::int32_t deferred = 0;
  OUTBOARD_FIELDS(lane, deferred)
};

/// An id of the client's whose object was never made, or has died with its context.
struct tombstone_part {
  std::uint64_t id = 0;
  std::int32_t code = 0;
  OUTBOARD_FIELDS(id, code)
};

struct cuda_part {
  bool own_addresses = false;
  std::vector<marshal::record_body> contexts, rest;  ///< by tickets; host memory comes between
  std::vector<device_part> device;
  std::vector<host_part> host;
  std::vector<first_use> uses;
  std::vector<variable_part> variables;
  std::vector<lane_part> lanes;
  std::vector<tombstone_part> tombstones;
  OUTBOARD_FIELDS(own_addresses, contexts, rest, device, host, uses, variables, lanes, tombstones)
};

/// A call of nobody's, for code that wants one: the main thread's, which keeps the turn.
class call_of_our_own {
 public:
  call_of_our_own(cuda_session& session, session_core& core)
      : reply_(bytes_),
        request_{core, own, asked_, asked_.header, wire::reader(), reply_, scratch_},
        it(session, request_) {
    own.replaying = true;
  }

  cuda_lane own{0};

 private:
  frame asked_;
  std::vector<std::byte> bytes_;
  wire::writer reply_;
  std::pmr::monotonic_buffer_resource scratch_;
  request_at_hand request_;

 public:
  call it;
};

/// Something of the session that another worker could not have, in words; empty: there is nothing.
std::string what_stays(call& c);

/// Requests that make the session's objects again. False: something of them cannot be told.
[[nodiscard]] bool object_records(call& c, std::vector<marshal::record_body>& contexts,
                                  std::vector<marshal::record_body>& rest);

/// Carries such a request out. Its code.
CUresult replay_record(call& c, const marshal::record_body& r);

/// The variables of all code that is in use. An error: some cannot be known.
result<std::vector<variable_part>> variables_of(call& c);
/// Gives them back what was in them.
status fill_variables(call& c, const std::vector<variable_part>& all);

/// "memory of the device cannot be had here (2)": what a step of save or restore failed for, and the driver's
/// code.
std::string failed_for(const std::string& what, CUresult code);

}  // namespace outboard::backend
