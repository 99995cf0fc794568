#include "marshal/cuda/late_words.hh"

#include <algorithm>
#include <bit>
#include <utility>

#include "marshal/cuda/byte_masks.hh"

namespace outboard::marshal {

std::size_t size_alone(const changed_line& change) {
  constexpr std::size_t head = 8 + 4 + 1;
  const auto changed = static_cast<std::size_t>(std::popcount(change.mask));
  return changed == change_line ? head + change_line : head + 8 + changed;
}

bool holds_one_of(std::span<const std::uint64_t> words, std::uint64_t line) {
  const auto first = std::ranges::lower_bound(words, line);
  return first != words.end() && *first - line < change_line;
}

void late_words::begin() {
  words_.clear(), places_.clear();
  now_ = look::at_all;
  size_ = 0;
  round_ = 0;
  any_ = left_ = false;
}

void late_words::begin_looks() {
  begin();
  now_ = look::at_words;
}

bool late_words::another_look() {
  if (now_ == look::at_words && any_) {
    now_ = look::at_the_rest;
  } else if (now_ == look::at_the_rest && left_ && ++round_ < most_rounds) {
    now_ = look::at_words;
  } else {
    return false;
  }
  left_ = false;
  return true;
}

/// `mask`: with what was known of the line.
late_words::place late_words::of(kind k, const word* known, std::uint64_t mask) {
  any_ = true;
  if (now_ == look::at_all) return k == kind::data ? place::now : place::last;
  if (now_ == look::at_words) return known || k != kind::data ? place::last : place::another_time;
  if (!known && k == kind::data) return place::now;
  if (!known && k == kind::word) {
    // It may stand for what this look has passed by, or be data of a flag that was taken: it goes, and what
    // was written before it is looked for once more.
    left_ = true;
    return place::last;
  }
  // A line that was caught half-written goes whole before the flags that may stand for it, in the end.
  const bool half_written = known && known->k == kind::word && !is_one_word(mask);
  if (half_written && round_ + 1 == most_rounds) return place::last;
  left_ = true;
  return place::another_time;
}

late_words::place late_words::put(std::uint64_t line, kind k, const changed_line& change) {
  if (now_ == look::at_all && k == kind::data && named_.empty()) return any_ = true, place::now;
  const bool named = holds_one_of(named_, line);
  if (named) k = kind::flag;
  const auto found = places_.find(line);
  const word* known = found == places_.end() ? nullptr : &words_[found->second];
  const std::uint64_t mask = change.mask | (known ? known->change.mask : 0);
  if (const place p = of(k, known, mask); p != place::last) return p;
  if (!known) places_[line] = words_.size();
  word& w = known ? words_[found->second] : words_.emplace_back();
  if (w.change.mask) {
    size_ -= size_alone(w.change);
    k = std::max(k, w.k);
  }
  w = {line, is_one_word(mask) || named ? std::max(k, kind::word) : kind::word, change};
  w.change.mask = mask;
  size_ += size_alone(w.change);
  return place::last;
}

std::vector<late_words::word> late_words::take() {
  std::vector<word> all;
  for (word& w : words_) {
    if (!w.change.mask) continue;
    all.push_back(w);
    w.change.mask = 0;
  }
  size_ = 0;
  std::ranges::sort(all, {}, [](const word& w) { return std::pair(w.k, w.line); });
  return all;
}

std::vector<std::uint64_t> late_words::lines() const {
  std::vector<std::uint64_t> all;
  for (const word& w : words_)
    if (w.change.mask) all.push_back(w.line);
  return all;
}

}  // namespace outboard::marshal
