// How a stream ends: its owner leaves at once, and both ends say farewell when
// all has arrived, whatever links that takes.
#include <thread>

#include "transport/resumable/stream.hh"

namespace outboard::transport {

using namespace std::chrono_literals;

/// With the sender's lock. Does not wait.
void resumable_stream::say_farewell() { send_news(record_kind::farewell); }

/// The peer waits for ours when it has said its own. With the receiver's lock:
/// who sends at this moment, or looks after the stream next, says it, too.
void resumable_stream::answer_farewell() {
  if (!farewell_.load()) return;
  if (const std::unique_lock sending(send_mutex_, std::try_to_lock); sending) say_farewell();
}

void resumable_stream::shutdown() {
  bool left = false;
  {
    const std::lock_guard state(state_mutex_);
    if (finished_ || leaving_.exchange(true)) return;
    left = over_ || plain_.load();
    if (link_ && !left) link_->interrupt();  // who receives returns
    changed_.notify_all();
  }
  if (left) return finish(false, "");
  {
    // Who only looks after the stream is done in a moment. Who is in the middle
    // of a send may never be: the next link carries the rest.
    std::unique_lock sending(send_mutex_, std::defer_lock);
    for (int tries = 0; !sending.try_lock() && tries < 50; ++tries) std::this_thread::sleep_for(100us);
    if (!sending) cut_link(), sending.lock();
    kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
    kept_.settle(true);  // owners and their memory may be about to go
    // A socket that is closed with bytes in it throws away what it has not sent
    // yet.
    if (const std::unique_lock reading(receive_mutex_, std::try_to_lock); reading) pump(also::sends);
    say_farewell();
  }
  if (parted()) return finish(false, "");
  if (options_.changed) options_.changed();
}

resumable_stream::~resumable_stream() {
  shutdown();
  finish(false, "");
}

void resumable_stream::await_end(deadline until) {
  while (!ended() && clock::now() < until) {
    {
      const std::lock_guard reading(receive_mutex_);  // the receiver has been interrupted
      if (reader_ && !parted()) (void)reader_->wait_readable(until), pump();
    }
    (void)tend();
    std::unique_lock state(state_mutex_);
    changed_.wait_until(state, until, [this] { return over_ || up_; });
  }
  finish(false, "");
}

bool resumable_stream::leaving() const { return leaving_.load() && !ended(); }

bool resumable_stream::peer_gone() {
  std::shared_ptr<connection> link;
  {
    const std::lock_guard state(state_mutex_);
    if (over_ || leaving_.load() || parted()) return true;
    if (!up_) return false;
    link = link_;
  }
  if (plain_.load()) return link->peer_gone();
  if (const std::unique_lock reading(receive_mutex_, std::try_to_lock); reading) pump();
  return parted();
}

}  // namespace outboard::transport
