// What travels between a profiled program and the worker that records what its device does. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/cuda/board_sample.hh"
#include "api/cuda/work_record.hh"
#include "marshal/fields.hh"

namespace outboard::marshal {

/// Of profile_start.
struct profile_start_reply {
  std::string refusal;  ///< why nothing is recorded; empty: it is
  OUTBOARD_FIELDS(refusal)
};

/// profile_take: what is complete; `all`: what the device keeps to itself, too.
struct profile_take_body {
  bool all = false;
  OUTBOARD_FIELDS(all)
};

struct profile_take_reply {
  std::uint64_t came = 0,
                left = 0;     ///< when the question came and this left, nanoseconds on the recorder's clock
  std::uint64_t dropped = 0;  ///< since the start
  bool more = false;          ///< ask again
  std::vector<std::string> names;  ///< further ones; records count from the first reply's first on
  std::vector<api::work_record> records;
  OUTBOARD_FIELDS(came, left, dropped, more, names, records)
};

/// profile_samples: whether sensors are sampled from now on.
struct profile_samples_body {
  bool on = false;
  OUTBOARD_FIELDS(on)
};

struct profile_samples_reply {
  std::string refusal;  ///< why nothing is sampled; empty: it is
  std::uint64_t came = 0,
                left = 0;     ///< when the question came and this left, nanoseconds on the samples' clock
  std::uint64_t dropped = 0;  ///< since the last reply
  std::vector<api::board_sample> samples;
  OUTBOARD_FIELDS(refusal, came, left, dropped, samples)
};

}  // namespace outboard::marshal
