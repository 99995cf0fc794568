// A number of places that several identities take from: each gets many, and a later one still finds some. An
// identity may hold at most twice as many as are free. So a single one has two thirds of all, each of two has
// two fifths, each of n has 2 / (2n + 1), and one part in 2n + 1 stays free for others. (Switches share their
// buffers by this rule: a threshold that sinks with what is free.) A value of its owner; one thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace outboard::backend {

class fair_shares {
 public:
  explicit fair_shares(std::size_t most) : most_(most) {}

  /// False: nothing is taken, the identity has its share already.
  bool take(const std::string& identity);
  void give_back(const std::string& identity);

  std::size_t taken() const { return taken_; }
  std::size_t taken_by(const std::string& identity) const;

 private:
  std::size_t most_, taken_ = 0;
  std::map<std::string, std::size_t> by_identity_;
};

}  // namespace outboard::backend
