#include "frontend/profile/profile_events.hh"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <variant>

#include "api/cuda/work_calls.hh"
#include "base/append_format.hh"
#include "wire/handle.hh"

namespace outboard::frontend::profile_events {
namespace {

using api::memory_side;
using api::work_kind;

/// Bytes of the character of UTF-8 that the text begins with; 0: there is none of more than one byte.
std::size_t wide_character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  const std::size_t size = first >= 0xc2 && first < 0xe0   ? 2
                           : first >= 0xe0 && first < 0xf0 ? 3
                           : first >= 0xf0 && first < 0xf5 ? 4
                                                           : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than it need be, half of a pair of UTF-16, or beyond the last character.
  const unsigned second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return wrong ? 0 : size;
}

/// A text of JSON's. Names come from modules and programs, which may hold anything: what is neither ASCII nor
/// UTF-8 is taken byte by byte.
void put_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto code = static_cast<unsigned char>(c);
    const std::size_t size = code < 0x80 ? 1 : wide_character(text);
    if (c == '"' || c == '\\') out += '\\';
    if (size == 0 || code < 0x20 || code == 0x7f) {
      append_format(out, "\\u%04x", code);
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  out += '"';
}

/// Chrome's unit is the microsecond.
void put_time(std::string& out, const char* key, std::int64_t ns) {
  const auto [whole, rest] = std::lldiv(std::llabs(ns), 1000);
  append_format(out, "\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "", whole, rest);
}

void begin(std::string& out, const char* phase, std::string_view name, std::int64_t group) {
  out += ",\n";
  append_format(out, "{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"name\":", phase, group);
  put_text(out, name);
}

std::string_view text_of(memory_side side) {
  constexpr std::array<std::string_view, 6> texts{"unknown", "pageable", "pinned",
                                                  "device",  "array",    "managed"};
  const auto at = static_cast<std::size_t>(side);
  return at < texts.size() ? texts[at] : texts[0];
}

/// As the driver's own names of copies have it.
char letter_of(memory_side side) {
  switch (side) {
    case memory_side::pageable:
    case memory_side::pinned:
      return 'H';
    case memory_side::array:
      return 'A';
    default:
      return 'D';
  }
}

/// One end of an arrow: "s" where it begins, "f" where it ends.
void add_arrow(std::string& out, const char* end, std::int64_t group, std::int64_t row, std::int64_t at,
               std::uint32_t number) {
  begin(out, end, "call", group);
  append_format(out, ",\"cat\":\"call\",\"id\":%u,\"bp\":\"e\",\"tid\":%" PRId64 ",", number, row);
  put_time(out, "ts", at);
  out += '}';
}

void put_payload(std::string& out, const annotation_payload& payload) {
  const auto put = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, std::monostate>) {
      return;
    } else if constexpr (std::is_floating_point_v<T>) {
      // JSON has no infinities and nothing for what is no number.
      append_format(out, std::isfinite(value) ? ",\"payload\":%.*g" : ",\"payload\":\"%.*g\"",
                    std::numeric_limits<T>::max_digits10, static_cast<double>(value));
    } else {
      out.append(",\"payload\":").append(std::to_string(value));
    }
  };
  std::visit(put, payload);
}

/// What is known of one, as arguments of its event.
void put_annotation(std::string& out, const annotated& a) {
  std::string all;
  if (!a.what.domain->is_default()) {
    all += ",\"domain\":";
    put_text(all, a.what.domain->name());
  }
  if (a.what.category != 0) {
    const std::string* const name = a.what.domain->category_name(a.what.category);
    all += ",\"category\":";
    if (name) put_text(all, *name);
    if (!name) all += std::to_string(a.what.category);
  }
  if (a.what.color) append_format(all, ",\"color\":\"#%06x\"", *a.what.color & 0xffffff);
  put_payload(all, a.what.payload);
  if (a.open) all += ",\"open\":true";
  if (!all.empty()) all.front() = '{';
  out.append(",\"args\":").append(all.empty() ? "{" : all).append("}");
}

}  // namespace

void name_group(std::string& out, std::int64_t group, std::string_view name, int order) {
  begin(out, "M", "process_name", group);
  out += ",\"args\":{\"name\":";
  put_text(out, name);
  out += "}}";
  begin(out, "M", "process_sort_index", group);
  append_format(out, ",\"args\":{\"sort_index\":%d}}", order);
}

void name_row(std::string& out, std::int64_t group, std::int64_t row, std::string_view name) {
  begin(out, "M", "thread_name", group);
  append_format(out, ",\"tid\":%" PRId64 ",\"args\":{\"name\":", row);
  put_text(out, name);
  out += "}}";
}

