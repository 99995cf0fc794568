// The rule by which places of `limits.running` are given out: the next one goes to the identity with the
// highest priority; among equal ones the one that has the fewest places for its weight; of one identity, who
// came first. Nobody passes the number of places that its identity may have. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/identity/identity_book.hh"

namespace outboard::backend {

/// Places that are taken, by the identity's name.
struct taken_places {
  std::size_t most = 0;  ///< of all; 0: no limit
  std::size_t all = 0;
  std::map<std::string, std::size_t> of;

  std::size_t taken_by(const std::string& identity) const;
  void take(const std::string& identity);
  /// Is there one for a session of this identity?
  bool free_for(const identity_terms& who) const;
};

/// The index of the one that gets the next place; nothing: none of them may have one now. `waiting` are the
/// terms of those that wait, in the order of arrival.
std::optional<std::size_t> next_for_place(std::span<const identity_terms* const> waiting,
                                          const taken_places& taken);

/// The indices of all in the order in which they would get places if none were given back, those that their
/// identity's own limit stops at the end.
std::vector<std::size_t> order_of_places(std::span<const identity_terms* const> waiting, taken_places taken);

}  // namespace outboard::backend
