#include "frontend/trace.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.hh"
#include "frontend/session.hh"

namespace outboard::frontend::trace {
namespace {

struct state {
  std::mutex mutex;
  int fd = -1;
  bool tried = false;
  bool failed = false;
  std::string buffer;
  std::uint64_t counts[3] = {};
};

state& the_state() {
  static state* const s = new state;  // never destroyed: see process::instance()
  return *s;
}

std::atomic<bool> enabled{false};

constexpr std::size_t flush_at = 64 << 10;

void flush(state& s) {
  std::size_t done = 0;
  while (done < s.buffer.size() && !s.failed) {
    const ssize_t n = ::write(s.fd, s.buffer.data() + done, s.buffer.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      s.failed = true;
      log::error("the trace is incomplete: ", std::strerror(n < 0 ? errno : ENOSPC));
    } else {
      done += static_cast<std::size_t>(n);
    }
  }
  s.buffer.clear();
}

void append_text(std::string& to, const char* text) {
  to += '"';
  for (int i = 0; text[i] && i < 60; ++i) to += text[i] >= ' ' && text[i] != '"' ? text[i] : '.';
  to += '"';
}

/// As a launch without a configuration shows its sizes; attributes by number, with the first words of each.
void append_launch(std::string& to, const CUlaunchConfig& c) {
  char text[192];
  std::snprintf(text, sizeof text, "{grid %u,%u,%u block %u,%u,%u shared %u stream 0x%" PRIx64, c.gridDimX,
                c.gridDimY, c.gridDimZ, c.blockDimX, c.blockDimY, c.blockDimZ, c.sharedMemBytes,
                reinterpret_cast<std::uint64_t>(c.hStream));
  to += text;
  for (unsigned i = 0; c.attrs && i < c.numAttrs; ++i) {
    std::uint32_t words[3];
    std::memcpy(words, &c.attrs[i].value, sizeof words);
    std::snprintf(text, sizeof text, " attribute %d:%u,%u,%u", static_cast<int>(c.attrs[i].id), words[0],
                  words[1], words[2]);
    to += text;
  }
  to += '}';
}

void append_argument(std::string& to, const argument& a) {
  char number[40];
  switch (a.as) {
    case form::launch:
      if (a.bits) return append_launch(to, *reinterpret_cast<const CUlaunchConfig*>(a.bits));
      std::snprintf(number, sizeof number, "0x0");
      break;
    case form::signed_number:
      std::snprintf(number, sizeof number, "%" PRId64, static_cast<std::int64_t>(a.bits));
      break;
    case form::unsigned_number:
      std::snprintf(number, sizeof number, "%" PRIu64, a.bits);
      break;
    case form::real:
      std::snprintf(number, sizeof number, "%g", a.number);
      break;
    case form::text:
      if (a.bits) return append_text(to, reinterpret_cast<const char*>(a.bits));
      [[fallthrough]];
    case form::address:
    case form::pointer:
      std::snprintf(number, sizeof number, "0x%" PRIx64, a.bits);
      break;
  }
  to += number;
  if (!a.gives) return;
  std::snprintf(number, sizeof number, ":0x%" PRIx64, a.given);
  to += number;
}

/// %p is the process; - is stderr.
std::string name_of_file(std::string_view file) {
  if (file == "-") return "/dev/stderr";
  std::string name(file);
  if (const auto at = name.find("%p"); at != name.npos) name.replace(at, 2, std::to_string(::getpid()));
  return name;
}

/// A file that is there already is another process's trace, or an older one: it stays, and this one gets a
/// name of its own. Terminals, pipes and the like are written to.
int open_new(std::string& name) {
  constexpr int flags = O_WRONLY | O_CLOEXEC;
  const int fd = ::open(name.c_str(), flags | O_CREAT | O_EXCL, 0644);
  struct stat about {};
  if (fd >= 0 || errno != EEXIST || ::stat(name.c_str(), &about) != 0) return fd;
  if (!S_ISREG(about.st_mode)) return ::open(name.c_str(), flags);
  const std::string own = name + "." + std::to_string(::getpid());
  log::error("there is a trace in ", name, " already: process ", ::getpid(), " writes ", own);
  name = own;
  return ::open(name.c_str(), flags | O_CREAT | O_TRUNC, 0644);
}

constexpr std::string_view name_of(answered how) {
  constexpr std::string_view names[] = {"local", "posted", "waited"};
  return names[static_cast<std::size_t>(how)];
}

}  // namespace

bool on() { return enabled.load(std::memory_order_relaxed); }

void start(const char* file) {
  state& s = the_state();
  {
    const std::lock_guard lock(s.mutex);
    if (std::exchange(s.tried, true)) return;
  }
  const bool keeps = *file == '+';
  std::string name = name_of_file(keeps ? file + 1 : file);
  s.fd = keeps ? open_new(name) : ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (s.fd < 0) return log::error("no trace: cannot write ", name, ": ", std::strerror(errno));
  enabled.store(true, std::memory_order_relaxed);
}

void finish(const traffic& moved) {
  if (!enabled.exchange(false)) return;
  state& s = the_state();
  const std::lock_guard lock(s.mutex);
  char line[192];
  std::snprintf(line, sizeof line,
                "sent %" PRIu64 " bytes, received %" PRIu64 " bytes\nlocal %" PRIu64 ", posted %" PRIu64
                ", waited %" PRIu64 "\n",
                moved.sent, moved.received, s.counts[0], s.counts[1], s.counts[2]);
  s.buffer += line;
  flush(s);
  ::close(s.fd);
}

void forked() { enabled.store(false, std::memory_order_relaxed); }

void record(std::string_view name, const api::description& about, std::span<const argument> arguments,
            std::int32_t result, answered how, std::chrono::nanoseconds took, std::uint32_t lane) {
  state& s = the_state();
  const std::lock_guard lock(s.mutex);
  if (!on()) return;
  ++s.counts[static_cast<std::size_t>(how)];
  std::string& out = s.buffer;
  out += name;
  out += '(';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i) out += ", ";
    if (i < about.arity) out.append(about.parameters[i].name).append("=");
    append_argument(out, arguments[i]);
  }
  char tail[64];
  std::snprintf(tail, sizeof tail, ") = %d ", result);
  out += tail;
  out += name_of(how);
  std::snprintf(tail, sizeof tail, " %.3f us lane %" PRIu32 "\n", static_cast<double>(took.count()) / 1e3,
                lane);
  out += tail;
  if (out.size() >= flush_at) flush(s);
}

}  // namespace outboard::frontend::trace
