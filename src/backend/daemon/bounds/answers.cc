#include "backend/daemon/bounds/answers.hh"

#include <algorithm>

#include "backend/daemon/handshake.hh"

namespace outboard::backend {
namespace {

/// An answer stays fresh ten times as long as it took to make, so that questions take at most a tenth of the
/// daemon's thread. With few sessions that is some milliseconds.
constexpr int rest_after_making = 10;
/// Fewer new bytes a second than askers may leave unread, so that askers who do not read (they have a second)
/// do not keep others from getting an answer.
constexpr double bytes_a_second = 32.0 * (1 << 20);

std::vector<std::byte> frame_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return make_welcome({}, {bytes, bytes + text.size()});
}

}  // namespace

result<shared_answer> answers::get(const std::string& question, const build& make) {
  const auto began = clock::now();
  std::erase_if(kept_, [&](const auto& entry) { return entry.second.fresh_until <= began; });
  if (const auto at = kept_.find(question); at != kept_.end()) return at->second.answer;
  const auto text = make();
  if (!text.ok()) return text.error();
  auto answer = frame(*text);
  if (!answer.ok()) return answer;
  const auto now = clock::now();
  const auto rest = std::max(rest_after_making * (now - began),
                             std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(
                                 static_cast<double>((*answer)->size()) / bytes_a_second)));
  kept_[question] = {*answer, now + rest};
  return answer;
}

result<shared_answer> answers::of_act(const build& act) {
  const auto text = act();
  if (!text.ok()) return text.error();
  kept_.clear();
  return frame(*text);
}

result<shared_answer> answers::frame(const std::string& text) {
  std::vector<std::byte> bytes = frame_of(text);
  const std::size_t size = bytes.size();
  if (*held_ != 0 && *held_ + size > most_bytes_) {
    return outboard::error{action::retry, "answers of " + std::to_string(most_bytes_ >> 20) +
                                              " MiB together have not been read yet by those who asked; ask "
                                              "again in a second"};
  }
  *held_ += size;
  return shared_answer(new std::vector<std::byte>(std::move(bytes)),
                       [held = held_, size](const std::vector<std::byte>* done) {
                         *held -= size;
                         delete done;
                       });
}

}  // namespace outboard::backend
