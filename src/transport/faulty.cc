#include "transport/faulty.hh"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/errno_text.hh"
#include "transport/delay_line.hh"

namespace outboard::transport {

namespace {

using outboard::error;

// Sizes from 1 to `most`, mostly small: what finds readers that count on whole messages.
class splitter {
 public:
  explicit splitter(std::uint64_t seed) : random_(seed) {}

  std::size_t operator()(std::size_t most) {
    std::size_t small = 1 + random_() % 16;
    std::size_t any = 1 + random_() % most;
    return std::min(most, random_() % 4 == 0 ? any : small);
  }

 private:
  std::mt19937_64 random_;
};

// The first `limit` bytes of the parts, from `from` on.
std::vector<iovec> slice(std::span<const iovec> parts, std::size_t from, std::size_t limit) {
  std::vector<iovec> out;
  for (const iovec& part : parts) {
    std::size_t skipped = std::min(from, part.iov_len);
    from -= skipped;
    std::size_t size = std::min(part.iov_len - skipped, limit);
    limit -= size;
    if (size > 0) out.push_back({static_cast<char*>(part.iov_base) + skipped, size});
  }
  return out;
}

class faulty_connection final : public connection {
 public:
  faulty_connection(std::unique_ptr<connection> inner, const faults& what)
      : inner_(std::move(inner)),
        faults_(what),
        split_reads_(what.seed * 2),
        split_writes_(what.seed * 2 + 1),
        what_(inner_->what()) {
    // A descriptor that another process goes on with would lose its faults in silence.
    what_.detachable = false;
    what_.send_is_a_call = false;  // each has its own chance of a fault
    if (what.delay.count() > 0) line_.emplace(*inner_, what.delay);
  }

  const capabilities& what() const override { return what_; }

  io_result send(std::span<const iovec> parts, deadline until) override {
    std::size_t total = 0;
    for (const iovec& part : parts) total += part.iov_len;
    std::size_t allowed =
        static_cast<std::size_t>(std::min<std::uint64_t>(total, faults_.cut_send_after - sent_));
    std::size_t done = 0;
    while (done < allowed) {
      std::size_t size = faults_.short_writes ? split_writes_(allowed - done) : allowed - done;
      std::vector<iovec> piece = slice(parts, done, size);
      io_result r = line_ ? line_->push(piece, until) : inner_->send(piece, until);
      done += r.bytes;
      sent_ += r.bytes;
      if (r.status != io::done) return {r.status, done};
    }
    if (sent_ < faults_.cut_send_after) return {io::done, done};
    if (line_) line_->flush();
    inner_->shutdown();
    return {done == total && total > 0 ? io::done : io::broken, done};
  }

  io_result receive(std::span<std::byte> into, deadline until) override {
    if (into.empty()) return {io::done, 0};
    if (received_ >= faults_.cut_receive_after) {
      shutdown();
      return {io::broken, 0};
    }
    std::size_t size = faults_.short_reads ? split_reads_(into.size()) : into.size();
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, faults_.cut_receive_after - received_));
    io_result r = inner_->receive(into.first(size), until);
    received_ += r.bytes;
    return r;
  }

  io wait_readable(deadline until) override {
    if (received_ >= faults_.cut_receive_after) return io::broken;
    return inner_->wait_readable(until);
  }

  void interrupt() override { inner_->interrupt(); }
  void expect_send() override { inner_->expect_send(); }
  bool peer_gone() override { return inner_->peer_gone(); }

  void shutdown() override {
    if (line_) line_->stop();
    inner_->shutdown();
  }

  void set_spin(std::chrono::microseconds budget) override { inner_->set_spin(budget); }

  status send_descriptor(int fd) override {
    if (!what_.passes_descriptors || !line_) return inner_->send_descriptor(fd);
    unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return failure("descriptor " + std::to_string(fd) + ": " + errno_text(errno));
    if (line_->push_descriptor(std::move(copy)) == io::done) return {};
    return error{action::reconnect, describe() + ": the peer is gone"};
  }

  result<unique_fd> receive_descriptor(deadline until) override { return inner_->receive_descriptor(until); }
  result<peer_identity> peer() const override { return inner_->peer(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<connection> inner_;
  faults faults_;
  splitter split_reads_, split_writes_;  // one for each role, as the roles may be different threads
  capabilities what_;
  std::uint64_t sent_ = 0, received_ = 0;
  std::optional<delay_line> line_;  // before inner_ in destruction
};

class faulty_listener final : public listener {
 public:
  faulty_listener(std::unique_ptr<listener> inner, const faults& what)
      : inner_(std::move(inner)), faults_(what) {}

  result<std::unique_ptr<connection>> accept(deadline until) override {
    auto made = inner_->accept(until);
    if (!made) return made;
    faults_.seed += 2;
    return make_faulty(std::move(*made), faults_);
  }
  void interrupt() override { inner_->interrupt(); }
  int poll_descriptor() const override { return inner_->poll_descriptor(); }
  std::string url() const override { return inner_->url(); }

 private:
  std::unique_ptr<listener> inner_;
  faults faults_;
};

class faulty_transport final : public transport {
 public:
  faulty_transport(std::unique_ptr<transport> inner, const faults& what)
      : inner_(std::move(inner)), faults_(what), next_seed_(what.seed) {}

  std::string_view scheme() const override { return inner_->scheme(); }

  result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) override {
    auto made = inner_->connect(address, until);
    if (!made) return made;
    return make_faulty(std::move(*made), with_own_seed());
  }

  result<std::unique_ptr<listener>> listen(std::string_view address, const listen_options& options) override {
    auto made = inner_->listen(address, options);
    if (!made) return made;
    return std::unique_ptr<listener>(std::make_unique<faulty_listener>(std::move(*made), with_own_seed()));
  }

  result<std::unique_ptr<connection>> attach(unique_fd fd) override {
    auto made = inner_->attach(std::move(fd));
    if (!made) return made;
    return make_faulty(std::move(*made), with_own_seed());
  }

  result<std::unique_ptr<listener>> adopt_listener(unique_fd fd) override {
    auto made = inner_->adopt_listener(std::move(fd));
    if (!made) return made;
    return std::unique_ptr<listener>(std::make_unique<faulty_listener>(std::move(*made), with_own_seed()));
  }

 private:
  faults with_own_seed() {
    faults own = faults_;
    own.seed = next_seed_.fetch_add(1000003, std::memory_order_relaxed);
    return own;
  }

  std::unique_ptr<transport> inner_;
  faults faults_;
  std::atomic<std::uint64_t> next_seed_;
};

}  // namespace

std::unique_ptr<connection> make_faulty(std::unique_ptr<connection> inner, const faults& what) {
  return std::make_unique<faulty_connection>(std::move(inner), what);
}

std::unique_ptr<transport> make_faulty(std::unique_ptr<transport> inner, const faults& what) {
  return std::make_unique<faulty_transport>(std::move(inner), what);
}

}  // namespace outboard::transport
