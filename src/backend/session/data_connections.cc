#include "backend/session/data_connections.hh"

#include <sys/prctl.h>

#include <algorithm>
#include <array>

#include "marshal/data_bodies.hh"
#include "transport/resumable/stream.hh"
#include "wire/frame.hh"

namespace outboard::backend {
namespace {

using transport::io;

/// Pieces that have come and that nobody has asked for: a client keeps far fewer on the way.
constexpr std::size_t most_arrived = 64;

/// Contexts of one session that copy much, both directions of each, and copies that nobody waits for.
constexpr std::size_t most_links = std::size_t{3} * most_data_connections * 16;

/// Between two looks at copies that are not complete: a piece takes 20 us.
constexpr std::chrono::microseconds shortest_look{20}, longest_look{1000};

}  // namespace

/// With mutex_ held, as may_bring(). The caller lets go of them without it.
template <class Which>
data_connections::arrivals data_connections::forget_arrived(Which&& which) {
  arrivals gone;
  for (auto at = arrived_.begin(); at != arrived_.end();) {
    const auto here = at++;
    if (which(*here)) gone.insert(arrived_.extract(here));
  }
  went_.notify_all();
  return gone;
}

std::optional<std::uint32_t> data_connections::add(std::unique_ptr<link> made, std::uint64_t context,
                                                   std::uint64_t set) {
  made->context = context;
  made->set = set;
  made->enter = memory_.enter(context);
  if (!made->enter) return std::nullopt;
  arrivals gone;  // they go without the lock
  std::unique_lock lock(mutex_);
  reap(lock);
  if (ended_ || links_.size() >= most_links) return std::nullopt;
  link& own = *made;
  // All requests about an earlier set have been carried out: nobody will ask for what it has left.
  if (own.inward)
    gone = forget_arrived(
        [&](const auto& entry) { return entry.first.first == context && entry.second.set < set; });
  links_.emplace(++last_, std::move(made));
  own.thread = std::thread([this, &own] { run(own); });
  return last_;
}

std::uint64_t data_connections::begin_set() {
  const std::lock_guard lock(mutex_);
  return ++last_set_;
}

bool data_connections::add_inward(std::unique_ptr<transport::connection> connection, std::uint64_t context,
                                  std::uint64_t set) {
  auto made = std::make_unique<link>();
  made->connection = std::move(connection);
  made->inward = true;
  return add(std::move(made), context, set).has_value();
}

std::optional<std::uint32_t> data_connections::add_outward(std::unique_ptr<transport::connection> connection,
                                                           std::uint64_t context, std::uint64_t set,
                                                           std::uint32_t later) {
  auto made = std::make_unique<link>();
  made->connection = std::move(connection);
  made->later = later;
  if (packs_) made->packer.emplace();
  return add(std::move(made), context, set);
}

/// Of contexts that are dead: their threads are at their end, or in a last wait of the driver's.
void data_connections::reap(std::unique_lock<std::mutex>& lock) {
  for (auto at = links_.begin(); at != links_.end();) {
    if (!at->second->over) {
      ++at;
      continue;
    }
    const auto gone = std::move(at->second);
    at = links_.erase(at);
    lock.unlock();
    gone->thread.join();
    lock.lock();
    at = links_.begin();  // others may have come and gone
  }
}

void data_connections::run(link& own) {
  ::prctl(PR_SET_NAME, "outboard-data");
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // else a sleep between looks takes 50 us more
  own.enter();
  if (own.inward) {
    receive_all(own);
  } else {
    send_all(own);
  }
  own.connection->shutdown();
  std::deque<outgoing> left;  // they go without the lock
  const std::lock_guard lock(mutex_);
  left.swap(own.queue);
  own.over = true;
  // What has arrived stays: a client that has posted its last copy may close before a lane asks for the
  // bytes.
  came_.notify_all();
}

/// Is there a connection of the context's latest set? A client that has sent all closes them one by one, and
/// what lies in another one is still to come.
bool data_connections::may_bring(std::uint64_t context) const {
  std::uint64_t set = 0;
  bool may = false;
  for (const auto& [number, l] : links_) {
    if (!l->inward || l->context != context || l->set < set) continue;
    may = (l->set == set && may) || (!l->over && !l->closing);
    set = l->set;
  }
  return may;
}

void data_connections::receive_all(link& own) {
  while (receive_one(own)) {
  }
}

/// The bytes behind the header, in the API's memory for copies. Else what went wrong.
const char* data_connections::receive_piece(link& own, const wire::frame_header& header,
                                            std::unique_ptr<data_piece>& piece) {
  constexpr const char* broke = "a data connection broke inside a frame";
  const bool packed = header.kind == wire::frame_kind::packed;
  std::size_t size = header.size;
  if (packed) {
    own.packed.resize(size);
    if (transport::receive_whole(*own.connection, own.packed) != io::done) return broke;
    size = marshal::packed_size(own.packed);
    if (size == 0 || size > marshal::max_data_piece)
      return "protocol error: a packed piece of impossible size";
  }
  piece = memory_.take(size, own.context);
  if (!piece) return "no page-locked memory for a copy";
  const std::span<std::byte> into = piece->bytes();
  const bool there = packed ? marshal::unpack_piece(own.packed, into)
                            : transport::receive_whole(*own.connection, into) == io::done;
  if (there) return nullptr;
  return packed ? "protocol error: a packed piece is damaged" : broke;
}

/// False: it is over, in order or not.
bool data_connections::receive_one(link& own) {
  std::array<std::byte, wire::header_size> raw;
  const io got = transport::receive_whole(*own.connection, raw);
  const auto fails = [&](const char* why) {
    bool expected = false;
    {
      const std::lock_guard lock(mutex_);
      expected = ended_ || own.closing;
    }
    if (!expected) broken_(why);
    return false;
  };
  if (got == io::closed) return false;
  if (got != io::done) return fails("a data connection broke");
  const auto header = wire::decode_header(raw, marshal::max_data_piece);
  const bool known =
      header && (header->kind == wire::frame_kind::data || header->kind == wire::frame_kind::packed);
  if (!known || header->size == 0) return fails("protocol error: a frame that data connections do not have");
  {
    std::unique_lock lock(mutex_);
    // Pieces of later copies may have come over the other connections: what a lane waits for is always let
    // in.
    const std::pair key(own.context, header->ticket);
    went_.wait(lock,
               [&] { return arrived_.size() < most_arrived || wanted_ == key || ended_ || own.closing; });
    if (ended_ || own.closing) return false;
  }
  arrival came{nullptr, own.set};
  if (const char* problem = receive_piece(own, *header, came.piece)) return fails(problem);
  bool twice = false;
  {
    const std::lock_guard lock(mutex_);
    twice = !arrived_.try_emplace({own.context, header->ticket}, std::move(came)).second;
    came_.notify_all();
  }
  if (!twice) return true;
  return fails("protocol error: two pieces with one number");
}

std::unique_ptr<data_piece> data_connections::take(std::uint64_t context, std::uint64_t number) {
  std::unique_lock lock(mutex_);
  wanted_ = {context, number};
  went_.notify_all();
  const auto found = [&] { return arrived_.find({context, number}); };
  came_.wait(lock, [&] { return found() != arrived_.end() || ended_ || !may_bring(context); });
  const auto at = found();
  if (at == arrived_.end()) {
    lock.unlock();
    broken_("a data connection closed before its bytes came");
    return nullptr;
  }
  std::unique_ptr<data_piece> piece = std::move(at->second.piece);
  arrived_.erase(at);
  went_.notify_all();
  return piece;
}

bool data_connections::send(std::uint32_t connection, std::uint64_t number,
                            std::unique_ptr<data_piece>& piece, std::int32_t code, std::uint32_t pace) {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(connection);
  if (found == links_.end() || found->second->inward || found->second->later || found->second->over ||
      found->second->closing || ended_)
    return false;
  found->second->queue.push_back({number, std::move(piece), code, false, pace});
  found->second->work.notify_one();
  return true;
}

/// With mutex_ held.
bool data_connections::sends_later(const link& l, std::uint64_t context) {
  return l.later && l.context == context && !l.over && !l.closing;
}

bool data_connections::has_later(std::uint64_t context) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(links_, [&](const auto& entry) { return sends_later(*entry.second, context); });
}

