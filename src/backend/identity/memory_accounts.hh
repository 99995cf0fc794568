// What the sessions of each identity hold of the devices' memory and of the server's, together: for each
// identity that has sessions a page of memory (memory_page.hh) that their workers count in. A session that
// ends, however it ends, gives its slot back, and what stood in it is gone. Owned by the daemon's workers;
// its one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/identity/memory_page.hh"

namespace outboard::backend {

class memory_account;

/// One session's slot. Empty after a move.
class memory_lease {
 public:
  memory_lease(std::shared_ptr<memory_account> of, std::uint32_t slot) : of_(std::move(of)), slot_(slot) {}
  memory_lease(memory_lease&&) noexcept = default;
  memory_lease& operator=(memory_lease&&) = delete;
  ~memory_lease();

  int file() const;
  std::uint32_t slot() const { return slot_; }
  std::uint64_t device_bytes() const;  ///< what the session's worker says that it holds on all devices
  std::uint64_t host_bytes() const;    ///< likewise of the server's own memory

 private:
  std::shared_ptr<memory_account> of_;
  std::uint32_t slot_;
};

/// What one identity holds.
struct held_memory {
  std::uint64_t device = 0;  ///< of the device of which it holds most
  std::uint64_t host = 0;
};

class memory_accounts {
 public:
  /// A slot for one more session of the identity, whose limits these are from now on.
  result<memory_lease> join(const std::string& identity, const memory_limits& limits);
  /// New limits for an identity, if it has sessions. What is held stays.
  void change(const std::string& identity, const memory_limits& limits);
  held_memory held(const std::string& identity) const;

 private:
  std::map<std::string, std::weak_ptr<memory_account>> accounts_;
};

/// Each limit is the one of the two that allows less.
memory_limits stricter(const memory_limits& a, const memory_limits& b);

}  // namespace outboard::backend
