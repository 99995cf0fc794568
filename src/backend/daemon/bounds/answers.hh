// The answers to the command's questions while their askers read them. All who ask the same share one answer
// as long as it is fresh, so many askers cost little more than one, and the bytes that slow askers leave
// unread are limited. Owned by the daemon; its one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// A whole frame: the welcome with the answer in it. Its last bytes are room for the proof (token_proof.hh),
/// which differs from asker to asker.
using shared_answer = std::shared_ptr<const std::vector<std::byte>>;

class answers {
 public:
  using clock = std::chrono::steady_clock;
  using build = std::function<result<std::string>()>;

  explicit answers(std::size_t most_bytes = 64u << 20) : most_bytes_(most_bytes) {}

  /// The answer to `question`; `make` returns its text if there is no fresh one. An error with action::retry:
  /// too much is unread.
  result<shared_answer> get(const std::string& question, const build& make);
  /// The result of an act: `act` is done for each asker, and its answer is not shared. Once it is done,
  /// earlier answers are no longer fresh. An error changes nothing of that.
  result<shared_answer> of_act(const build& act);

  /// Bytes of all answers that are still held.
  std::size_t held() const { return *held_; }

 private:
  /// A frame that counts as long as it is held; an error with action::retry: too much is unread.
  result<shared_answer> frame(const std::string& text);

  struct kept {
    shared_answer answer;
    clock::time_point fresh_until;
  };

  std::size_t most_bytes_;
  /// Counts answers whose askers outlive this object, too.
  std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>(0);
  std::map<std::string, kept> kept_;
};

}  // namespace outboard::backend
