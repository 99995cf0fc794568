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
  static state* const s = new state;  // never destroyed: calls come from destructors after main too
  return *s;
}

std::atomic<bool> enabled{false};

constexpr std::size_t flush_at = 64 << 10;

/// "%p" stands for the process's number.
std::string with_process(std::string name) {
  for (std::size_t at; (at = name.find("%p")) != name.npos;) name.replace(at, 2, std::to_string(::getpid()));
  return name;
}

/// A file for this process alone: programs of one script share OUTBOARD_TRACE, and no trace is lost. Where
/// the file is there already this process's number is put behind its name. (`outboard run` removes an old one
/// before it starts.)
int open_for_one(std::string& name) {
  if (name == "-") return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  constexpr int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
  const int fd = ::open(name.c_str(), flags | O_EXCL, 0644);
  if (fd >= 0 || errno != EEXIST) return fd;
  struct stat about {};
  // A pipe, a terminal or an empty file is there on purpose.
  if (::stat(name.c_str(), &about) == 0 && (!S_ISREG(about.st_mode) || about.st_size == 0))
    return ::open(name.c_str(), flags, 0644);
  name += "." + std::to_string(::getpid());
  return ::open(name.c_str(), flags | O_TRUNC, 0644);
}

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
  std::string name = with_process(file);
  s.fd = open_for_one(name);
  if (s.fd < 0) return log::error("no trace: cannot write ", name, ": ", std::strerror(errno));
  if (name != file) log::info("the trace of this process is in ", name);
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
