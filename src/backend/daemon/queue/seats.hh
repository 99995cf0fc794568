// The places of a server: for sessions that run, and for those that wait. An identity gets what its table
// gives it. If the table says nothing, and several identities may come, an identity gets many and leaves some
// to others: fewer than twice as many as are free, not counting the last one, which is for an identity that
// has none. The first then gets two thirds of many places, and one of two. Counts only; owned by the workers,
// its one thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "backend/identity/identity_book.hh"

namespace outboard::backend {

class seats {
 public:
  struct limits {
    std::size_t sessions = 0;  ///< that run or wait
    std::size_t running = 0;   ///< 0: all
  };
  struct held {
    std::size_t running = 0, waiting = 0;
  };

  explicit seats(limits most) : most_(most) {}

  /// What there is may become less than what is taken: then nothing begins until enough has ended.
  void set(limits most) { most_ = most; }
  /// May several identities come? Else one may take all.
  void set_several(bool several) { several_ = several; }
  bool several() const { return several_; }

  /// Why a further session of this identity may neither run nor wait, with what would help; empty: it may.
  std::string refusal_of(const share& s) const;
  /// May one that has a place, or gets one, run now?
  bool may_run(const share& s) const;

  void begins(const share& s) { ++by_account_[s.account].running, ++running_; }
  void ends(const share& s);
  void waits(const share& s) { ++by_account_[s.account].waiting, ++waiting_; }
  void leaves(const share& s);

  std::size_t running() const { return running_; }
  std::size_t waiting() const { return waiting_; }
  const limits& most() const { return most_; }
  held held_by(const std::string& account) const;

 private:
  void drop_if_empty(const std::string& account);

  limits most_;
  bool several_ = false;
  std::map<std::string, held> by_account_;
  std::size_t running_ = 0, waiting_ = 0;
};

}  // namespace outboard::backend
