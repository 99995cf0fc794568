// The words among changes of memory (memory_changes.hh) that are to come last, because who polls one reads
// other memory then, and the looks that find both in the right order while somebody writes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "marshal/cuda/changed_lines.hh"

namespace outboard::marshal {

/// One of the words, which ascend, lies in the line.
bool holds_one_of(std::span<const std::uint64_t> words, std::uint64_t line);

/// Late words are lines in which one word has changed, apart from other such lines; behind these, where one
/// has moved on by a little (counters, flags); and any that holds a named one.
///
/// Memory that is written meanwhile is gone over more than once: what a late word stands for was written
/// before it, and so is found by a look that begins after the word was seen. The first look takes late words
/// alone, the second all other changes. A word that is new to the second may stand for what it has passed by,
/// or be data that a word which was taken stands for, and a word that was taken may be the beginning of a
/// line that somebody was writing: both looks are repeated until there is nothing of the kind. What moves all
/// the time is not waited for.
class late_words {
 public:
  /// What a line's change looks like, in the order in which they go.
  enum class kind : std::uint8_t { data, word, flag };
  /// Where the change of a line goes: with what is being written, behind all of it, or not now.
  enum class place : std::uint8_t { now, last, another_time };

  /// Words that count as flags: as the other end knows them, ascending. They are looked at, not copied.
  void name(std::span<const std::uint64_t> words) { named_ = words; }

  /// Everything is looked at once; nobody writes meanwhile, or what comes of it is not waited for.
  void begin();
  /// Somebody writes meanwhile: look at all memory, while another_look() says so once it was looked at.
  void begin_looks();
  bool another_look();

  /// A line has changed: where it goes, which is done where that is the end.
  place put(std::uint64_t line, kind k, const changed_line& change);

  /// Something has changed, taken or not.
  bool any() const { return any_; }
  /// Bytes that the words take.
  std::size_t size() const { return size_; }

  struct word {
    std::uint64_t line = 0;
    kind k = kind::word;
    changed_line change;
  };
  /// In the order in which they go, to be called once all other changes are there; they are given away. Of
  /// one kind they go in the order of their addresses, in which each look goes: a word that only a later look
  /// has found cannot be data of one that lies before it, but may be of one that lies behind it.
  std::vector<word> take();
  /// The lines, in no order.
  std::vector<std::uint64_t> lines() const;

 private:
  place of(kind k, const word* known, std::uint64_t mask);

  static constexpr int most_rounds = 4;
  enum class look : std::uint8_t { at_all, at_words, at_the_rest } now_ = look::at_all;

  std::span<const std::uint64_t> named_;
  std::vector<word> words_;  // as they were found; those without a mask were given away
  std::unordered_map<std::uint64_t, std::size_t> places_;  // of lines, in words_
  std::size_t size_ = 0;
  int round_ = 0;
  bool any_ = false;
  bool left_ = false;  // the last look has left a word, or met one that is new to it
};

/// Bytes of a change in a list of changes, with a run of its own.
std::size_t size_alone(const changed_line& change);

}  // namespace outboard::marshal
