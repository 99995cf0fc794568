#include "ptx/run/builtin.hh"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "ptx/run/child_grids.hh"
#include "ptx/run/lane_call.hh"

namespace outboard::ptx {
namespace {

constexpr std::size_t max_text = 4096;

/// Reads device memory for one lane; every read is checked as a kernel's would be.
class lane_reader {
 public:
  explicit lane_reader(warp* w) : warp_(w) {}

  template <class T>
  bool read(std::uint64_t address, T& out) {
    if (!(address - near_.begin < near_.size && near_.size - (address - near_.begin) >= sizeof(T)) &&
        !warp_resolve(warp_, address, sizeof(T), false, near_)) {
      bad_ = address;
      return false;
    }
    std::memcpy(&out, reinterpret_cast<const void*>(address), sizeof out);
    return true;
  }

  bool text(std::uint64_t address, std::string& out) {
    out.clear();
    for (char c = 1; out.size() < max_text; ++address) {
      if (!read(address, c)) return false;
      if (c == 0) break;
      out.push_back(c);
    }
    return true;
  }

  std::uint64_t bad() const { return bad_; }

 private:
  warp* warp_;
  range near_;
  std::uint64_t bad_ = 0;
};

/// One conversion of a format, taken apart so that nothing of the device's text reaches the host's printf
/// unchecked.
struct conversion {
  std::string spec = "%";
  char kind = 0;
  bool wide = false;
  bool valid = false;
};

struct arguments {
  lane_reader& reader;
  std::uint64_t at;

  template <class T>
  bool next(T& out) {
    at = (at + sizeof(T) - 1) & ~std::uint64_t{sizeof(T) - 1};
    const std::uint64_t here = at;
    at += sizeof(T);
    return reader.read(here, out);
  }
};

/// Parses behind a '%'; width and precision of more than three digits are cut.
bool parse_conversion(const std::string& format, std::size_t& n, arguments& from, conversion& c) {
  const auto more = [&] { return n < format.size(); };
  while (more() && std::strchr("-+ #0", format[n])) {
    if (c.spec.size() < 8) c.spec += format[n];
    ++n;
  }
  const auto number = [&]() -> bool {
    if (more() && format[n] == '*') {
      std::int32_t v = 0;
      if (!from.next(v)) return false;
      c.spec += std::to_string(std::min(std::max(v, -999), 999));
      ++n;
      return true;
    }
    for (int digits = 0; more() && format[n] >= '0' && format[n] <= '9'; ++n, ++digits) {
      if (digits < 3) c.spec += format[n];
    }
    return true;
  };
  if (!number()) return false;
  if (more() && format[n] == '.') {
    c.spec += format[n++];
    if (!number()) return false;
  }
  while (more() && std::strchr("hljztL", format[n])) {
    c.wide |= format[n] != 'h' && format[n] != 'L';
    ++n;
  }
  if (!more()) return true;
  c.kind = format[n++];
  c.valid = std::strchr("diouxXcsaAeEfFgGp", c.kind) != nullptr;
  return true;
}

template <class T>
void append(std::string& out, const std::string& spec, T value) {
  char buffer[2048];
  const int size = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  if (size > 0) out.append(buffer, std::min<std::size_t>(static_cast<std::size_t>(size), sizeof buffer - 1));
}

bool format_text(const std::string& format, arguments from, std::string& out) {
  std::string text;
  for (std::size_t n = 0; n < format.size() && out.size() < max_text;) {
    if (format[n] != '%') {
      out += format[n++];
      continue;
    }
    if (++n < format.size() && format[n] == '%') {
      out += format[n++];
      continue;
    }
    conversion c;
    if (!parse_conversion(format, n, from, c)) return false;
    if (!c.valid) {
      out += c.spec;
      if (c.kind) out += c.kind;
      continue;
    }
    std::uint64_t wide = 0;
    std::uint32_t narrow = 0;
    double real = 0;
    switch (c.kind) {
      case 's':
        if (!from.next(wide) || !from.reader.text(wide, text)) return false;
        append(out, c.spec + "s", text.c_str());
        break;
      case 'p':
        if (!from.next(wide)) return false;
        append(out, c.spec + "p", reinterpret_cast<void*>(wide));
        break;
      case 'c':
        if (!from.next(narrow)) return false;
        append(out, c.spec + "c", static_cast<int>(narrow & 255));
        break;
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        if (c.wide ? !from.next(wide) : !from.next(narrow)) return false;
        if (c.wide) {
          append(out, c.spec + "ll" + c.kind, static_cast<long long>(wide));
        } else {
          append(out, c.spec + c.kind, static_cast<int>(narrow));
        }
        break;
      default:
        if (!from.next(real)) return false;
        append(out, c.spec + c.kind, real);
        break;
    }
  }
  return true;
}

std::string coordinates(const dimensions& d) {
  return std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]);
}

/// Ends the launch as __assertfail(message, file, line, function, size of a character) asks.
const inst* assertion_fault(const lane_call& call, const inst* i) {
  warp* w = call.w;
  const int l = call.lane;
  lane_reader reader(w);
  std::string message, file, where;
  if (!reader.text(call.argument<std::uint64_t>(0), message) ||
      !reader.text(call.argument<std::uint64_t>(1), file) ||
      !reader.text(call.argument<std::uint64_t>(3), where)) {
    return warp_fault(w, i, fault::address, l, reader.bad());
  }
  const dimensions thread{w->tid[0][l], w->tid[1][l], w->tid[2][l]};
  const std::string text = file + ":" + std::to_string(call.argument<std::uint32_t>(2)) + ": " + where +
                           ": block: [" + coordinates(w->owner->index) + "], thread: [" +
                           coordinates(thread) + "] Assertion `" + message + "` failed.";
  const inst* out = warp_fault(w, i, fault::assertion, l, 0);
  w->owner->failed.text = text;
  return out;
}

}  // namespace

const inst* builtin_call(warp* w, const inst* i, const call_site& site) {
  const launch_state& launch = *w->owner->launch;
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    const lane_call call{w, site, l};
    if (site.provided == builtin::malloc) {
      const std::uint64_t bytes = call.argument<std::uint64_t>(0);
      call.give(launch.heap && bytes != 0 ? launch.heap->allocate(bytes) : std::uint64_t{0});
      continue;
    }
    if (site.provided == builtin::free) {
      const std::uint64_t address = call.argument<std::uint64_t>(0);
      if (address != 0 && !(launch.heap && launch.heap->release(address))) {
        return warp_fault(w, i, fault::heap, l, address);
      }
      continue;
    }
    if (site.provided == builtin::set_conditional) {
      if (!launch.set_conditional)
        return warp_fault(w, i, fault::instruction, l, call.argument<std::uint64_t>(0));
      (*launch.set_conditional)(call.argument<std::uint64_t>(0), call.argument<std::uint32_t>(1));
      continue;
    }
    if (site.provided >= builtin::child_parameters) {
      if (!child_call(w, i, site, l)) return leave();
      continue;
    }
    if (site.provided == builtin::assertfail) return assertion_fault(call, i);
    lane_reader reader(w);
    std::string format, text;
    if (!reader.text(call.argument<std::uint64_t>(0), format) ||
        !format_text(format, {reader, call.argument<std::uint64_t>(1)}, text)) {
      return warp_fault(w, i, fault::address, l, reader.bad());
    }
    if (launch.print) (*launch.print)(text);
    call.give(static_cast<std::int32_t>(text.size()));
  }
  return i + 1;
}

}  // namespace outboard::ptx
