// What the rows say in words, and what makes them doubtful. Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/summary.hh"

namespace outboard::bench {

/// One or two sentences. With native rows: which kinds of program are ahead, level and behind, and what a
/// wait costs on top. Level is what is nearer than 5 %; what is nearer than the runs lie apart is not
/// decided. Without: what a wait takes, and how much work and how many bytes go through at best. Empty: there
/// are no rows for it.
std::string verdict(std::span<const compared_row> rows);

/// A machine and how much it had to do before the measurement began.
struct machine_load {
  std::string who;      ///< "this machine"
  double runnable = 0;  ///< the average of the last minute
  int cores = 1;
};

/// Sentences: a machine was busy, runs of rows lie far apart.
std::vector<std::string> doubts(std::span<const compared_row> rows, std::span<const machine_load> machines);

/// Where the runs of a row lie apart by more than this part of their median it is said.
inline constexpr double far_apart = 0.3;

/// Ours or native: the runs are far apart.
bool is_doubtful(const compared_row& r);

}  // namespace outboard::bench