void add_call(std::string& out, std::int64_t process, const call& c) {
  constexpr std::array<const char*, 3> answers{"local", "posted", "waited"};
  begin(out, "X", c.name, process);
  append_format(out, ",\"cat\":\"driver\",\"tid\":%d,", c.thread);
  put_time(out, "ts", c.begin);
  out += ',';
  put_time(out, "dur", c.end - c.begin);
  append_format(out, ",\"args\":{\"answer\":\"%s\"", answers[static_cast<std::size_t>(c.how)]);
  // In OpenCL all that leaves work, and little else, is called so.
  const bool leaves_work = api::leaves_work(c.name) || c.name.starts_with("clEnqueue");
  const bool tied = c.number != 0 && leaves_work;
  if (tied) append_format(out, ",\"correlation\":%u", c.number);
  out += "}}";
  if (tied) add_arrow(out, "s", process, c.thread, c.begin, c.number);
}

/// Viewers read numbers of up to 53 bits, and a handle has its kind beyond those.
std::uint64_t shown_node(std::uint64_t node) {
  const wire::handle h{node};
  if (!h.well_formed() || !h.minted()) return node;
  return std::uint64_t{h.generation()} << 28 | h.index();
}

void add_work(std::string& out, std::int64_t group, const api::work_record& w, std::string_view name,
              std::int64_t at, std::int64_t end, std::uint32_t number) {
  const auto took = static_cast<std::int64_t>(w.end - w.begin);
  const bool kernel = w.kind == work_kind::kernel;
  begin(out, "X", name, group);
  append_format(out, ",\"cat\":\"%s\",\"tid\":%u,",
                kernel                      ? "kernel"
                : w.kind == work_kind::copy ? "gpu_memcpy"
                                            : "gpu_memset",
                w.stream);
  put_time(out, "ts", at);
  out += ',';
  put_time(out, "dur", end - at);
  append_format(out, ",\"args\":{\"stream\":%u,\"context\":%u", w.stream, w.context);
  if (kernel) {
    append_format(out, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared memory\":%u", w.grid[0], w.grid[1],
                  w.grid[2], w.block[0], w.block[1], w.block[2], w.static_shared + w.dynamic_shared);
    if (w.registers) append_format(out, ",\"registers per thread\":%u", w.registers);
  } else {
    append_format(out, ",\"bytes\":%" PRIu64, w.bytes);
    if (took > 0)
      append_format(out, ",\"GB/s\":%.2f", static_cast<double>(w.bytes) / static_cast<double>(took));
  }
  if (w.graph_node) append_format(out, ",\"graph node id\":%" PRIu64, shown_node(w.graph_node));
  if (number) append_format(out, ",\"correlation\":%u", number);
  out += "}}";
  if (number) add_arrow(out, "f", group, w.stream, at, number);
}

void add_annotation(std::string& out, std::int64_t process, const annotated& a) {
  const std::string_view text = a.what.text.empty() ? std::string_view("(no text)") : a.what.text;
  const bool started = a.kind == annotation_kind::started, mark = a.kind == annotation_kind::mark;
  begin(out, started ? "b" : mark ? "i" : "X", text, process);
  append_format(out, ",\"cat\":\"nvtx\",\"tid\":%d,", a.thread);
  if (started) append_format(out, "\"id\":\"0x%" PRIx64 "\",", a.id);
  if (mark) out += "\"s\":\"t\",";
  put_time(out, "ts", a.begin);
  if (a.kind == annotation_kind::pushed) {
    out += ',';
    put_time(out, "dur", a.end - a.begin);
  }
  put_annotation(out, a);
  out += '}';
  if (!started) return;
  begin(out, "e", text, process);
  append_format(out, ",\"cat\":\"nvtx\",\"tid\":%d,\"id\":\"0x%" PRIx64 "\",", a.thread, a.id);
  put_time(out, "ts", a.end);
  out += '}';
}

void add_traffic(std::string& out, std::int64_t process, std::int64_t at, std::uint64_t sent,
                 std::uint64_t received) {
  begin(out, "C", "bytes on the line", process);
  out += ',';
  put_time(out, "ts", at);
  append_format(out, ",\"args\":{\"sent\":%" PRIu64 ",\"received\":%" PRIu64 "}}", sent, received);
}

void add_note(std::string& out, std::int64_t process, std::int64_t at, std::string_view text) {
  begin(out, "i", text, process);
  out += ",\"s\":\"p\",\"tid\":0,";
  put_time(out, "ts", at);
  out += '}';
}

std::string name_of(const api::work_record& w) {
  std::string name;
  if (w.kind == work_kind::fill) return name.append("memset (").append(text_of(w.to)).append(")");
  name.append("memcpy ") += letter_of(w.from);
  name.append("to") += letter_of(w.to);
  return name.append(" (").append(text_of(w.from)).append(" -> ").append(text_of(w.to)).append(")");
}

std::string demangled(const std::string& name) {
  int failed = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed);
  if (!text || failed) return name;
  std::string out(text);
  std::free(text);
  return out;
}

}  // namespace outboard::frontend::profile_events