void data_connections::expect_later() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(expected_, true)) return;
  for (const auto& [number, l] : links_) {
    if (l->later) l->work.notify_one();
  }
}

std::optional<data_connections::way> data_connections::send_later(std::unique_ptr<data_piece>& piece,
                                                                  std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (ended_) return std::nullopt;
  const auto usable = [&](const auto& entry) { return sends_later(*entry.second, context); };
  // By turns: they are equally fast.
  auto next = std::find_if(links_.upper_bound(last_later_), links_.end(), usable);
  if (next == links_.end()) next = std::ranges::find_if(links_, usable);
  if (next == links_.end()) return std::nullopt;
  last_later_ = next->first;
  link& chosen = *next->second;
  chosen.queue.push_back({++chosen.sent_later, std::move(piece), 0, true, 0});
  chosen.work.notify_one();
  return way{chosen.later, chosen.sent_later};
}

/// With mutex_ held, which is not held meanwhile: one thread sees to it that copies leave when they are
/// complete, not when the client asks.
void data_connections::scout(const link& own, std::unique_lock<std::mutex>& lock) {
  scouting_ = true;
  auto pause = shortest_look;
  while (!ended_ && own.queue.empty()) {  // a lane that replies may give this thread something to send
    expected_ = false;
    lock.unlock();
    const look found = look_after_();
    if (found == look::not_yet) std::this_thread::sleep_for(pause);
    pause = found == look::sent ? shortest_look : std::min(longest_look, pause + pause / 4);
    lock.lock();
    if (found != look::nothing) expected_ = true;  // there may be more
    if (found == look::sent || (found == look::nothing && !expected_)) break;
  }
  scouting_ = false;
  if (!expected_) return;
  for (const auto& [number, l] : links_) {  // this thread may have to send now: another one is to look
    if (l->later) l->work.notify_one();
  }
}

