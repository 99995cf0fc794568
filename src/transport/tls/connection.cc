#include "transport/tls/connection.hh"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace outboard::transport::tls {

namespace {

constexpr std::size_t record_header = 5;
/// A record of 16 KiB, a tag, and padding, of which our ends use none (RFC 8446, 5.2).
constexpr std::size_t most_of_record = most_in_record + 256;
constexpr std::byte handshake_record{22};

/// Encrypted and handed to the kernel at once.
constexpr std::size_t records_at_once = 16;
/// Read from the kernel at once, when much comes.
constexpr std::size_t first_input = 16u << 10, most_input = 320u << 10;

/// Not a std::timed_mutex, whose waiting asks for a newer C library than programs may have. The lock is
/// contended during a handshake only.
bool lock_until(std::unique_lock<std::mutex>& lock, deadline until) {
  if (until == no_deadline) return lock.lock(), true;
  while (!lock.try_lock()) {
    if (clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

iovec as_part(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

/// Walks over a caller's parts, and gives out what goes into one record.
class part_reader {
 public:
  explicit part_reader(std::span<const iovec> parts) : parts_(parts) { skip_empty(); }

  bool finished() const { return at_ == parts_.size(); }

  void skip(std::size_t bytes) {
    while (bytes > 0 && !finished()) bytes -= advance(bytes);
  }

  /// A long part is encrypted where it is; short ones are put together in `room`.
  std::span<const std::byte> next(std::vector<std::byte>& room) {
    if (parts_[at_].iov_len - offset_ >= most_in_record) {
      const std::span<const std::byte> whole = rest().first(most_in_record);
      advance(most_in_record);
      return whole;
    }
    room.resize(most_in_record);
    std::size_t used = 0;
    while (!finished() && used < most_in_record) {
      const auto piece = rest().first(std::min(rest().size(), most_in_record - used));
      std::memcpy(room.data() + used, piece.data(), piece.size());
      used += advance(piece.size());
    }
    return std::span(room).first(used);
  }

 private:
  std::span<const std::byte> rest() const {
    return std::span(static_cast<const std::byte*>(parts_[at_].iov_base), parts_[at_].iov_len)
        .subspan(offset_);
  }
  std::size_t advance(std::size_t most) {
    const std::size_t step = std::min(most, parts_[at_].iov_len - offset_);
    offset_ += step;
    skip_empty();
    return step;
  }
  void skip_empty() {
    while (at_ < parts_.size() && offset_ == parts_[at_].iov_len) ++at_, offset_ = 0;
  }

  std::span<const iovec> parts_;
  std::size_t at_ = 0, offset_ = 0;
};

tls_connection::tls_connection(std::unique_ptr<connection> raw) : raw_(std::move(raw)), what_(raw_->what()) {
  what_.detachable = false;
  what_.passes_descriptors = false;
}

tls_connection::tls_connection(std::unique_ptr<connection> raw, std::unique_ptr<engine> inner, side own)
    : tls_connection(std::move(raw)) {
  inner_ = std::move(inner);
  answering_ = true;
  owes_answer_ = is_server_ = own == side::server;
  if (own == side::client && inner_->shake() == step::wants_bytes) inner_->take_output(said_);
}

tls_connection::~tls_connection() {
  if (!shut_.load()) say_goodbye();
}

result<std::unique_ptr<tls_connection>> tls_connection::open_outer(std::unique_ptr<connection> raw,
                                                                   std::unique_ptr<engine> outer,
                                                                   deadline until) {
  std::unique_ptr<tls_connection> made(new tls_connection(std::move(raw)));
  made->outer_ = std::move(outer);
  const io shaken = made->shake_outer(until);
  if (shaken == io::done) return made;
  const std::string why = shaken == io::broken ? made->problem() : "";
  return why.empty() ? gone(shaken) : failure(why);
}

io tls_connection::shake_outer(deadline until) {
  for (;;) {
    const step made = outer_->shake();
    if (const io sent = send_output(*outer_, until); sent != io::done) return sent;
    if (made == step::done) return io::done;
    if (made == step::failed) return io::broken;
    io got = io::interrupted;
    while (got == io::interrupted) got = read_record(until);
    if (got != io::done) return got;
    outer_->offer(std::span(record_).first(std::exchange(in_record_, 0)));
  }
}

std::string tls_connection::problem() const {
  const std::lock_guard lock(engines_);
  std::string why = inner_ ? inner_->problem() : "";
  return why.empty() && outer_ ? outer_->problem() : why;
}

status tls_connection::begin_inner(std::unique_ptr<engine> inner, deadline until) {
  {
    const std::lock_guard lock(engines_);
    inner_ = std::move(inner);
    if (inner_->shake() == step::failed) return failure(inner_->problem());
  }
  const std::lock_guard own(shaking_);
  if (const io sent = send_output(*inner_, until); sent != io::done) return gone(sent);
  return {};
}

/// Sends what is left of a handshake's words. What a time-out cut is continued by the next call: the other
/// end must see whole records.
io tls_connection::send_said(deadline until) {
  if (said_sent_ < said_.used) {
    const iovec part = as_part(said_.bytes().subspan(said_sent_));
    const io_result sent = raw_->send({&part, 1}, until);
    said_sent_ += sent.bytes;
    if (sent.status != io::done) return sent.status;
  }
  said_.used = said_sent_ = 0;
  return io::done;
}

/// Sends what an engine has to say, behind what was left before. Only during handshakes, when nobody else
/// sends.
io tls_connection::send_output(engine& by, deadline until) {
  if (const io sent = send_said(until); sent != io::done) return sent;
  {
    const std::lock_guard lock(engines_);
    by.take_output(said_);
  }
  return send_said(until);
}

/// Completes `record_`, and takes no byte more from the stream: the next may be for another end. What came
/// before a time-out or an interrupt is kept.
io tls_connection::read_record(deadline until) {
  if (record_.empty()) record_.resize(record_header + most_of_record);
  std::size_t wanted = record_header;
  for (;;) {
    if (in_record_ >= record_header) {
      const std::size_t size =
          std::to_integer<std::size_t>(record_[3]) << 8 | std::to_integer<std::size_t>(record_[4]);
      if (size > most_of_record) {
        // Longer than any record, so it is none; the engine says what it looks like.
        return io::done;
      }
      wanted = record_header + size;
      if (in_record_ == wanted) return io::done;
    }
    const io_result got = raw_->receive(std::span(record_).subspan(in_record_, wanted - in_record_), until);
    if (got.status == io::closed && in_record_ > 0) return io::broken;
    if (got.status != io::done) return got.status;
    in_record_ += got.bytes;
  }
}

io tls_connection::shake(deadline until) {
  while (!ready_.load(std::memory_order_acquire)) {
    const io got = pump(until);
    if (got != io::done && got != io::interrupted) return got;
  }
  return io::done;
}

/// Takes one record of a handshake, or of the outer connection, whichever it belongs to.
io tls_connection::pump(deadline until) {
  // Another thread may be waiting for the peer with it, for as long as it likes.
  std::unique_lock own(shaking_, std::defer_lock);
  if (!lock_until(own, until)) return io::timed_out;
  if (ready_.load(std::memory_order_acquire)) return io::done;
  if (const io sent = send_said(until); sent != io::done) return sent;
  if (shaken_) {
    ready_.store(true, std::memory_order_release);
    return io::done;
  }
  if (ended_) return io::closed;
  if (owes_answer_) {
    const io made = make_answer(until);
    return made == io::done ? send_output(*inner_, until) : made;
  }
  if (const io got = read_record(until); got != io::done) return got;
  return take_record(until);
}

/// Server: reads the client's first message and makes the answer, which is not sent yet.
io tls_connection::make_answer(deadline until) {
  while (owes_answer_) {
    if (const io got = read_record(until); got != io::done) return got;
    const std::lock_guard lock(engines_);
    inner_->offer(std::span(record_).first(std::exchange(in_record_, 0)));
    const step made = inner_->shake_until_answer();
    if (made == step::failed) return io::broken;
    owes_answer_ = made != step::done;
  }
  return io::done;
}

io tls_connection::take_record(deadline until) {
  const std::span<const std::byte> whole = std::span(record_).first(std::exchange(in_record_, 0));
  if (inner_ && whole.front() == handshake_record) answering_ = true;
  if (!inner_ || !answering_) {
    const std::lock_guard lock(engines_);
    outer_->offer(whole);
    return read_from(*outer_);
  }
  step made;
  {
    const std::lock_guard lock(engines_);
    inner_->offer(whole);
    made = inner_->shake();
  }
  shaken_ = made == step::done;
  const io sent = send_output(*inner_, until);
  if (made == step::failed) return io::broken;  // TLS's own word for it went as far as it could
  if (sent != io::done) return sent;
  if (shaken_) ready_.store(true, std::memory_order_release);
  return io::done;
}

/// Keeps what the outer end has said. With `engines_`.
io tls_connection::read_from(engine& by) {
  for (;;) {
    const std::size_t before = kept_.size();
    kept_.resize(before + most_in_record);
    const std::ptrdiff_t got = by.read(std::span(kept_).subspan(before));
    kept_.resize(before + static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0)));
    if (got == 0) return io::done;
    if (got == -1) return ended_ = true, io::done;
    if (got < 0) return io::broken;
  }
}

io tls_connection::decrypt(std::span<std::byte> into, std::size_t& got) {
  const std::lock_guard lock(engines_);
  const std::ptrdiff_t n = inner_->read(into);
  if (n == -1) return io::closed;
  if (n < 0) return io::broken;
  got = static_cast<std::size_t>(n);
  return io::done;
}

/// Brings what comes next from the stream. The buffer grows when it was filled.
io tls_connection::fill(deadline until) {
  if (input_.empty()) input_.resize(first_input);
  if (was_full_ && input_.size() < most_input) input_.resize(most_input);
  const io_result got = raw_->receive(input_, until);
  // The peer says when it ends; a stream that ends without that was cut.
  if (got.status != io::done) return got.status == io::closed ? io::broken : got.status;
  was_full_ = got.bytes == input_.size();
  const std::lock_guard lock(engines_);
  inner_->offer(std::span(input_).first(got.bytes));
  return io::done;
}

/// Before `ready_`, a sender may be adding to what is kept.
bool tls_connection::has_kept() {
  std::unique_lock lock(engines_, std::defer_lock);
  if (!ready_.load(std::memory_order_acquire)) lock.lock();
  return taken_ < kept_.size();
}

std::size_t tls_connection::take_kept(std::span<std::byte> into) {
  std::unique_lock lock(engines_, std::defer_lock);
  if (!ready_.load(std::memory_order_acquire)) lock.lock();
  const std::size_t n = std::min(into.size(), kept_.size() - taken_);
  if (n == 0) return 0;
  std::memcpy(into.data(), kept_.data() + taken_, n);
  taken_ += n;
  if (taken_ == kept_.size()) kept_.clear(), taken_ = 0;
  return n;
}

io_result tls_connection::receive(std::span<std::byte> into, deadline until) {
  if (into.empty()) return {io::done, 0};
  for (;;) {
    if (const std::size_t n = take_kept(into); n > 0) return {io::done, n};
    if (shut_.load(std::memory_order_acquire)) return {io::broken, 0};
    if (!ready_.load(std::memory_order_acquire)) {
      if (const io got = pump(until); got != io::done) return {got, 0};
      continue;
    }
    std::size_t got = 0;
    if (const io read = decrypt(into, got); read != io::done) return {read, 0};
    if (got > 0) return {io::done, got};
    if (const io filled = fill(until); filled != io::done) return {filled, 0};
  }
}

io tls_connection::wait_readable(deadline until) {
  for (;;) {
    if (has_kept()) return io::done;
    if (shut_.load(std::memory_order_acquire)) return io::broken;
    if (!ready_.load(std::memory_order_acquire)) {
      if (const io got = pump(until); got != io::done) return got;
      continue;
    }
    kept_.resize(most_in_record);
    std::size_t got = 0;
    const io read = decrypt(kept_, got);
    kept_.resize(got);
    if (read != io::done || got > 0) return io::done;  // receive() says how it ended
    if (const io filled = fill(until); filled != io::done) return filled;
  }
}

/// Makes records of what comes next; `early`: before the client has ended the handshake. Returns how many
/// bytes went into them.
std::size_t tls_connection::encrypt(part_reader& from, bool early) {
  const std::lock_guard lock(engines_);
  engine& by = inner_ ? *inner_ : *outer_;
  std::size_t plain = 0;
  for (std::size_t i = 0; i < records_at_once && !from.finished(); ++i) {
    const std::span<const std::byte> next = from.next(gathered_);
    if (!(early ? by.write_with_answer(next) : by.write(next))) return 0;
    plain += next.size();
  }
  by.take_output(out_);
  return plain;
}

/// Server, with `shaking_` and `sending_`: what it sends before the client has ended the handshake goes right
/// behind its answer, and costs no round trip. Only the client that has the key can read it.
io tls_connection::begin_early(deadline until) {
  if (!owes_answer_) return send_said(until);
  io made = io::interrupted;
  while (made == io::interrupted) made = make_answer(until);
  if (made != io::done) return made;
  const std::lock_guard lock(engines_);
  inner_->take_output(out_);
  return io::done;
}

io_result tls_connection::send(std::span<const iovec> parts, deadline until) {
  const std::lock_guard own(sending_);
  if (shut_.load(std::memory_order_acquire)) return {io::broken, 0};
  std::unique_lock early(shaking_, std::defer_lock);  // held: the handshake stays as it is
  if (inner_ && is_server_ && !ready_.load(std::memory_order_acquire)) {
    if (!lock_until(early, until)) return {io::timed_out, 0};
    if (ready_.load(std::memory_order_acquire)) {
      early.unlock();
    } else if (const io begun = begin_early(until); begun != io::done) {
      return {begun == io::closed ? io::broken : begun, 0};
    }
  } else if (inner_) {
    if (const io shaken = shake(until); shaken != io::done)
      return {shaken == io::closed ? io::broken : shaken, 0};
  }
  part_reader from(parts);
  // After a time-out the caller sends again from where it stopped. What was encrypted before is on its way.
  from.skip(promised_);
  std::size_t accepted = 0;
  for (;;) {
    const io_result sent = flush(until);
    accepted += sent.bytes;
    if (sent.status != io::done || from.finished()) return {sent.status, accepted};
    const std::size_t plain = encrypt(from, early.owns_lock());
    if (plain == 0) return {io::broken, accepted};
    promised_ = encrypted_ = plain;
    sent_ = 0;
  }
}

/// Returns how many further bytes have left, before encryption. All records of out_ but the last are full.
std::size_t tls_connection::count_whole_records() {
  if (promised_ == 0) return 0;  // all were counted, or it is the answer of a handshake
  const std::size_t records = (encrypted_ + most_in_record - 1) / most_in_record;
  const std::size_t size = most_in_record + (out_.used - encrypted_) / records;
  const std::size_t whole = std::min(sent_ / size, records - 1) * most_in_record;
  const std::size_t before = encrypted_ - promised_;
  if (whole <= before) return 0;
  promised_ = encrypted_ - whole;
  return whole - before;
}

/// Sends what was encrypted. Bytes count when their record has left.
io_result tls_connection::flush(deadline until) {
  if (sent_ < out_.used) {
    const iovec part = as_part(out_.bytes().subspan(sent_));
    const io_result sent = raw_->send({&part, 1}, until);
    sent_ += sent.bytes;
    if (sent.status != io::done) return {sent.status, count_whole_records()};
  }
  out_.used = sent_ = 0;
  return {io::done, std::exchange(promised_, 0)};
}

/// Tells the other end that nothing was cut off, if nobody is sending.
void tls_connection::say_goodbye() {
  const std::unique_lock own(sending_, std::try_to_lock);
  if (!own || sent_ < out_.used) return;
  output said;
  {
    const std::lock_guard lock(engines_);
    engine* const by = ready_.load() ? inner_.get() : (inner_ ? nullptr : outer_.get());
    if (!by) return;
    by->close();
    by->take_output(said);
  }
  if (said.used == 0) return;
  const iovec part = as_part(said.bytes());
  (void)raw_->send({&part, 1}, deadline::min());
}

void tls_connection::shutdown() {
  if (shut_.exchange(true, std::memory_order_acq_rel)) return;
  say_goodbye();
  raw_->shutdown();
}

}  // namespace outboard::transport::tls
