// mbarrier objects and asynchronous copies. A copy is done when it is issued, which the ISA allows: waiting
// for groups then has nothing to do, and what completes on an mbarrier completes at once. A block is run by
// one worker at a time, so its mbarriers need no atomics. Decode reads this; the steps run anywhere.
#pragma once

#include "ptx/lanes/steps.hh"
#include "ptx/run/plain.hh"

namespace outboard::ptx {

enum class mbarrier_kind : std::uint8_t {
  init,
  invalidate,
  arrive,
  arrive_drop,
  expect_tx,
  complete_tx,
  test,  ///< by state token
  test_parity,
};

/// References; `has_*` where an operand may be missing.
struct mbarrier_step {
  mbarrier_kind what = mbarrier_kind::init;
  bool expects = false;    ///< arrive.expect_tx: `count` is of bytes
  bool has_state = false;  ///< a state token is wanted
  bool patient = false;    ///< try_wait: others get their turn before it says no
  place barrier;
  std::uint32_t count = 0, state = 0, predicate = 0;
};
const inst* mbarrier_run(warp* w, const inst* i);
/// r[0] = pending count of the token r[1].
const inst* mbarrier_pending(warp* w, const inst* i);

/// One lane's copy of `size` bytes; cp.async fills up to `bytes` with zeros.
struct copy_step {
  place to, from;
  bool to_shared = false;
  std::uint32_t bytes = 0;  ///< cp.async: 4, 8, 16; 0: `size` bytes
  std::uint32_t size = 0;
  bool has_size = false;
  std::uint32_t ignore = 0;  ///< predicate: the source is not read
  bool has_ignore = false;
  bool completes = false;  ///< complete_tx on `barrier`
  place barrier;
  atom reduce = atom::count;  ///< cp.reduce.async.bulk: element by element
  element kind = element::u32;
};
const inst* copy_run(warp* w, const inst* i);

/// st.async, red.async: r of values in `value`, then complete_tx on `barrier`.
struct remote_step {
  place to, barrier;
  std::uint32_t value[4] = {};
  std::uint32_t elements = 1, bytes = 4;
  atom reduce = atom::count;
  element kind = element::u32;
};
const inst* remote_run(warp* w, const inst* i);

}  // namespace outboard::ptx
