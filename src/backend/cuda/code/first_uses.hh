// The order in which a session's kernels and variables were first worked with. A driver that loads code
// lazily places it, and the variables with it, when that happens; a worker that goes on with the session has
// to do it in the same order for the same addresses. With the turn, or beside it where a launch may be.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/objects.hh"
#include "marshal/fields.hh"
#include "wire/frame.hh"

namespace outboard::backend {

struct first_use {
  std::uint64_t ticket = 0;   ///< of the request that it came with
  std::uint64_t context = 0;  ///< where
  std::uint64_t id = 0;       ///< a kernel or function; a module or library if there is a name
  std::string variable;       ///< its name
  OUTBOARD_FIELDS(ticket, context, id, variable)
};

class first_uses {
 public:
  /// A request works with a kernel or function. The second time in a context costs a look at the object.
  void of_kernel(object_tables& objects, std::uint64_t id, const wire::frame_header& asked);
  /// The address of a variable was asked for. False: it was before.
  bool of_variable(const object_tables& objects, first_use use);

  /// The context is gone, and what was loaded there with it.
  void forget_context(object_tables& objects, std::uint64_t context);

  /// Those of what is there still, by tickets.
  std::vector<first_use> all(const object_tables& objects) const;
  /// How many are remembered, those of what is gone included.
  std::size_t size() const;

 private:
  struct by_object {
    bool operator()(const first_use& a, const first_use& b) const;
  };
  bool add(const object_tables& objects, first_use use);

  mutable std::mutex mutex_;
  std::set<first_use, by_object> known_;
  std::size_t most_ = 1024;  ///< then what is gone is forgotten
};

}  // namespace outboard::backend
