#include "frontend/trace.hh"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "frontend/report_file.hh"
#include "frontend/session.hh"

namespace outboard::frontend::trace {
namespace {

struct state {
  std::mutex mutex;
  report_file file;
  bool tried = false;
  std::uint64_t counts[3] = {};
};

state& the_state() {
  static state* const s = new state;  // never destroyed: see process::instance()
  return *s;
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

void start(const char* file) {
  state& s = the_state();
  {
    const std::lock_guard lock(s.mutex);
    if (std::exchange(s.tried, true)) return;
  }
  if (s.file.open(file, "trace")) watch_calls(call_watcher::trace, true);
}

void finish(const traffic& moved) {
  state& s = the_state();
  const std::lock_guard lock(s.mutex);
  if (!on()) return;
  watch_calls(call_watcher::trace, false);
  char line[192];
  std::snprintf(line, sizeof line,
                "sent %" PRIu64 " bytes, received %" PRIu64 " bytes\nlocal %" PRIu64 ", posted %" PRIu64
                ", waited %" PRIu64 "\n",
                moved.sent, moved.received, s.counts[0], s.counts[1], s.counts[2]);
  s.file.text() += line;
  s.file.close();
}

void forked() { watch_calls(call_watcher::trace, false); }

void record(std::string_view name, const api::description& about, std::span<const argument> arguments,
            std::int32_t result, answered how, std::chrono::nanoseconds took, std::uint32_t lane) {
  state& s = the_state();
  const std::lock_guard lock(s.mutex);
  if (!on()) return;
  ++s.counts[static_cast<std::size_t>(how)];
  std::string& out = s.file.text();
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
  s.file.flush_some();
}

}  // namespace outboard::frontend::trace
