#include "transport/shm/connection.hh"

#include <fcntl.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/errno_text.hh"
#include "transport/shm/futex.hh"
#include "transport/spin.hh"

namespace outboard::transport::shm {

namespace {

using outboard::error;

/// The marked bytes: behind them this direction is in its ring.
constexpr std::byte server_goes_over{0xa0}, client_goes_over{0xa1};
constexpr std::byte bell{0xbe}, descriptor_carrier{0xfd};

/// A long send is seen by the reader in pieces of this size, so that both copy at once.
constexpr std::uint64_t publish_step = 128u << 10;
/// A reader that lies down looks this often before it sleeps: by then whatever a writer has written that
/// looked the moment before has got through. On a machine that we do not know it finds it after the other
/// time. (Not sooner: an early timer costs a virtual machine more than the sleep.)
constexpr int second_looks = 32;
constexpr auto late_look = std::chrono::milliseconds(20);
/// How often a writer without room looks for itself whether there is some, or the peer has died without a
/// word.
constexpr auto futex_slice = std::chrono::milliseconds(50);
/// And every how many sends one that always has room does.
constexpr unsigned sends_between_looks = 256;

bool is_accepted(int socket) {
  sockaddr_un own{};
  socklen_t size = sizeof own;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
         size > offsetof(sockaddr_un, sun_path);
}

}  // namespace

result<std::unique_ptr<connection>> ring_connection::make(unique_fd socket, std::string name) {
  result<unique_fd> event = wakeup::make_event();
  if (!event) return std::move(event).error();
  const bool server = is_accepted(socket.get());
  return std::unique_ptr<connection>(
      new ring_connection(std::move(socket), std::move(event).value(), std::move(name), server));
}

ring_connection::~ring_connection() { leave(); }

const capabilities& ring_connection::what() const {
  static constexpr capabilities by_socket{.same_host = true,
                                          .passes_descriptors = true,
                                          .detachable = true,
                                          .peer_identity = true,
                                          .preferred_chunk = 256 << 10,
                                          .send_is_a_call = true};
  static constexpr capabilities by_rings{.same_host = true,
                                         .passes_descriptors = true,
                                         .detachable = false,  // rings do not fit into one descriptor
                                         .peer_identity = true,
                                         .preferred_chunk = 256 << 10};
  return rings_.load(std::memory_order_acquire) ? by_rings : by_socket;
}

void ring_connection::publish_rings(memory shared) {
  shared_words& words = shared.words();
  const std::span<std::byte> up = shared.up(), down = shared.down();
  own_rings_.reset(new rings{std::move(shared),
                             server_ ? ring_writer(words.down, down) : ring_writer(words.up, up),
                             server_ ? ring_reader(words.up, up) : ring_reader(words.down, down)});
  rings_.store(own_rings_.get(), std::memory_order_release);
}

// ---- The sender ----

/// The server's: a failure is no error, the socket carries everything as well.
void ring_connection::offer_rings(deadline until) {
  offered_ = true;
  auto made = memory::make(ring_sizes());
  if (!made) return;
  publish_rings(std::move(made->first));  // first: the client may go over as soon as it has the memory
  if (!send_carrier(server_goes_over, made->second.get(), until)) return;
  out_ = &own_rings_->out;
  memory_ = std::move(made->second);
}

/// done: out_ is set, or sending goes by the socket.
io ring_connection::begin_sending(deadline until) {
  if (server_) {
    if (!offered_) offer_rings(until);
    return io::done;
  }
  rings* r = rings_.load(std::memory_order_acquire);
  if (!r) return io::done;
  const status gone_over = send_carrier(client_goes_over, memory_.get(), until);
  if (gone_over) {
    out_ = &r->out;
    memory_.reset();
    return io::done;
  }
  // No room for a byte, or the kernel holds too many descriptors: the next time.
  if (gone_over.error().next == action::retry) return clock::now() >= until ? io::timed_out : io::done;
  return io::broken;
}

io_result ring_connection::send(std::span<const iovec> parts, deadline until) {
  if (!out_) [[unlikely]] {
    if (io begun = begin_sending(until); begun != io::done) return {begun, 0};
    if (!out_) return local_connection::send(parts, until);
  }
  std::size_t sent = 0;
  const io end = send_by_ring(parts, until, sent);
  return {end, sent};
}

void ring_connection::expect_send() {
  if (const rings* r = rings_.load(std::memory_order_acquire)) r->out.fetch_ahead();
}

io ring_connection::send_by_ring(std::span<const iovec> parts, deadline until, std::size_t& sent) {
  if (!peer_is_there()) return io::broken;
  for (const iovec& part : parts) {
    std::span<const std::byte> left(static_cast<const std::byte*>(part.iov_base), part.iov_len);
    while (!left.empty()) {
      const std::size_t n = out_->put(left.first(std::min<std::size_t>(left.size(), publish_step)));
      left = left.subspan(n);
      sent += n;
      if (n == 0 || out_->unpublished() >= publish_step) publish();
      if (n > 0) continue;
      if (io waited = wait_for_room(until, false); waited != io::done) return waited;
    }
  }
  publish();
  return io::done;
}

bool ring_connection::peer_is_there() {
  if (is_shut() || out_->reader_gone()) return false;
  // One that was killed left no word; asking the kernel each time would cost more than the send.
  return ++sends_ % sends_between_looks != 0 || !peer_gone();
}

void ring_connection::publish() {
  if (!out_->publish()) return;
  // A socket that is full of bells is as good as another.
  (void)::send(descriptor_number(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Until there is room (and for a mark, if asked). done, broken, timed_out.
io ring_connection::wait_for_room(deadline until, bool for_mark) {
  const auto ready = [&] { return for_mark ? out_->can_mark() : out_->has_room(); };
  const auto over = [&] { return is_shut() || out_->reader_gone() || out_->broken(); };
  spin spinning(default_spin(), until);
  do {
    if (ready()) return io::done;
    if (over()) return io::broken;
  } while (spinning.again());
  for (;;) {
    out_->lie_down();
    const bool now = ready() || over();
    if (!now) futex_wait(out_->futex(), 1, std::min(until, clock::now() + futex_slice));
    out_->get_up();
    if (over() || (!now && peer_gone())) return io::broken;
    if (ready()) return io::done;
    if (clock::now() >= until) return io::timed_out;
  }
}

status ring_connection::send_descriptor(int fd) {
  if (!out_ && begin_sending(no_deadline) != io::done)
    return error{action::reconnect, describe() + " is closed"};
  if (!out_) return local_connection::send_descriptor(fd);
  if (is_shut() || wait_for_room(no_deadline, true) != io::done)
    return error{action::reconnect, describe() + " is closed"};
  OUTBOARD_TRY(send_carrier(descriptor_carrier, fd, no_deadline));
  out_->mark();
  out_->put({&descriptor_carrier, 1});
  publish();
  return {};
}

// ---- The receiver ----

bool ring_connection::is_first_of_ring(const carrier& c) const {
  if (!c.descriptor) return false;
  return server_ ? c.byte == client_goes_over && rings_.load(std::memory_order_acquire) != nullptr
                 : c.byte == server_goes_over;
}

/// False: what came is no memory of rings.
bool ring_connection::begin_receiving(carrier c) {
  if (!server_) {
    auto adopted = memory::adopt(c.descriptor.get());
    if (!adopted) return false;
    memory_ = std::move(c.descriptor);
    publish_rings(std::move(adopted).value());
  }
  in_ = &rings_.load(std::memory_order_acquire)->in;
  return true;
}

io_result ring_connection::attempt(std::span<std::byte> into) {
  return in_ ? attempt_ring(into) : attempt_socket(into);
}

io_result ring_connection::attempt_socket(std::span<std::byte> into) {
  for (;;) {
    if (is_shut()) return {io::broken, 0};
    if (!kept_) {
      unique_fd descriptor;
      const ssize_t n = receive_message(descriptor_number(), into, descriptor);
      if (n == 0) return {is_shut() ? io::broken : io::closed, 0};
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return {errno == EAGAIN ? io::timed_out : io::broken, 0};
      const auto count = static_cast<std::size_t>(n);
      if (!descriptor) return {io::done, count};
      kept_ = carrier{into[count - 1], std::move(descriptor)};
      if (count > 1) return {io::done, count - 1};
    }
    carrier next = std::move(*kept_);
    kept_.reset();
    if (!is_first_of_ring(next)) return into[0] = next.byte, io_result{io::done, 1};
    if (!begin_receiving(std::move(next))) return {io::broken, 0};
    return attempt_ring(into);
  }
}

io_result ring_connection::attempt_ring(std::span<std::byte> into) {
  if (is_shut()) return {io::broken, 0};
  if (const std::size_t n = in_->take(into)) {
    wake_writer();
    return {io::done, n};
  }
  if (in_->broken() || flooded_) return {io::broken, 0};
  if (in_->at_mark()) {  // the protocol above went wrong, the stream stays in order
    unique_fd unwanted;
    if (!next_descriptor(unwanted)) return {io::broken, 0};
    into[0] = in_->take_mark();
    wake_writer();
    return {io::done, 1};
  }
  return {ended_ ? io::closed : io::timed_out, 0};
}

void ring_connection::wake_writer() {
  if (in_->writer_waits()) futex_wake(in_->futex_of_writer());
}

io ring_connection::await_bytes(deadline until) {
  if (!in_) return wait_as_receiver(POLLIN, until);
  in_->lie_down();
  io waited = look();
  for (int looks = 0; waited == io::timed_out && looks < second_looks; ++looks) {
    spin_pause();
    waited = look();
  }
  const auto sleep = [&](deadline most) {
    waited = wait_as_receiver(POLLIN, most);
    if (waited == io::done) read_socket();
    if (waited == io::timed_out) waited = look();
  };
  if (waited == io::timed_out) sleep(std::min(until, clock::now() + late_look));
  if (waited == io::timed_out && clock::now() < until) sleep(until);
  in_->get_up();
  return waited;
}

/// Of a ring: would receive() return at once?
io ring_connection::look() {
  return in_->readable() || in_->broken() || flooded_ || ended_ ? io::done : io::timed_out;
}

io ring_connection::wait_readable(deadline until) {
  if (is_shut()) return io::broken;
  if (!in_) {
    if (kept_ && !is_first_of_ring(*kept_)) return io::done;
    if (!kept_) {
      if (io waited = local_connection::wait_readable(until); waited != io::done) return waited;
      // The byte with which the rings begin is nobody's to receive.
      std::byte byte;
      unique_fd descriptor;
      if (receive_message(descriptor_number(), {&byte, 1}, descriptor) <= 0) return io::done;
      kept_ = carrier{byte, std::move(descriptor)};
    }
    if (!is_first_of_ring(*kept_)) return io::done;
    carrier first = std::move(*kept_);
    kept_.reset();
    if (!begin_receiving(std::move(first))) return io::broken;
  }
  if (look() == io::done) return io::done;
  if (spin_.count() > 0) {
    spin spinning(spin_, until);
    while (!interrupt_raised() && spinning.again())
      if (look() == io::done) return io::done;
  }
  for (;;) {
    if (io waited = await_bytes(until); waited != io::done) return waited;
    if (look() == io::done) return io::done;
  }
}

/// Takes what has come by the socket: bells, descriptors before their time, the end.
void ring_connection::read_socket() {
  std::array<std::byte, 64> bells;
  for (;;) {
    unique_fd descriptor;
    const ssize_t n = receive_message(descriptor_number(), bells, descriptor);
    if (n < 0 && errno == EINTR) continue;
    // A reset is an end: who closed had not read all bells.
    if (n == 0 || (n < 0 && errno != EAGAIN)) ended_ = true;
    if (descriptor) {
      flooded_ = descriptors_.size() >= most_descriptors;
      if (!flooded_) descriptors_.push_back(std::move(descriptor));
    }
    if (n <= 0 || flooded_ || static_cast<std::size_t>(n) < bells.size()) return;
  }
}

/// The one that belongs to the byte at hand: it was sent before that byte, so it is there.
bool ring_connection::next_descriptor(unique_fd& fd) {
  while (descriptors_.empty() && !ended_ && !flooded_) {
    const std::size_t before = descriptors_.size();
    pollfd one{descriptor_number(), POLLIN, 0};
    if (poll_until({&one, 1}, deadline::min()) <= 0) return false;
    read_socket();
    if (before == descriptors_.size() && is_shut()) return false;
  }
  if (descriptors_.empty()) return false;
  fd = std::move(descriptors_.front());
  descriptors_.pop_front();
  return true;
}

result<unique_fd> ring_connection::receive_descriptor(deadline until) {
  for (;;) {
    const io waited = wait_readable(until);
    if (waited == io::timed_out) return error{action::retry, describe() + ": no descriptor came in time"};
    if (waited == io::interrupted) return error{action::retry, describe() + ": interrupted"};
    if (waited != io::done) return error{action::reconnect, describe() + " is closed"};
    if (!in_) return local_connection::receive_descriptor(until);
    std::byte byte;
    if (in_->at_mark()) {
      unique_fd fd;
      if (!next_descriptor(fd)) return error{action::reconnect, describe() + ": a descriptor is missing"};
      (void)in_->take_mark();
      wake_writer();
      return fd;
    }
    const io_result got = attempt_ring({&byte, 1});
    if (got.status == io::done)
      return failure(describe() + ": the peer sent a byte where a descriptor was expected");
    if (got.status != io::timed_out)
      return error{action::reconnect, describe() + ": the peer closed where a descriptor was expected"};
  }
}

// ---- The end ----

void ring_connection::leave() {
  rings* r = rings_.load(std::memory_order_acquire);
  if (!r) return;
  r->in.leave();
  futex_wake(r->in.futex_of_writer());  // the peer's sender, and our own
  futex_wake(r->out.futex());
}

void ring_connection::shutdown() {
  local_connection::shutdown();
  leave();
}

result<unique_fd> ring_connection::detach() {
  if (rings_.load(std::memory_order_acquire))
    return error{action::fall_back, describe() + " has gone over to shared memory and cannot be handed over"};
  return local_connection::detach();
}

// ---- From process to process ----

result<shared_stream> ring_connection::share() const {
  result<shared_stream> out = local_connection::share();
  if (!out || !rings_.load(std::memory_order_acquire)) return out;
  if (!server_ || !in_ || !out_ || !memory_ || !descriptors_.empty() || flooded_ || ended_)
    return error{action::retry, describe() + " cannot go on in another process at this point"};
  out->descriptors.emplace_back(::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0));
  if (!out->descriptors.back()) return failure(describe() + ": " + errno_text(errno));
  const ring_place sent = out_->place(), received = in_->place();
  out->positions = {sent.bytes, sent.marks, received.bytes, received.marks};
  return out;
}

status ring_connection::go_on(shared_stream& from) {
  if (from.positions.empty()) return local_connection::go_on(from);
  const auto& at = from.positions;
  if (!server_ || from.descriptors.size() != 2 || at.size() != 4 || rings_.load())
    return failure(describe() + ": no rings to go on with");
  auto adopted = memory::adopt(from.descriptors[1].get());
  if (!adopted) return std::move(adopted).error();
  offered_ = true;
  memory_ = std::move(from.descriptors[1]);
  publish_rings(std::move(adopted).value());
  out_ = &own_rings_->out;
  in_ = &own_rings_->in;
  if (out_->go_on({at[0], at[1]}) && in_->go_on({at[2], at[3]})) return {};
  return failure(describe() + ": the rings are not where they are said to be");
}

}  // namespace outboard::transport::shm
