// Asks the server for what its device has recorded, and hands it to the writer. One thread at a time; it may
// wait for as long as the session does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/session.hh"
#include "marshal/bodies.hh"

namespace outboard::frontend {

class profile_writer;

class profile_source {
 public:
  /// The session outlives this.
  explicit profile_source(session& server) : server_(server) {}

  /// From now on the device records. Why it does not, or nothing.
  std::string start();
  /// All that the server has. `all`: what the device still keeps to itself, too.
  void fetch(bool all, profile_writer& into);

 private:
  bool take(bool all, profile_writer& into, bool& more);
  bool ask(marshal::service what);

  session& server_;
  std::vector<std::byte> request_, reply_;
};

}  // namespace outboard::frontend
