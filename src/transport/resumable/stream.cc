#include "transport/resumable/stream.hh"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

namespace outboard::transport {
namespace {

using namespace std::chrono_literals;

/// Larger receives go straight to their destination.
constexpr std::size_t direct = 4096;
/// Behind a record of this size another one is likely: it is not read ahead, so that it need not be copied.
constexpr std::uint32_t large = 16u << 10;
/// Small records cost their receiver more than their bytes say: the peer hears after so many.
constexpr unsigned news_every_records = 1024;
/// What is sent again travels in records of this size.
constexpr std::size_t again_at_once = 256u << 10;
/// While a link accepts no bytes, its sender looks so often whether some have come.
constexpr auto look_every = 20ms;
/// News is not waited for longer, by who would else copy what was lent and by who has nothing else to do.
constexpr std::chrono::microseconds worth_waiting = 500us;
/// Somebody who waits for room without being woken looks so often.
constexpr auto room_look = 10ms;
/// A sender passes so few parts at once.
constexpr std::size_t most_parts = 6;

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // send() only reads
}

std::size_t size_of(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

}  // namespace

resumable_stream::resumable_stream(std::unique_ptr<connection> link, stream_options options, bool plain)
    : options_(std::move(options)),
      what_(link->what()),
      plain_(plain),
      look_at_(2 * options_.news_every),
      link_(std::move(link)),
      name_(link_->describe()) {
  writer_ = reader_ = link_.get();
  raw_.resize(record_header + std::max<std::size_t>(options_.read_ahead, direct));
}

void resumable_stream::begin() { plain_.store(false, std::memory_order_release); }

// ---- sending ----

std::array<std::byte, record_header> resumable_stream::header(record_kind kind, std::size_t size) {
  const std::uint64_t here = arrived_.load(std::memory_order_relaxed);
  reported_.store(here, std::memory_order_relaxed);
  return encode(record{here, static_cast<std::uint32_t>(size), kind});
}

io_result resumable_stream::send(std::span<const iovec> parts, deadline until) {
  return send_lent(parts, {}, nullptr, until);
}

io_result resumable_stream::send_lent(std::span<const iovec> parts, std::span<const std::byte> lent,
                                      std::shared_ptr<const void> owner, deadline until) {
  std::unique_lock sending(send_mutex_);
  const std::size_t size = size_of(parts) + lent.size();
  if (plain_.load(std::memory_order_acquire)) return transmit(parts, lent, size, until);
  if (size == 0) return {io::done, 0};
  if (const io room = await_room(sending, size, until); room != io::done) return {room, 0};
  kept_.copy(parts);
  kept_.lend(lent, std::move(owner));
  sent_.store(kept_.end(), std::memory_order_release);
  if (!writer_) return {io::done, size};  // sent when there is a link again
  const io_result went = transmit(parts, lent, size, until);
  if (went.status == io::done) {
    if (farewell_.load(std::memory_order_relaxed)) say_farewell();  // the peer's came meanwhile
    return went;
  }
  lost(std::exchange(writer_, nullptr));
  return {went.status == io::timed_out ? io::timed_out : io::done, size};
}

/// With the sender's lock: sends what was just kept, or plain bytes.
io_result resumable_stream::transmit(std::span<const iovec> parts, std::span<const std::byte> lent,
                                     std::size_t size, deadline until) {
  std::array<iovec, most_parts + 3> all;
  if (plain_.load(std::memory_order_relaxed)) {
    const io_result went = writer_ ? writer_->send(parts, until) : io_result{};
    if (went.status != io::done || lent.empty()) return went;
    all[0] = part_of(lent);
    return writer_->send(std::span(all).first(1), until);
  }
  if (parts.size() > most_parts || size > most_in_record)
    return {send_again(*writer_, kept_.end() - size) ? io::done : io::broken, size};
  const auto head = header(record_kind::bytes, size);
  std::size_t used = 0;
  if (!owed_.empty()) all[used++] = part_of(owed_);
  all[used++] = part_of(head);
  for (const iovec& part : parts) all[used++] = part;
  if (!lent.empty()) all[used++] = part_of(lent);
  const io went = writer_->send(std::span(all).first(used), until).status;
  if (went == io::done) owed_ = {};
  return {went, size};
}

/// With the sender's lock. Also looks for acknowledgements now and then, because a program may send for hours
/// without receiving anything.
bool resumable_stream::has_room(std::size_t size) {
  kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
  if (kept_.size() + size > look_at_) {
    if (const std::unique_lock reading(receive_mutex_, std::try_to_lock); reading) pump(also::sends);
    kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
    look_at_ = std::max(2 * options_.news_every, kept_.size() + size + options_.news_every / 4);
  }
  return kept_.size() == 0 || kept_.size() + size <= options_.most_kept;
}

io resumable_stream::await_room(std::unique_lock<std::mutex>& sending, std::size_t size, deadline until) {
  while (true) {
    if (leaving_.load(std::memory_order_relaxed)) return io::broken;
    if (farewell_.load(std::memory_order_relaxed)) return say_farewell(), io::broken;
    const bool room = has_room(size);
    std::unique_lock state(state_mutex_);
    if (over_) return io::broken;
    if (room) return io::done;
    if (clock::now() >= until) return io::timed_out;
    sending.unlock();
    awaits_room_.store(true);
    changed_.wait_for(state, room_look);
    awaits_room_.store(false);
    state.unlock();
    sending.lock();
    look_at_ = 0;
  }
}

/// With the sender's lock. False: the link is lost.
bool resumable_stream::write_all(connection& over, std::span<iovec> parts) {
  while (true) {
    const io_result went = over.send(parts, clock::now() + look_every);
    if (went.status == io::done) return true;
    if (went.status != io::timed_out) return false;
    // The peer may be in the same situation: somebody has to receive.
    if (const std::unique_lock reading(receive_mutex_, std::try_to_lock); reading && reader_ == &over)
      pump(also::sends);
    std::size_t done = went.bytes;
    while (!parts.empty() && done >= parts.front().iov_len) {
      done -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (parts.empty()) return true;
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + done;
    parts.front().iov_len -= done;
  }
}

/// With the sender's lock.
bool resumable_stream::send_again(connection& over, std::uint64_t from) {
  if (!owed_.empty()) {
    std::array parts{part_of(owed_)};
    if (!write_all(over, parts)) return false;
    owed_ = {};
  }
  while (from < kept_.end()) {
    const auto run = kept_.run_at(from, again_at_once);
    const auto head = header(record_kind::bytes, run.size());
    std::array parts{part_of(head), part_of(run)};
    if (!write_all(over, parts)) return false;
    from += run.size();
  }
  return true;
}

/// With the sender's lock, and a link. Does not wait.
io resumable_stream::send_owed() {
  if (owed_.empty()) return io::done;
  const std::array parts{part_of(owed_)};
  const io_result went = writer_->send(parts, deadline::min());
  owed_ = went.status == io::done ? std::span<const std::byte>() : owed_.subspan(went.bytes);
  return went.status;
}

/// With the sender's lock. Does not wait. A header that does not leave at once is owed, even if no byte of it
/// has left: an encrypted link has its bytes in a record already, and must go on with the same ones.
void resumable_stream::send_news(record_kind kind) {
  if (!writer_ || plain_.load(std::memory_order_relaxed)) return;
  io went = send_owed();
  if (went == io::done && !said_) {  // nothing follows a farewell
    said_ = kind == record_kind::farewell;
    news_ = header(kind, 0);
    owed_ = news_;
    went = send_owed();
  }
  if (went != io::done && went != io::timed_out) lost(std::exchange(writer_, nullptr));
}

/// With the sender's lock: until the news that comes is `enough`.
template <class Enough>
void resumable_stream::await_news(Enough&& enough, deadline until) {
  kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
  while (!enough() && writer_) {
    const bool last = clock::now() >= until;  // what has come by now is looked at all the same
    const std::unique_lock reading(receive_mutex_, std::try_to_lock);
    if (!reading) return;  // somebody waits for something else
    pump(also::sends);
    kept_.forget_until(acknowledged_.load(std::memory_order_acquire));
    if (last) return;
  }
}

deadline resumable_stream::news_is_worth() { return clock::now() + worth_waiting; }

void resumable_stream::settle(deadline until) {
  // Even if all is acknowledged: a server that lies says so while a resumer still sends it again.
  const std::lock_guard sending(send_mutex_);
  // Over a fast line the news comes sooner than the bytes are copied.
  await_news([this] { return kept_.is_settled(); }, until);
  kept_.settle();
}

void resumable_stream::let_go(const std::function<bool()>& other_work) {
  const std::lock_guard sending(send_mutex_);
  await_news([&] { return kept_.size() == 0 || other_work(); }, news_is_worth());
}

// ---- receiving ----

/// With the receiver's lock.
void resumable_stream::arrived(std::size_t bytes, also holding) {
  const std::uint64_t here = arrived_.load(std::memory_order_relaxed) + bytes;
  arrived_.store(here, std::memory_order_release);
  const bool enough = here - reported_.load(std::memory_order_relaxed) >= options_.news_every ||
                      records_ >= news_every_records;
  if (!enough && !(awaited_ && left_ == 0)) return;
  // The thread that sends at this moment, be it this one, reports it with the next header.
  if (holding == also::sends) return;
  const std::unique_lock sending(send_mutex_, std::try_to_lock);
  if (!sending) return;
  records_ = 0;
  if (here != reported_.load(std::memory_order_relaxed)) send_news(record_kind::news);
}

/// With the receiver's lock, and a whole header in raw_. False: the peer breaks the protocol.
bool resumable_stream::parse_header() {
  const auto r = decode_record(std::span(raw_).subspan(raw_begin_).first<record_header>());
  if (!r || r->arrived > sent_.load(std::memory_order_acquire)) return false;
  joined_.store(true, std::memory_order_relaxed);
  raw_begin_ += record_header;
  left_ = r->size;
  awaited_ = r->size >= options_.tell_at_once;
  if (r->size != 0) after_large_ = r->size >= large;
  ++records_;
  if (r->kind == record_kind::farewell) farewell_.store(true, std::memory_order_release);
  if (r->arrived > acknowledged_.load(std::memory_order_relaxed)) {
    acknowledged_.store(r->arrived, std::memory_order_release);
    if (awaits_room_.load()) {
      const std::lock_guard state(state_mutex_);
      changed_.notify_all();
    }
  }
  return true;
}

/// With the receiver's lock: bytes of the stream that are in raw_ already.
std::size_t resumable_stream::copy_out(std::span<std::byte> into) {
  std::size_t copied = 0;
  while (!into.empty() && raw_begin_ != raw_end_ && left_ != 0) {
    const std::size_t step = std::min({into.size(), raw_end_ - raw_begin_, std::size_t{left_}});
    std::memcpy(into.data(), raw_.data() + raw_begin_, step);
    raw_begin_ += step;
    left_ -= static_cast<std::uint32_t>(step);
    into = into.subspan(step);
    copied += step;
    while (left_ == 0 && raw_end_ - raw_begin_ >= record_header && !farewell_.load(std::memory_order_relaxed))
      if (!parse_header()) return copied;  // found again when nothing else is left
  }
  return copied;
}

/// With the receiver's lock: more bytes behind those in raw_.
io resumable_stream::refill(std::size_t wanted, deadline until) {
  if (raw_begin_ == raw_end_) raw_begin_ = raw_end_ = 0;
  if (raw_begin_ != 0) {
    std::memmove(raw_.data(), raw_.data() + raw_begin_, raw_end_ - raw_begin_);
    raw_end_ -= std::exchange(raw_begin_, 0);
  }
  const std::size_t ahead = after_large_ ? std::min(direct, options_.read_ahead) : options_.read_ahead;
  const std::size_t limit = std::min(raw_.size() - raw_end_, std::max(wanted, ahead));
  const io_result got = reader_->receive(std::span(raw_).subspan(raw_end_, limit), until);
  raw_end_ += got.bytes;
  if (got.status == io::done) heard_.store(true, std::memory_order_relaxed);
  return got.status;
}

/// What receive() says when the link gave this and `before` bytes are in the caller's hands.
resumable_stream::taken resumable_stream::stopped(io status, std::size_t before) {
  if (status == io::interrupted) interrupted_.store(false);
  if (status == io::timed_out || status == io::interrupted) return {{status, before}};
  lost(std::exchange(reader_, nullptr));
  return {{}, true};
}

/// With the receiver's lock.
resumable_stream::taken resumable_stream::take(std::span<std::byte> into, deadline until) {
  if (stash_begin_ != stash_.size()) {
    const std::size_t n = std::min(into.size(), stash_.size() - stash_begin_);
    std::memcpy(into.data(), stash_.data() + stash_begin_, n);
    stash_begin_ += n;
    if (stash_begin_ == stash_.size()) stash_.clear(), stash_begin_ = 0;
    return {{io::done, n}};
  }
  while (reader_) {
    if (const std::size_t n = copy_out(into); n != 0) return arrived(n), taken{{io::done, n}};
    if (left_ == 0 && raw_end_ - raw_begin_ >= record_header && !farewell_.load(std::memory_order_relaxed)) {
      if (!parse_header()) {
        fail(std::exchange(reader_, nullptr), "the peer's records are malformed");
        return {{}, true};
      }
      continue;
    }
    if (farewell_.load(std::memory_order_relaxed)) break;
    if (left_ != 0 && raw_begin_ == raw_end_ && into.size() >= direct) {
      const io_result got = reader_->receive(into.first(std::min<std::size_t>(into.size(), left_)), until);
      if (got.status != io::done) return stopped(got.status, 0);
      heard_.store(true, std::memory_order_relaxed);
      left_ -= static_cast<std::uint32_t>(got.bytes);
      return arrived(got.bytes), taken{{io::done, got.bytes}};
    }
    const std::size_t wanted = left_ != 0 ? std::min<std::size_t>(into.size(), left_)
                                          : record_header - (raw_end_ - raw_begin_) + into.size();
    if (const io got = refill(std::min(wanted, direct), until); got != io::done) return stopped(got, 0);
  }
  if (farewell_.load()) return {{io::closed, 0}};
  return {{}, true};
}

/// With the receiver's lock: moves what is in raw_ to where it waits for a receiver.
void resumable_stream::stash_all(also holding) {
  std::size_t more = 0;
  while (reader_ && !farewell_.load(std::memory_order_relaxed)) {
    if (left_ == 0 && raw_end_ - raw_begin_ >= record_header) {
      if (parse_header()) continue;
      fail(std::exchange(reader_, nullptr), "the peer's records are malformed");
      break;
    }
    const std::size_t there = std::min<std::size_t>(left_, raw_end_ - raw_begin_);
    if (there == 0) break;
    const std::size_t at = stash_.size();
    stash_.resize(at + there);
    more += copy_out(std::span(stash_).subspan(at));
  }
  if (leaving_.load()) stash_.clear(), stash_begin_ = 0;  // nobody will ask for it
  if (more != 0) arrived(more, holding);
}

/// With the receiver's lock: takes what has come, without waiting.
void resumable_stream::pump(also holding) {
  if (plain_.load(std::memory_order_relaxed)) return;
  stash_all(holding);
  while (reader_ && !farewell_.load(std::memory_order_relaxed) && stash_.size() < options_.most_kept) {
    const io got = refill(raw_.size(), deadline::min());
    if (got == io::interrupted) reader_->interrupt();  // it is for the receiver
    if (got == io::timed_out || got == io::interrupted) return;
    if (got != io::done) return lost(std::exchange(reader_, nullptr));
    stash_all(holding);
  }
  if (holding == also::nothing) answer_farewell();
}

io_result resumable_stream::receive(std::span<std::byte> into, deadline until) {
  if (into.empty()) return {io::done, 0};
  while (true) {
    {
      const std::lock_guard reading(receive_mutex_);
      if (plain_.load(std::memory_order_acquire))
        return reader_ ? reader_->receive(into, until) : io_result{io::broken, 0};
      const taken got = leaving_.load() ? taken{} : take(into, until);
      if (got.result.status == io::closed) answer_farewell();
      if (leaving_.load() && got.result.status != io::done) return {io::broken, 0};
      if (!got.no_link) return got.result;
    }
    if (const io found = await_link(until); found != io::done) return {found, 0};
  }
}

io resumable_stream::wait_readable(deadline until) {
  while (true) {
    {
      const std::lock_guard reading(receive_mutex_);
      if (plain_.load(std::memory_order_acquire)) return reader_ ? reader_->wait_readable(until) : io::broken;
      while (true) {
        if (leaving_.load()) return io::broken;
        stash_all();
        if (stash_begin_ != stash_.size()) return io::done;
        if (farewell_.load(std::memory_order_relaxed)) return answer_farewell(), io::closed;
        if (!reader_) break;
        const io seen = reader_->wait_readable(until);
        if (seen == io::interrupted) interrupted_.store(false);
        if ((seen == io::interrupted && !leaving_.load()) || seen == io::timed_out) return seen;
        pump();
      }
    }
    if (const io found = await_link(until); found != io::done) return found;
  }
}

io resumable_stream::await_link(deadline until) {
  std::unique_lock state(state_mutex_);
  while (true) {
    if (over_) return in_order_ ? io::closed : io::broken;
    if (leaving_.load()) return io::broken;
    if (interrupted_.exchange(false)) return io::interrupted;
    if (up_) return io::done;
    if (until == no_deadline) {
      changed_.wait(state);
    } else if (until <= clock::now() || changed_.wait_until(state, until) == std::cv_status::timeout) {
      if (!over_ && !up_ && !leaving_.load()) return io::timed_out;
    }
  }
}

// ---- state ----

/// By who has found that this link is of no use any more.
void resumable_stream::lost(const connection* link) {
  {
    const std::lock_guard state(state_mutex_);
    if (!link || link_.get() != link || !up_ || over_) return;
    up_ = false;
    down_since_ = clock::now();
    link_->shutdown();
    // Before the stream has begun, nobody could resume it; behind a farewell, nobody needs to.
    if (plain_.load() || farewell_.load()) over_ = true, in_order_ = farewell_.load();
    changed_.notify_all();
  }
  if (options_.changed) options_.changed();
}

void resumable_stream::fail(const connection* link, std::string why) {
  {
    const std::lock_guard state(state_mutex_);
    if (link_.get() == link && !over_) over_ = true, why_ = std::move(why);
  }
  lost(link);
  const std::lock_guard state(state_mutex_);
  if (link_) link_->shutdown();
  changed_.notify_all();
}

void resumable_stream::finish(bool in_order, std::string why) {
  {
    const std::lock_guard state(state_mutex_);
    if (std::exchange(finished_, true)) return;
    if (!over_) over_ = true, in_order_ = in_order, why_ = std::move(why);
    up_ = false;
    if (link_) link_->shutdown();
    changed_.notify_all();
  }
  {
    // A sender that still uses what was lent is back as soon as its link is shut down.
    const std::lock_guard sending(send_mutex_);
    writer_ = nullptr;
    kept_.drop();
  }
  if (options_.changed) options_.changed();
}

void resumable_stream::give_up(bool in_order, std::string why) { finish(in_order, std::move(why)); }

void resumable_stream::interrupt() {
  const std::lock_guard state(state_mutex_);
  interrupted_.store(true);
  if (link_) link_->interrupt();
  changed_.notify_all();
}

void resumable_stream::set_spin(std::chrono::microseconds budget) {
  const std::lock_guard reading(receive_mutex_);
  if (reader_) reader_->set_spin(budget);
  const std::lock_guard state(state_mutex_);
  spin_ = budget;
}

std::string resumable_stream::describe() const {
  const std::lock_guard state(state_mutex_);
  return name_;
}

std::string resumable_stream::why_ended() const {
  const std::lock_guard state(state_mutex_);
  return why_;
}

std::optional<clock::time_point> resumable_stream::down_since() const {
  const std::lock_guard state(state_mutex_);
  return up_ || over_ ? std::nullopt : std::optional(down_since_);
}

bool resumable_stream::ended() const {
  const std::lock_guard state(state_mutex_);
  return over_;
}

}  // namespace outboard::transport
