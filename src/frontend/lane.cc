#include "frontend/lane.hh"

#include <pthread.h>

#include <atomic>

namespace outboard::frontend {
namespace {

std::atomic<std::uint32_t> last_lane{0};
std::atomic<void (*)(lane&)> tell_end{nullptr};
thread_local lane* cached = nullptr;

/// The C++ run time is linked statically into a library that a program may dlclose: a pthread key's
/// destructor is the one end-of-thread hook that works there as well.
void lane_ended(void* value) {
  lane* ended = static_cast<lane*>(value);
  if (auto* const tell = tell_end.load(std::memory_order_acquire)) tell(*ended);
  cached = nullptr;  // a call from a later destructor of this thread gets another lane, which ends like this
  delete ended;
}

pthread_key_t lane_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, lane_ended);
    return made;
  }();
  return key;
}

}  // namespace

lane& this_lane() {
  if (cached) return *cached;
  lane* made = new lane;
  made->id = last_lane.fetch_add(1, std::memory_order_relaxed) + 1;
  pthread_setspecific(lane_key(), made);
  return *(cached = made);
}

void on_lane_end(void (*tell)(lane& ended)) { tell_end.store(tell, std::memory_order_release); }

}  // namespace outboard::frontend
