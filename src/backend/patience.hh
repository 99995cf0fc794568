// How long a request that may block looks whether the device is done, before it gives its turn up and sleeps
// in the driver. Any thread.
#pragma once

#include "base/spin.hh"

namespace outboard::backend {

/// Most waits of real programs end within it, and a hand-off costs more.
template <class Query>
void spin_while(Query&& still_busy) {
  spin_until([&] { return !still_busy(); }, spin_budget(std::chrono::microseconds(40)));
}

}  // namespace outboard::backend
