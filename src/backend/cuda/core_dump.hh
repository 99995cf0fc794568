// Core dumps of the GPU. The driver writes them to a pipe of the worker's own, never to a path that a client
// names, and never ends the worker by them; a thread sends what comes to the client as it comes, and keeps
// nothing. Nothing is left on the disk, however the worker ends. One a session; any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "api/cuda/driver_table.hh"
#include "base/fd.hh"

namespace outboard::backend {

class core_dump {
 public:
  /// Bytes of a dump in order; none: that was all of it.
  using sink = std::function<void(std::span<const std::byte>)>;

  /// Not `possible`: set() says that there are none. A driver that is confined never ends its dump, nor the
  /// wait for it: it asks again and again for a socket of the network (580, seen).
  core_dump(sink send, bool possible) : send_(std::move(send)), possible_(possible) {}
  ~core_dump();
  core_dump(const core_dump&) = delete;
  core_dump& operator=(const core_dump&) = delete;

  /// For contexts made from now on: whether faults dump (`on`; else only those contexts that ask for it by a
  /// flag), and the flags of what is dumped.
  CUresult set(const api::driver_table& driver, bool on, int flags);
  /// Flags of a context without those that would have the driver write where nobody reads.
  unsigned allowed_context_flags(unsigned flags) const;

  /// Contexts may have been made that dump.
  bool expected() const;
  /// A context has failed: returns when its dump is sent. A driver writes it after it has told of the error,
  /// and where it writes none this gives up after a while.
  void finish();

 private:
  CUresult open();
  void work();
  bool reopen();
  void ended();

  const sink send_;
  const bool possible_;
  std::string path_;
  unique_fd place_, reading_, stop_;  ///< `place_`: what `path_` names; never read
  std::thread thread_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool ready_ = false, expected_ = false;
  std::uint64_t bytes_ = 0;  ///< of the dump that comes
  int written_ = 0, awaited_ = 0;
};

}  // namespace outboard::backend