/// Waits for it. False: there will be none.
bool data_connections::next_to_send(link& own, outgoing& piece) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (ended_ || (own.closing && (!own.later || own.queue.empty()))) return false;
    if (!own.queue.empty()) break;
    if (own.later && expected_ && !scouting_) {
      scout(own, lock);
    } else {
      own.work.wait(lock);
    }
  }
  piece = std::move(own.queue.front());
  own.queue.pop_front();
  return true;
}

void data_connections::send_all(link& own) {
  auto* const stream = transport::stream_of(*own.connection);
  const auto has_work = [&] {
    return ended_ || own.closing || !own.queue.empty() || (own.later && expected_ && !scouting_);
  };
  // The stream's lock is held: whoever ends the connection has ours and waits for that one.
  const auto has_more = [&] {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock && has_work();
  };
  for (outgoing piece; next_to_send(own, piece);) {
    if (!send_one(own, piece)) return;  // the client closed it, or is gone
    piece.piece.reset();
    // The memory of a piece that the client has is for the next copy, which may come at once.
    if (stream) stream->let_go(has_more);
  }
}

/// Over a stream that can be resumed a piece stays until the client has it, so that it need not be copied.
bool data_connections::send_frame(link& own, std::span<const iovec> parts, outgoing& piece) {
  auto* const stream = transport::stream_of(*own.connection);
  const bool whole = piece.piece && parts.size() == 2 && parts[1].iov_base == piece.piece->bytes().data();
  if (!stream || !whole) return own.connection->send(parts).status == io::done;
  const std::span<const std::byte> bytes = piece.piece->bytes();
  return stream->send_lent(parts.first(1), bytes, std::shared_ptr<data_piece>(std::move(piece.piece)))
             .status == io::done;
}

bool data_connections::send_one(link& own, outgoing& piece) {
  std::int32_t code = piece.code;
  if (code == 0 && piece.piece && !piece.complete) code = piece.piece->await();
  std::span<const std::byte> bytes;
  if (code == 0 && piece.piece) bytes = piece.piece->bytes();
  wire::frame_header header;
  header.kind = wire::frame_kind::data;
  if (own.packer && !bytes.empty()) {
    if (const auto packed = own.packer->pack(bytes); !packed.empty()) {
      bytes = packed;
      header.kind = wire::frame_kind::packed;
    }
  }
  header.ticket = piece.number;
  header.context = static_cast<std::uint64_t>(code);
  header.size = static_cast<std::uint32_t>(bytes.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  // iovec has no const form; send() only reads
  const std::array parts{iovec{raw.data(), raw.size()},
                         iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
  const auto began = transport::clock::now();
  if (!send_frame(own, std::span(parts).first(bytes.empty() ? 1 : 2), piece)) return false;
  if (!own.packer || bytes.empty()) return true;
  // What fits into the buffers on the way has gone at once, but not arrived.
  const std::chrono::nanoseconds travel(std::uint64_t{piece.pace} * bytes.size() >> 20);
  own.packer->went(bytes.size(), std::max<std::chrono::nanoseconds>(transport::clock::now() - began, travel));
  return true;
}

void data_connections::drop_context(std::uint64_t context) {
  arrivals gone;  // they go without the lock
  const std::lock_guard lock(mutex_);
  for (const auto& [number, l] : links_) {
    if (l->context != context) continue;
    l->closing = true;
    l->work.notify_all();
    if (!l->later) l->connection->shutdown();  // the client has been told what comes over the others
  }
  gone = forget_arrived([&](const auto& entry) { return entry.first.first == context; });
  came_.notify_all();
}

void data_connections::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const auto& [number, l] : links_) {
    l->connection->shutdown();
    l->work.notify_all();
  }
  came_.notify_all();
  went_.notify_all();
}

bool data_connections::join(std::chrono::steady_clock::time_point until) {
  for (const auto& [number, l] : links_) {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (l->over) break;
      }
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    l->thread.join();
  }
  links_.clear();
  arrived_.clear();  // pieces are memory of the API
  return true;
}

}  // namespace outboard::backend
