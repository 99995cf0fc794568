// What the server's device has done for this program, for every part of the program that looks at it. The
// server reports each record once, and each part that has joined gets it. One in a process; never destroyed.
// Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/profile/profile_source.hh"
#include "frontend/session.hh"

namespace outboard::frontend {

class work_feed {
 public:
  static work_feed& instance();

  /// From now on the device records, and this one gets what comes. Returns why it does not; empty: it does.
  /// Both live as long as the process; the session is the same for all.
  std::string join(session& server, profile_receiver& one, profile_services services = cuda_profiles);
  /// No more for this one, which may join again. What the device recorded and was not fetched is lost to it.
  /// When the last one has left the device records no more.
  void leave(profile_receiver& one);

  /// Gives this one all that the server has and all that others have fetched since the last time. `all`: what
  /// the device still keeps to itself, too. It may wait for as long as the session does, also for another
  /// thread's question.
  void fetch(bool all, profile_receiver& one);

 private:
  struct answer {
    marshal::profile_take_reply reply;
    std::int64_t asked = 0, answered = 0;
  };
  /// One that has joined once, and what others have fetched for it meanwhile.
  struct member {
    bool joined = false;
    std::size_t names = 0;  ///< that it has got, or will get
    std::deque<answer> waiting;
    std::size_t records = 0;  ///< in those
    std::uint64_t lost = 0;   ///< that it came too late for
  };
  class splitter;

  bool anybody() const;

  std::mutex mutex_;  // guards what follows; held while the server is asked
  std::unique_ptr<profile_source> source_;
  /// The names of all replies, because members that join later need them, too; each kernel's name comes once.
  std::vector<std::string> names_;
  std::map<profile_receiver*, member> members_;
};

}  // namespace outboard::frontend
