#include "transport/loopback/loopback.hh"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/errno_text.hh"
#include "transport/loopback/pipe.hh"
#include "transport/spin.hh"
#include "transport/url.hh"

namespace outboard::transport {

namespace {

using outboard::error;

class loopback_connection final : public connection {
 public:
  loopback_connection(std::shared_ptr<pipe> in, std::shared_ptr<pipe> out, std::string name)
      : in_(std::move(in)), out_(std::move(out)), name_(std::move(name)) {}

  ~loopback_connection() override {
    out_->close_writer();
    in_->close_reader();
  }

  const capabilities& what() const override {
    static constexpr capabilities all{
        .same_host = true, .passes_descriptors = true, .peer_identity = true, .preferred_chunk = 256 << 10};
    return all;
  }

  io_result send(std::span<const iovec> parts, deadline until) override {
    std::size_t sent = 0;
    for (const iovec& part : parts) {
      io_result r = out_->write({static_cast<const std::byte*>(part.iov_base), part.iov_len}, until);
      sent += r.bytes;
      if (r.status != io::done) return {r.status, sent};
    }
    return {io::done, sent};
  }

  io_result receive(std::span<std::byte> into, deadline until) override {
    spin_for_bytes(until);
    return in_->read(into, until);
  }

  io wait_readable(deadline until) override {
    spin_for_bytes(until);
    return in_->wait_readable(until);
  }

  void interrupt() override { in_->interrupt(); }
  bool peer_gone() override { return in_->writer_is_gone(); }

  void shutdown() override {
    out_->close_writer();
    in_->cut();
  }

  void set_spin(std::chrono::microseconds budget) override { spin_ = budget; }

  status send_descriptor(int fd) override {
    unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy)
      return failure(name_ + ": cannot copy descriptor " + std::to_string(fd) + ": " + errno_text(errno));
    if (out_->write_carrier(std::byte{0xfd}, std::move(copy)) == io::done) return {};
    return error{action::reconnect, name_ + ": the peer is gone"};
  }

  result<unique_fd> receive_descriptor(deadline until) override {
    unique_fd descriptor;
    switch (in_->read_carrier(descriptor, until)) {
      case io::done:
        break;
      case io::timed_out:
        return error{action::retry, name_ + ": no descriptor came in time"};
      case io::interrupted:
        return error{action::retry, name_ + ": interrupted"};
      default:
        return error{action::reconnect, name_ + ": the peer closed where a descriptor was expected"};
    }
    if (!descriptor) return failure(name_ + ": the peer sent a byte where a descriptor was expected");
    return descriptor;
  }

  result<peer_identity> peer() const override { return peer_identity{::getuid(), ::getgid(), ::getpid()}; }
  std::string describe() const override { return name_; }

 private:
  void spin_for_bytes(deadline until) {
    if (spin_.count() == 0 || in_->stirred()) return;
    spin spinning(spin_, until);
    while (!in_->stirred() && spinning.again()) {
    }
  }

  std::shared_ptr<pipe> in_, out_;
  std::string name_;
  std::chrono::microseconds spin_{0};
};

// The queue of clients of one name that wait for the server.
struct meeting_point {
  std::mutex mutex;
  std::condition_variable arrival, room;
  std::deque<std::unique_ptr<connection>> queue;
  std::size_t backlog = 0;
  bool closed = false, interrupted = false;
  unique_fd event;  ///< readable while a client waits in the queue
};

// The names of one transport object; shared with its listeners, which may outlive it.
struct hub {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<meeting_point>, std::less<>> points;
};

class loopback_listener final : public listener {
 public:
  loopback_listener(std::shared_ptr<hub> names, std::shared_ptr<meeting_point> point, std::string name)
      : names_(std::move(names)), point_(std::move(point)), name_(std::move(name)) {}

  ~loopback_listener() override {
    {
      std::lock_guard lock(names_->mutex);
      names_->points.erase(name_);
    }
    std::lock_guard lock(point_->mutex);
    point_->closed = true;
    point_->queue.clear();
    point_->room.notify_all();
  }

  result<std::unique_ptr<connection>> accept(deadline until) override {
    std::unique_lock lock(point_->mutex);
    auto ready = [&] { return point_->interrupted || !point_->queue.empty(); };
    if (until == no_deadline) {
      point_->arrival.wait(lock, ready);
    } else if (!ready() && (until <= clock::now() || !point_->arrival.wait_until(lock, until, ready))) {
      return error{action::retry, url() + ": no client came in time"};
    }
    if (std::exchange(point_->interrupted, false)) return error{action::retry, url() + ": interrupted"};
    std::unique_ptr<connection> next = std::move(point_->queue.front());
    point_->queue.pop_front();
    std::uint64_t count;
    if (point_->queue.empty()) (void)!::read(point_->event.get(), &count, sizeof count);
    point_->room.notify_one();
    return next;
  }

  void interrupt() override {
    std::lock_guard lock(point_->mutex);
    point_->interrupted = true;
    point_->arrival.notify_all();
  }

  int poll_descriptor() const override { return point_->event.get(); }
  std::string url() const override { return "loopback:" + name_; }

 private:
  std::shared_ptr<hub> names_;
  std::shared_ptr<meeting_point> point_;
  std::string name_;
};

class loopback_transport final : public transport {
 public:
  explicit loopback_transport(const loopback_options& options) : options_(options) {}

  std::string_view scheme() const override { return "loopback"; }

  result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) override {
    std::string name = "loopback:" + printable(address);
    std::shared_ptr<meeting_point> point;
    {
      std::lock_guard lock(names_->mutex);
      if (auto found = names_->points.find(address); found != names_->points.end()) point = found->second;
    }
    if (!point) return error{action::retry, name + ": no server listens there"};
    std::unique_lock lock(point->mutex);
    auto ready = [&] { return point->closed || point->queue.size() < point->backlog; };
    if (until == no_deadline) {
      point->room.wait(lock, ready);
    } else if (!ready() && (until <= clock::now() || !point->room.wait_until(lock, until, ready))) {
      return error{action::retry, name + ": the server did not accept the connection in time"};
    }
    if (point->closed) return error{action::retry, name + ": no server listens there any more"};
    auto up = std::make_shared<pipe>(options_.buffer), down = std::make_shared<pipe>(options_.buffer);
    point->queue.push_back(std::make_unique<loopback_connection>(up, down, name));
    std::uint64_t one = 1;
    (void)!::write(point->event.get(), &one, sizeof one);
    point->arrival.notify_one();
    return std::unique_ptr<connection>(std::make_unique<loopback_connection>(down, up, name));
  }

  result<std::unique_ptr<listener>> listen(std::string_view address, const listen_options& options) override {
    std::string name(address);
    if (name.empty()) return failure("loopback: needs a name");
    auto point = std::make_shared<meeting_point>();
    point->backlog = static_cast<std::size_t>(options.backlog > 0 ? options.backlog : 1);
    point->event.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!point->event) return error{action::retry, "loopback:" + name + ": " + errno_text(errno)};
    std::lock_guard lock(names_->mutex);
    if (!names_->points.emplace(name, point).second)
      return failure("loopback:" + printable(name) + ": another server listens there already");
    return std::unique_ptr<listener>(std::make_unique<loopback_listener>(names_, point, name));
  }

 private:
  loopback_options options_;
  std::shared_ptr<hub> names_ = std::make_shared<hub>();
};

}  // namespace

std::unique_ptr<transport> make_loopback(const loopback_options& options) {
  return std::make_unique<loopback_transport>(options);
}

}  // namespace outboard::transport
