#include "transport/loopback/pipe.hh"

#include <algorithm>
#include <cstring>

namespace outboard::transport {

namespace {

template <class Ready>
bool wait_until(std::condition_variable& signal, std::unique_lock<std::mutex>& lock, deadline until,
                Ready ready) {
  if (until == no_deadline) return signal.wait(lock, ready), true;
  if (until <= clock::now()) return ready();
  return signal.wait_until(lock, until, ready);
}

}  // namespace

void pipe::note_state() {
  stirred_.store(written_ != read_ || writer_gone_ || cut_ || interrupted_, std::memory_order_release);
}

void pipe::put(std::span<const std::byte> from) {
  std::size_t at = written_ % capacity_;
  std::size_t first = std::min(from.size(), capacity_ - at);
  std::memcpy(ring_.get() + at, from.data(), first);
  std::memcpy(ring_.get(), from.data() + first, from.size() - first);
  written_ += from.size();
  note_state();
  readable_.notify_one();
}

void pipe::take(std::span<std::byte> into) {
  std::size_t at = read_ % capacity_;
  std::size_t first = std::min(into.size(), capacity_ - at);
  std::memcpy(into.data(), ring_.get() + at, first);
  std::memcpy(into.data() + first, ring_.get(), into.size() - first);
  read_ += into.size();
  note_state();
  writable_.notify_one();
}

io pipe::wait_for_room(std::unique_lock<std::mutex>& lock, deadline until) {
  auto ready = [&] { return writer_gone_ || reader_gone_ || written_ - read_ < capacity_; };
  bool in_time = wait_until(writable_, lock, until, ready);
  if (writer_gone_ || reader_gone_) return io::broken;
  return in_time ? io::done : io::timed_out;
}

io_result pipe::write(std::span<const std::byte> from, deadline until) {
  std::unique_lock lock(mutex_);
  std::size_t sent = 0;
  while (sent < from.size()) {
    if (io waited = wait_for_room(lock, until); waited != io::done) return {waited, sent};
    std::size_t n = std::min<std::size_t>(from.size() - sent, capacity_ - (written_ - read_));
    put(from.subspan(sent, n));
    sent += n;
  }
  return {io::done, sent};
}

io pipe::write_carrier(std::byte byte, unique_fd descriptor) {
  std::unique_lock lock(mutex_);
  if (io waited = wait_for_room(lock, no_deadline); waited != io::done) return waited;
  carriers_.push_back({written_, std::move(descriptor)});
  put({&byte, 1});
  return io::done;
}

io pipe::wait_for_bytes(std::unique_lock<std::mutex>& lock, deadline until) {
  auto ready = [&] { return cut_ || writer_gone_ || interrupted_ || written_ != read_; };
  bool in_time = wait_until(readable_, lock, until, ready);
  if (cut_) return io::broken;
  if (written_ != read_) return io::done;
  if (writer_gone_) return io::closed;
  if (!in_time) return io::timed_out;
  interrupted_ = false;
  note_state();
  return io::interrupted;
}

io_result pipe::read(std::span<std::byte> into, deadline until) {
  if (into.empty()) return {io::done, 0};
  std::unique_lock lock(mutex_);
  if (io waited = wait_for_bytes(lock, until); waited != io::done) return {waited, 0};
  std::uint64_t end = written_;
  if (!carriers_.empty()) {
    // Stop short of a carrier; at the carrier itself take its byte alone and close the descriptor.
    end = std::max(carriers_.front().position, read_ + 1);
    if (carriers_.front().position == read_) carriers_.pop_front();
  }
  std::size_t n = std::min<std::size_t>(into.size(), end - read_);
  take(into.first(n));
  return {io::done, n};
}

io pipe::wait_readable(deadline until) {
  std::unique_lock lock(mutex_);
  io waited = wait_for_bytes(lock, until);
  return waited == io::closed ? io::done : waited;
}

io pipe::read_carrier(unique_fd& descriptor, deadline until) {
  std::unique_lock lock(mutex_);
  if (io waited = wait_for_bytes(lock, until); waited != io::done) return waited;
  if (!carriers_.empty() && carriers_.front().position == read_) {
    descriptor = std::move(carriers_.front().descriptor);
    carriers_.pop_front();
  }
  std::byte byte;
  take({&byte, 1});
  return io::done;
}

void pipe::interrupt() {
  std::lock_guard lock(mutex_);
  interrupted_ = true;
  note_state();
  readable_.notify_all();
}

bool pipe::writer_is_gone() {
  std::lock_guard lock(mutex_);
  return writer_gone_ || cut_;
}

void pipe::close_writer() {
  std::lock_guard lock(mutex_);
  writer_gone_ = true;
  note_state();
  readable_.notify_all();
  writable_.notify_all();
}

void pipe::close_reader() {
  std::lock_guard lock(mutex_);
  reader_gone_ = true;
  carriers_.clear();
  writable_.notify_all();
}

void pipe::cut() {
  std::lock_guard lock(mutex_);
  cut_ = reader_gone_ = true;
  carriers_.clear();
  note_state();
  readable_.notify_all();
  writable_.notify_all();
}

}  // namespace outboard::transport
