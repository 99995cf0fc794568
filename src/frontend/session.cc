#include "frontend/session.hh"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/cores.hh"
#include "base/overlap.hh"
#include "frontend/call_watch.hh"
#include "frontend/lane.hh"
#include "transport/resumable/stream.hh"
#include "transport/spin.hh"
#include "wire/cursor.hh"

namespace outboard::frontend {
namespace {

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // iovec has no const form; send() only reads
}

/// Whoever holds it encodes a frame or is in one short write: sleeping would cost more than the rest of that.
std::unique_lock<std::mutex> locked_soon(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (lock) return lock;
  for (transport::spin spinning(transport::default_spin(), transport::no_deadline);
       !lock && spinning.again();)
    (void)lock.try_lock();
  if (!lock) lock.lock();
  return lock;
}

/// They read out of a file: 18 GB/s with four, 28 with eight (H200's host, 16 cores).
int drain_threads() {
  const int cores = usable_cores();
  return std::clamp(std::max(cores / 2, std::min(cores - 1, 3)), 1, 8);
}

/// Of a counter that one thread at a time writes: cheaper than fetch_add.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

session::session(std::unique_ptr<transport::connection> connection, session_events events)
    : connection_(std::move(connection)),
      stream_(transport::stream_of(*connection_)),
      events_(std::move(events)),
      drains_(frontend::drains::make(drain_threads())),
      receiver_(new receiver(*connection_, *this, received_)) {
  connection_->set_spin(transport::answer_spin());
}

session::~session() { drains_->drop_all(); }

std::uint64_t session::send(const outgoing& request, wire::frame_kind kind, waiter* waiting,
                            const landing* land) {
  // What comes by frames comes when it likes: what was asked for before must be there first.
  if (land && drains_->pending()) [[unlikely]]
    drains_->await(land->extent());
  const std::unique_lock sending = locked_soon(send_mutex_);
  // Posts in a row are not waited for one by one.
  if (kind == wire::frame_kind::call) connection_->expect_send();
  wire::frame_header header;
  header.size = static_cast<std::uint32_t>(request.payload.size() + request.bulk.size());
  header.kind = kind;
  header.opcode = request.opcode;
  header.lane = request.lane;
  header.ticket = last_ticket_ + 1;
  header.ack = last_answered_.load(std::memory_order_relaxed);
  header.context = request.context;
  if (waiting || land) {  // before the bytes leave: the answer may be read by another thread at once
    const std::lock_guard lock(state_mutex_);
    if (waiting) waiting->ticket = header.ticket, waiters_.add(*waiting);
    if (land) landings_[header.ticket] = *land, landings_pending_.fetch_add(1, std::memory_order_relaxed);
  }
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array parts{part_of(raw), part_of(request.payload), part_of(request.bulk)};
  const std::size_t used = request.bulk.empty() ? (request.payload.empty() ? 1 : 2) : 3;
  add(sent_, raw.size() + header.size);
  last_ticket_ = header.ticket;
  if (calls_watched() && notes_calls) [[unlikely]]
    note_request(header.ticket, this_lane().call);
  if (kind == wire::frame_kind::post && gathers()) {
    const auto now = outbox::clock::now();
    if (outbox_.take({raw, request.payload, request.bulk}, request.how, now))
      return !outbox_.due(now) || write({}, false) ? header.ticket : 0;
  }
  const bool waits = kind == wire::frame_kind::call;
  // The caller's memory stays as it is until the answer is there: it need not be copied to be sent again.
  if (waits && stream_ && used == 3)
    return write(std::span(parts).first(2), true, request.bulk) ? header.ticket : 0;
  return write(std::span(parts).first(used), waits) ? header.ticket : 0;
}

/// With the sender's lock: what is gathered, then the parts. `waits`: for an answer. `lent` follows the parts
/// and stays as it is until call_any() has the answer.
bool session::write(std::span<const iovec> parts, bool waits, std::span<const std::byte> lent) {
  std::array<iovec, 4> all;
  std::size_t used = 0;
  if (!outbox_.gathered().empty()) all[used++] = part_of(outbox_.gathered());
  for (const iovec& part : parts) all[used++] = part;
  std::unique_lock<std::mutex> writing;  // from the outbox's thread; all others have the sender's lock
  if (outbox_.has_thread()) writing = locked_soon(write_mutex_);
  const bool sent = write_to_connection(std::span(all).first(used), lent);
  if (used > parts.size() || gathers()) outbox_.clear(waits);
  return sent;
}

bool session::write_to_connection(std::span<const iovec> parts, std::span<const std::byte> lent) {
  const transport::io_result sent =
      lent.empty() ? connection_->send(parts) : stream_->send_lent(parts, lent, nullptr);
  if (sent.status == transport::io::done) return true;
  const std::string why = stream_ ? stream_->why_ended() : "";
  lose(why.empty() ? "the connection to the server broke while sending" : why);
  return false;
}

/// Of the outbox's thread. True: there was something.
bool session::send_gathered() {
  std::unique_lock sending(send_mutex_);
  if (lost() || outbox_.gathered().empty()) return false;
  const std::array leaving{part_of(outbox_.leave())};
  const std::lock_guard writing(write_mutex_);
  sending.unlock();  // whoever posts meanwhile does not wait for the write
  return write_to_connection(leaving);
}

void session::send_posts() {
  const std::lock_guard sending(send_mutex_);
  if (!lost() && !outbox_.gathered().empty()) (void)write({}, false);
}

bool session::post_any(const outgoing& request, const landing* land) {
  return !lost() && send(request, wire::frame_kind::post, nullptr, land) != 0;
}

CUresult session::post(const outgoing& request, const landing* land) {
  return post_any(request, land) ? CUDA_SUCCESS : lost_code;
}

CUresult session::call(const outgoing& request, std::vector<std::byte>& reply, const landing* land,
                       unique_fd* descriptor) {
  const auto code = call_any(request, reply, land, descriptor);
  return code ? static_cast<CUresult>(*code) : lost_code;
}

std::optional<std::int32_t> session::call_any(const outgoing& request, std::vector<std::byte>& reply,
                                              const landing* land, unique_fd* descriptor) {
  if (lost()) return std::nullopt;
  waiter own;
  own.into = &reply;
  own.descriptor = descriptor;
  if (send(request, wire::frame_kind::call, &own, land)) {
    await(own);
  } else {
    const std::lock_guard lock(state_mutex_);
    forget(own);
  }
  // The answer acknowledges it, but that is the server's word.
  if (stream_ && !request.bulk.empty()) stream_->settle();
  if (!own.done) return std::nullopt;
  std::int32_t code = 0;
  if (reply.size() < sizeof code) {
    lose("the server sent a reply without a result");
    return std::nullopt;
  }
  std::memcpy(&code, reply.data(), sizeof code);
  reply.erase(reply.begin(), reply.begin() + sizeof code);
  return code;
}

void session::await(waiter& own) {
  std::unique_lock lock(state_mutex_);
  while (!own.done && !lost()) {
    if (leading_) {
      own.asleep = true;
      own.wake.wait(lock);
      own.asleep = false;
    } else {
      lead(lock, &own, [&] { return own.done; });
      hand_over_reading(&own);
    }
  }
  forget(own);
}

/// Reads frames until the caller, who may wait for a reply of its `own`, has what it wants, which then hands
/// the reading over.
template <class Enough>
void session::lead(std::unique_lock<std::mutex>& lock, waiter* own, Enough&& enough) {
  leading_ = true;
  leader_ = own;
  while (!enough() && !lost()) {
    lock.unlock();
    const status got = receiver_->receive_frame();
    if (!got) lose(got.error().message);
    lock.lock();
  }
  leading_ = false;
  leader_ = nullptr;
}

/// To a follower that sleeps: one that is still sending would not hear of it, and while it cannot send
/// because nobody reads, nobody would ever read. Without one, to the attendant, if callbacks may come.
void session::hand_over_reading(const waiter* own) {
  bool given = false;
  waiters_.each([&](waiter& other) {
    if (&other == own || other.done || !other.asleep) return false;
    other.wake.notify_one();
    return given = true;
  });
  if (given) return;
  if (attendant_asleep_ && callbacks_expected()) attend_.notify_one();
}

void session::expect_callbacks(std::uint64_t count) {
  expected_.fetch_add(count, std::memory_order_relaxed);
  const std::lock_guard lock(state_mutex_);
  if (attendant_asleep_ && !leading_) attend_.notify_one();
}

void session::callback(std::uint64_t number, const marshal::callback_body& errand) {
  if (errand.what == marshal::errand::run) outbox_.answered();
  const std::lock_guard lock(state_mutex_);
  orders_.push_back({number, errand});
  if (attendant_asleep_) attend_.notify_one();
}

std::optional<callback_order> session::next_callback() {
  // An announced callback is expected until it has run: its stream waits for it so long.
  thread_local bool ran_last = false;
  std::unique_lock lock(state_mutex_);
  // A server that says it too often must not make us wait for ever more.
  if (std::exchange(ran_last, false) && callbacks_expected())
    expected_.fetch_sub(1, std::memory_order_relaxed);
  while (orders_.empty() && !lost()) {
    if (leading_ || !callbacks_expected()) {
      attendant_asleep_ = true;
      attend_.wait(lock);
      attendant_asleep_ = false;
    } else {
      lead(lock, nullptr, [&] { return !orders_.empty(); });
      hand_over_reading(nullptr);
    }
  }
  if (orders_.empty()) return std::nullopt;
  const callback_order next = orders_.front();
  orders_.pop_front();
  ran_last = next.errand.last;
  return next;
}

void session::answer_callback(std::uint64_t number, std::span<const std::byte> bytes) {
  if (number && !lost()) send_plain(wire::frame_kind::callback_done, number, bytes);
}

/// With the lock.
void session::forget(const waiter& own) {
  waiters_.remove(own);
  if (!landings_.empty() && landings_.erase(own.ticket))
    landings_pending_.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<std::byte>* session::reply_target(std::uint64_t ticket) {
  if (leader_ && leader_->ticket == ticket) return leader_->done ? nullptr : leader_->into;
  const std::lock_guard lock(state_mutex_);
  const waiter* found = waiters_.find(ticket);
  return !found || found->done ? nullptr : found->into;
}

void session::reply_arrived(std::uint64_t ticket) {
  last_answered_.store(ticket, std::memory_order_relaxed);
  if (leader_ && leader_->ticket == ticket) return void(leader_->done = true);
  const std::lock_guard lock(state_mutex_);
  waiter* w = waiters_.find(ticket);
  if (!w) return;  // it has heard that the session is lost
  w->done = true;
  w->wake.notify_one();
}

void session::descriptor(std::uint64_t ticket, unique_fd fd) {
  const std::lock_guard lock(state_mutex_);
  const waiter* found = waiters_.find(ticket);
  if (found && found->descriptor) *found->descriptor = std::move(fd);
}

std::span<std::byte> landing::run_at(std::size_t offset, std::size_t wanted) const {
  if (row == 0) return {to + offset, wanted};
  const std::size_t line = offset / row, within = offset % row;
  std::byte* start = to + line / rows * slice + line % rows * pitch;
  return {start + within, std::min(wanted, row - within)};
}

std::span<const std::byte> landing::extent() const {
  if (row == 0 || size == 0) return {to, size};
  const std::size_t last = (size + row - 1) / row - 1;
  return {to, last / rows * slice + std::min(last, rows - 1) * pitch + row};
}

bool session::landing_places(std::uint64_t ticket, std::uint64_t offset, std::uint64_t size,
                             std::vector<std::span<std::byte>>& places) {
  if (ticket & wire::graph_copy) {
    std::byte* place =
        events_.graph_place ? events_.graph_place(ticket & ~wire::graph_copy, offset, size) : nullptr;
    if (place) places.push_back({place, static_cast<std::size_t>(size)});
    return place != nullptr;
  }
  const std::lock_guard lock(state_mutex_);
  const auto found = landings_.find(ticket);
  if (found == landings_.end()) return false;
  const landing place = found->second;
  if (offset > place.size || size > place.size - offset) return false;
  const auto begin = static_cast<std::size_t>(offset), all = static_cast<std::size_t>(size);
  for (std::size_t done = 0; done < all;) {
    places.push_back(place.run_at(begin + done, all - done));
    done += places.back().size();
  }
  return true;
}

/// Bytes of one copy come in order: the last ones end it, unless a call waits for it (then forget() does).
/// Not before they are there: whoever sees no copy under way reads its memory, or gives it away.
void session::landed(std::uint64_t ticket, std::uint64_t end) {
  const std::lock_guard lock(state_mutex_);
  const auto found = landings_.find(ticket);
  if (found == landings_.end() || end != found->second.size || waiters_.find(ticket)) return;
  landings_.erase(found);
  landings_pending_.fetch_sub(1, std::memory_order_release);
}

bool session::copies_pending_by_frames(std::span<const std::byte> memory) {
  if (asides_.pending()) return true;
  if (landings_pending_.load(std::memory_order_acquire) == 0) return false;
  constexpr std::size_t few = 1000;  // to look through
  {
    const std::lock_guard lock(state_mutex_);
    if (landings_.size() > few) return true;
  }
  return lands_in(memory);
}

bool session::lands_in(std::span<const std::byte> memory) {
  if (landings_pending_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(state_mutex_);
  return std::ranges::any_of(landings_,
                             [&](const auto& entry) { return overlap(entry.second.extent(), memory); });
}

namespace {

/// From the first byte of them to the last.
std::span<const std::byte> around(std::span<const std::span<std::byte>> places) {
  const std::byte *first = places[0].data(), *end = first;
  for (const std::span<std::byte> place : places) {
    first = std::min<const std::byte*>(first, place.data());
    end = std::max<const std::byte*>(end, place.data() + place.size());
  }
  return {first, end};
}

}  // namespace

/// A graph's copies come by frames, whatever way those before them in its stream went.
status session::before_landing(std::span<const std::span<std::byte>> places) {
  const bool crosses = asides_.pending() &&
                       std::ranges::any_of(places, [&](const auto& place) { return asides_.touch(place); });
  return crosses || (drains_->pending() && !places.empty() && drains_->touch(around(places)))
             ? collect_asides()
             : status{};
}

void session::copy_failed(std::uint64_t ticket) {
  const std::lock_guard lock(state_mutex_);
  if (landings_.erase(ticket)) landings_pending_.fetch_sub(1, std::memory_order_relaxed);
}

status session::aside(const marshal::aside_body& piece, std::span<const std::span<std::byte>> places) {
  if (!asides_.expect(piece, places)) return failure("bytes over no connection of ours");
  return asides_.many() ? collect_asides() : status{};
}

status session::collect_asides() {
  const auto bytes = asides_.collect();
  if (!bytes) return bytes.error();
  add_aside({0, *bytes});
  drains_->collect();
  return {};
}

/// What the device had still to do in the context it will not do.
void session::notice(std::uint64_t context, std::int32_t code) {
  drains_->drop(context);
  events_.sticky_error(context, code);
}

void session::lose(const std::string& why) {
  {
    // Who sees that it is lost may end the program at once: the reason is told before.
    const std::lock_guard once(lose_mutex_);
    if (lost()) return;
    events_.lost(why);
    lost_.store(true, std::memory_order_release);
  }
  connection_->shutdown();
  drains_->drop_all();
  const std::lock_guard lock(state_mutex_);
  attend_.notify_one();
  waiters_.each([](waiter& w) { return w.wake.notify_one(), false; });
}

void session::resume_on(std::unique_ptr<transport::connection> connection) {
  const std::scoped_lock locks(send_mutex_, state_mutex_);
  connection_->shutdown();
  const std::lock_guard writing(write_mutex_);
  outbox_.clear(true);
  receiver_.reset();
  connection_ = std::move(connection);
  stream_ = transport::stream_of(*connection_);
  receiver_.reset(new receiver(*connection_, *this, received_));
  connection_->set_spin(transport::answer_spin());
  asides_.drop_all();
  drains_->drop_all();
  landings_.clear();
  orders_.clear();
  expected_.store(0);
  landings_pending_.store(0);
  lost_.store(false, std::memory_order_release);
}

void session::send_plain(wire::frame_kind kind, std::uint64_t ticket, std::span<const std::byte> payload) {
  wire::frame_header header;
  header.size = static_cast<std::uint32_t>(payload.size());
  header.kind = kind;
  header.ticket = ticket;
  header.ack = last_answered_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array parts{part_of(raw), part_of(payload)};
  const std::lock_guard sending(send_mutex_);
  if (write(std::span(parts).first(payload.empty() ? 1 : 2), false)) add(sent_, raw.size() + header.size);
}

void session::end_lane(std::uint32_t lane) {
  outgoing request;
  request.lane = lane;
  if (!lost()) send(request, wire::frame_kind::lane_end, nullptr, nullptr);
}

void session::goodbye() {
  if (lost_.exchange(true, std::memory_order_acq_rel)) return;
  drains_->drop_all();
  outbox_.stop();
  std::unique_lock sending(send_mutex_, std::defer_lock), writing(write_mutex_, std::defer_lock);
  // The outbox's thread is done in a moment. Another thread in the middle of a send: it is an unclean exit
  // anyway.
  for (int tries = 0; std::try_lock(sending, writing) != -1 && tries < 50; ++tries) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (sending.owns_lock()) {
    wire::frame_header header;
    header.kind = wire::frame_kind::goodbye;
    header.ticket = last_ticket_ + 1;
    std::array<std::byte, wire::header_size> raw;
    wire::encode_header(header, raw);
    const std::array parts{part_of(outbox_.gathered()), part_of(raw)};
    connection_->send(parts, transport::clock::now() + std::chrono::milliseconds(100));
  }
  connection_->shutdown();
  goodbye_said_.store(true);
  const std::lock_guard lock(state_mutex_);
  attend_.notify_one();
}

void session::await_goodbye(transport::deadline until) {
  if (stream_ && goodbye_said_.load()) stream_->await_end(until);
}

}  // namespace outboard::frontend
