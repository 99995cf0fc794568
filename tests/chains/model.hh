// The order that CUDA promises, and what each byte is by it. Knows nothing of any driver.
//
// Streams are clocks: each operation has a number in its stream, and knows how far every stream was done when
// it began. An operation that touches bytes which another one touches, and of which it does not know that it
// is done, would leave a race: the model refuses it. What is left has one result, that of doing everything in
// the order of the calls.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "chain.hh"

namespace chains {

class model {
 public:
  explicit model(const chain& c);

  /// Takes the operation's place in the order. False: it makes no sense here, or would leave a race; nothing
  /// changed.
  [[nodiscard]] bool step(const operation& o);
  /// Whatever is under way is done.
  void join_all();

  std::span<const std::uint8_t> bytes(int block) const { return bytes_[block]; }
  std::span<std::uint8_t> bytes(int block) { return bytes_[block]; }

 private:
  using clock = std::array<std::uint32_t, most_streams>;
  struct access {
    std::uint64_t begin, end;
    bool writes;
    int stream;
    std::uint32_t number;
  };
  /// One side of an operation as others must see it.
  struct touch {
    int block;
    std::uint64_t begin, end;
    bool writes;
    bool early = false;       ///< may happen in the call, before what is queued in the stream
    bool lasts = true;        ///< goes on after the call
    bool explicitly = false;  ///< see add_touches()
  };

  static void join(clock& into, const clock& more);
  clock told(int stream) const;
  clock beginning(int stream) const;
  bool inside(const operation& o) const;
  bool sound(const operation& o) const;
  bool free_of_races(const touch& t, const clock& known);
  bool same_kind(const operation& before, const operation& wanted) const;
  bool there(int graph) const { return graph < static_cast<int>(graphs_.size()) && !gone_[graph]; }
  bool updates(const operation& made, const operation& o) const;
  bool small_enough(const operation& graph) const;
  bool parts_agree(const operation& o) const;
  void add_touches(const operation& o, std::vector<touch>& all) const;
  bool in_stream(const operation& o, const std::vector<touch>& all);
  void perform(const operation& o);

  std::vector<block> blocks_;
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<std::vector<access>> accesses_;
  std::array<clock, most_streams> reached_{};
  clock host_{};
  std::array<std::optional<clock>, most_events> recorded_{};
  std::vector<operation> graphs_;
  std::vector<bool> updated_;  ///< from another graph
  std::vector<bool> gone_;
};

/// The numbers that a `write` puts down, and those that a block begins with.
std::uint8_t number_at(std::uint64_t seed, std::uint64_t offset);

}  // namespace chains
