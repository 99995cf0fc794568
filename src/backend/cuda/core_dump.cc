#include "backend/cuda/core_dump.hh"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/temporary_folder.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// Until the first byte: an H200 begins 0.2 s after the fault.
constexpr auto patience_for_any = 5s;
/// Between two bytes: a driver gathers registers of all lanes meanwhile.
constexpr auto patience_for_more = 30s;
/// Below a frame; what the driver writes at once is less.
constexpr std::size_t piece = 1u << 20;

template <class Value>
CUresult set_attribute(CUresult (*entry)(CUcoredumpSettings, void*, std::size_t*),
                       CUcoredumpSettings attribute, Value value) {
  std::size_t size = sizeof value;
  return entry ? entry(attribute, &value, &size) : CUDA_ERROR_NOT_SUPPORTED;
}

/// The worker is not the program: what ends the program is the client's to do.
int survivable(int flags) { return flags | CU_COREDUMP_SKIP_ABORT; }

}  // namespace

core_dump::~core_dump() {
  const std::uint64_t one = 1;
  if (thread_.joinable() && ::write(stop_.get(), &one, sizeof one) == sizeof one) thread_.join();
}

/// A named pipe without a name: it has one for as long as it takes to open it, in a folder that nobody else
/// may enter. The driver gets at it by our descriptor (a pipe that never had a name says at once that its
/// writer is gone).
CUresult core_dump::open() {
  const result<std::string> folder = make_temporary_folder("outboard-core");
  if (!folder.ok()) {
    log::warn("no place for core dumps: ", folder.error().message);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  const std::string name = *folder + "/dump";
  if (::mkfifo(name.c_str(), 0600) == 0) {
    place_.reset(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ::unlink(name.c_str());
  }
  ::rmdir(folder->c_str());
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  path_ = "/proc/self/fd/" + std::to_string(place_.get());
  if (!place_ || !stop_ || !reopen()) {
    log::warn("no place for core dumps in ", *folder, ": ", errno_text(errno));
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  // A session that ends closes the pipe under a driver that writes.
  std::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { work(); });
  return CUDA_SUCCESS;
}

/// A reader that has seen its writer go hears of nothing else; a new one waits for the next. Opened before
/// the old one is closed, so that the driver never finds a pipe without a reader.
bool core_dump::reopen() {
  unique_fd fresh(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fresh) return false;
  reading_ = std::move(fresh);
  return true;
}

CUresult core_dump::set(const api::driver_table& driver, bool on, int flags) {
  const std::lock_guard lock(mutex_);
  auto* const entry = driver.cuCoredumpSetAttributeGlobal;
  if (!possible_)
    log::info("core dumps of the GPU are asked for; a confined worker writes none (worker.confine)");
  if (!entry || !possible_) return CUDA_ERROR_NOT_SUPPORTED;
  if (!ready_) {
    if (!path_.empty()) return CUDA_ERROR_OPERATING_SYSTEM;  // tried before
    if (const CUresult code = open(); code != CUDA_SUCCESS) return code;
    std::size_t size = path_.size() + 1;
    if (const CUresult code = entry(CU_COREDUMP_FILE, path_.data(), &size); code != CUDA_SUCCESS) return code;
    ready_ = true;
  }
  CUresult code = set_attribute(entry, CU_COREDUMP_GENERATION_FLAGS, survivable(flags));
  if (code == CUDA_SUCCESS) code = set_attribute(entry, CU_COREDUMP_ENABLE_ON_EXCEPTION, on);
  expected_ = expected_ || code == CUDA_SUCCESS;
  return code;
}

unsigned core_dump::allowed_context_flags(unsigned flags) const {
  const std::lock_guard lock(mutex_);
  const unsigned never = CU_CTX_USER_COREDUMP_ENABLE;
  return flags & ~(ready_ ? never : never | CU_CTX_COREDUMP_ENABLE);
}

bool core_dump::expected() const {
  const std::lock_guard lock(mutex_);
  return expected_;
}

void core_dump::ended() {
  send_({});
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  ++written_;
  changed_.notify_all();
}

void core_dump::work() {
  std::vector<std::byte> buffer(piece);
  for (;;) {
    std::array<pollfd, 2> wanted{pollfd{stop_.get(), POLLIN, 0}, pollfd{reading_.get(), POLLIN, 0}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return;
    if (wanted[0].revents) return;
    if (!wanted[1].revents) continue;
    const ssize_t got = ::read(reading_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      send_(std::span(buffer).first(static_cast<std::size_t>(got)));
      const std::lock_guard lock(mutex_);
      bytes_ += static_cast<std::uint64_t>(got);
      changed_.notify_all();
    } else if (got == 0) {
      const bool whole = [&] {
        const std::lock_guard lock(mutex_);
        return bytes_ != 0;
      }();
      if (whole) ended();
      if (!reopen()) return;
    } else if (errno != EAGAIN && errno != EINTR) {
      return;
    }
  }
}

void core_dump::finish() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = bytes_;
  while (written_ == awaited_) {
    const auto patience = seen == 0 ? patience_for_any : patience_for_more;
    if (!changed_.wait_for(lock, patience, [&] { return written_ != awaited_ || bytes_ != seen; })) {
      return log::warn("the driver wrote ", seen == 0 ? "no core dump" : "a part of a core dump and no more");
    }
    seen = bytes_;
  }
  awaited_ = written_;
}

/// The flags of what is dumped, and whether faults dump.
outcome ends::cuCoredumpSetAttributeGlobal(call& c, const marshal::limit_body& body) {
  return outcome::answer(c.session.dumps().set(c.driver(), body.value != 0, body.limit));
}

}  // namespace outboard::backend
