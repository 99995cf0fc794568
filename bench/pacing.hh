// How calls are timed: the product's own way, for these programs.
#pragma once

#include "../src/bench/pacing.hh"

using outboard::bench::median;
using outboard::bench::microseconds;
using outboard::bench::pace_of;
