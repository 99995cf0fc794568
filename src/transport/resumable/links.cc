// What a resumer does with a stream: takes a link away, brings another one, and looks after it meanwhile.
#include <utility>

#include "transport/resumable/stream.hh"

namespace outboard::transport {
namespace {

using namespace std::chrono_literals;

/// How often the peer hears that we are here.
constexpr auto beat = 1500ms;

}  // namespace

stream_options options_for_pieces() {
  return {
      .read_ahead = 0, .news_every = 4u << 20, .tell_at_once = piece_told_at_once, .most_kept = 16u << 20};
}

void resumable_stream::cut_link() {
  const std::lock_guard state(state_mutex_);
  if (link_) link_->shutdown();
}

std::uint64_t resumable_stream::stop_link() {
  std::shared_ptr<connection> old;
  {
    const std::lock_guard state(state_mutex_);
    if (link_) link_->shutdown();
    if (std::exchange(up_, false)) down_since_ = clock::now();
  }
  {
    const std::lock_guard sending(send_mutex_);
    writer_ = nullptr;
    owed_ = {};  // the next header of the next link says it
    said_ = false;
  }
  {
    const std::lock_guard reading(receive_mutex_);
    // What is in our memory need not come again.
    connection* const here = std::exchange(reader_, nullptr);
    if (here) reader_ = here, stash_all(), reader_ = nullptr;
    raw_begin_ = raw_end_ = 0;
    left_ = 0;
  }
  const std::lock_guard state(state_mutex_);
  old.swap(link_);
  return arrived_.load();
}

bool resumable_stream::can_resume(std::uint64_t peer_has) const {
  return peer_has >= acknowledged_.load() && peer_has <= sent_.load();
}

bool resumable_stream::resume(std::unique_ptr<connection> link, std::uint64_t peer_has) {
  const std::lock_guard sending(send_mutex_);
  if (!can_resume(peer_has)) return false;
  acknowledged_.store(peer_has);
  joined_.store(true, std::memory_order_relaxed);
  kept_.forget_until(peer_has);
  const std::shared_ptr<connection> made(std::move(link));
  {
    const std::lock_guard reading(receive_mutex_);
    const std::lock_guard state(state_mutex_);
    if (over_ || up_) return true;  // ended meanwhile
    made->set_spin(spin_);
    reader_ = made.get();
    link_ = made;
    name_ = made->describe();
    up_ = true;
    last_heard_ = last_news_ = clock::now();
    if (interrupted_.load()) made->interrupt();
    changed_.notify_all();
  }
  if (send_again(*made, peer_has)) {
    writer_ = made.get();
    if (leaving_.load()) say_farewell();
  } else {
    lost(made.get());
  }
  return true;
}

bool resumable_stream::tend() {
  std::shared_ptr<connection> link;
  bool used = leaving_.load();
  {
    const std::lock_guard state(state_mutex_);
    if (over_ || plain_.load()) return false;
    if (!up_) return used;
    link = link_;
    const std::uint64_t now = sent_.load() + arrived_.load();
    used = std::exchange(passed_, now) != now || used;
  }
  const auto now = clock::now();
  bool alive = false;
  if (const std::unique_lock reading(receive_mutex_, std::try_to_lock); reading) {
    pump();
    alive = stash_.size() >= options_.most_kept;  // more is there
  }
  alive = heard_.exchange(false) || alive;
  bool silent = false, tell = false;
  {
    const std::lock_guard state(state_mutex_);
    if (alive) last_heard_ = now;
    silent = options_.silence.count() != 0 && now - last_heard_ > options_.silence;
    tell = now - last_news_ >= beat;
    if (tell) last_news_ = now;
  }
  if (silent && !parted()) return lost(link.get()), used;
  {
    const std::unique_lock sending(send_mutex_, std::try_to_lock);
    if (!sending) return used;
    kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
    if (leaving_.load() || parted()) {
      say_farewell();
    } else if (tell || !owed_.empty()) {
      send_news(record_kind::news);
    }
  }
  if (leaving_.load() && parted()) finish(false, "");
  return used;
}

}  // namespace outboard::transport
