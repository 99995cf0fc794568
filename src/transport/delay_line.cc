#include "transport/delay_line.hh"

namespace outboard::transport {

delay_line::delay_line(connection& through, std::chrono::microseconds delay)
    : through_(through), delay_(delay), thread_([this] { run(); }) {}

delay_line::~delay_line() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

io delay_line::enqueue(std::unique_lock<std::mutex>& lock, item&& next, deadline until) {
  auto room = [&] { return stopped_ || broken_ || under_way_ < capacity; };
  if (until == no_deadline) {
    changed_.wait(lock, room);
  } else if (!room() && (until <= clock::now() || !changed_.wait_until(lock, until, room))) {
    return io::timed_out;
  }
  if (stopped_ || broken_) return io::broken;
  next.due = clock::now() + delay_;
  under_way_ += next.bytes.size();
  queue_.push_back(std::move(next));
  changed_.notify_all();
  return io::done;
}

io_result delay_line::push(std::span<const iovec> parts, deadline until) {
  item next{};
  for (const iovec& part : parts) {
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    next.bytes.insert(next.bytes.end(), from, from + part.iov_len);
  }
  std::size_t size = next.bytes.size();
  if (size == 0) return {io::done, 0};
  std::unique_lock lock(mutex_);
  io status = enqueue(lock, std::move(next), until);
  return {status, status == io::done ? size : 0};
}

io delay_line::push_descriptor(unique_fd descriptor) {
  item next{};
  next.descriptor = std::move(descriptor);
  std::unique_lock lock(mutex_);
  return enqueue(lock, std::move(next), no_deadline);
}

void delay_line::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  queue_.clear();
  changed_.notify_all();
}

bool delay_line::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || broken_ || (queue_.empty() && !delivering_); });
  return !stopped_ && !broken_;
}

bool delay_line::deliver(const item& next) {
  if (next.descriptor) return through_.send_descriptor(next.descriptor.get()).ok();
  // A peer that accepts nothing for five seconds is still waited for, but not by the destructor.
  for (std::size_t sent = 0; sent < next.bytes.size();) {
    iovec part{const_cast<std::byte*>(next.bytes.data()) + sent, next.bytes.size() - sent};
    io_result r = through_.send({&part, 1}, clock::now() + std::chrono::seconds(5));
    sent += r.bytes;
    if (r.status == io::done) continue;
    std::lock_guard lock(mutex_);
    if (r.status != io::timed_out || closing_ || stopped_) return false;
  }
  return true;
}

void delay_line::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || closing_ || !queue_.empty(); });
    if (stopped_ || (closing_ && queue_.empty())) return;
    if (deadline due = queue_.front().due; clock::now() < due) {
      changed_.wait_until(lock, due, [&] { return stopped_; });
      continue;
    }
    item next = std::move(queue_.front());
    queue_.pop_front();
    delivering_ = true;
    lock.unlock();
    bool sent = deliver(next);
    lock.lock();
    delivering_ = false;
    under_way_ -= next.bytes.size();
    if (!sent) broken_ = true, queue_.clear();
    changed_.notify_all();
    if (broken_) return;
  }
}

}  // namespace outboard::transport
