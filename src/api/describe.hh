// The grammar of one line of a *.def table and its compile-time parser. A line reads
//
//   KIND(symbol, parameter, parameter ...; word, word ...)
//   parameter = [in|out|inout|at] name [?] [ '[' count ']' ]      at: a device address passed by value
//   count     = name of another parameter | number | str
//
// `?` says the pointer may be null; a count that names a pointer parameter means the value behind it; `str`
// is a NUL-terminated string; a pointer without count is one object. Words: preinit (works before cuInit),
// noctx (works without a current context; a function that takes a stream needs none either unless it is a
// default stream), unsafe (the driver may refuse it while any stream is capturing, so it then waits for the
// server's word), fence (ordered after everything of the session), waits (may block on device work), deferred
// (may carry an earlier post's error), creates P / destroys P (handle parameter P is born / dies), returns
// (the function's value is the handle that is born, its last parameter where the error goes). A line without
// parameters says `SYMBOL(cuX, ; words)`. For a refused function the text names the family whose reason
// docs/coverage.md gives. Anything odder is CUSTOM. noctx and unsafe were measured on driver 580.159.
// Every CUDA line says `since N`: the CUDA version (13000 is 13.0) that gave the symbol its meaning, from
// which cuGetProcAddress returns it (api/cuda/proc_address.hh).
//
// Words say, too, how the ends treat a function, so that neither its name nor its opcode decides it elsewhere
// (P: a parameter):
//   work            kernels, copies or fills that it begins may use memory after it has returned
//   flow F          where the request names the stream: default_stream, last_parameter, or a body (launch,
//                   graph_launch, copy_across, copy_in, prefetch)
//   reads           ... and only read the device's memory
//   quiet           what is deferred or waits, but whose reply does not say that earlier work is complete
//   asks X          asks whether a stream, an event or the context (X) is idle, and begins nothing
//   drains          its reply says that all work of the context is complete
//   no_work         leaves the device nothing to do, or waits until it is done
//   tells_end       its reply may say that a kernel has ended (as that of waits, deferred, fence, destroys)
//   light           a post that makes or marks something and begins no work: it may leave a little later
//   passes_frees    a post that may leave before the frees that the front-end keeps back
//   sends_frees     its end decides which of those frees leave first
//   captured        becomes a node of a captured graph, or finds out itself what the capture forbids
//   of_object       about an event or stream alone: the handle is checked before cuInit is
//   stream_context  runs in the context of its stream, even if the thread has another current one
//   context_of P    a thread without a current context has that of the object P for this call
//   records P       records the event P
//   awaits P        makes a stream wait for the event P
//   plain P n       flags P with other bits than n make a post wait for its reply
//   aligned P       so do addresses that are no multiple of P's size
//   fill P          fills memory at its first parameter with values of P's type
//   copies          copies within device memory, from its second parameter to its first
//   extent P        P is the number of bytes, or of values, at each address (of rows: in a row)
//   rows P          a fill of P rows ...
//   pitch P         ... that are P bytes apart
//   any_thread      does the same whichever thread of the worker makes it
//   loads_code      loads an image
//   makes_graph     makes a graph
//   unlocked        works while the process is locked by cuCheckpointProcessLock
//
// Before a hand-written end runs, its entry checks that CUDA is initialised, and a current context unless the
// line says noctx (preinit: neither). Two words say otherwise, each with its reason in a comment in the
// table:
//   gate init       the entry checks that CUDA is initialised, and the end looks at the context itself
//   gate end        the end does all of it itself, because other checks come first, even before cuInit
// A function whose name ends with _ptsz or _ptds is the per-thread twin of the one without: NULL means the
// thread's own default stream.
//
// A CUDA line whose ends are hand-written says how it travels:
//   request BODY    it has a message of its own, the struct marshal::BODY (`nothing`: an empty one), and so a
//                   handler in the back-end, typed by this line
//   tail            bytes follow the body, which the handler reads from call::body
//   raw             the handler reads the body itself, field by field
//   reply BODY      a call that succeeded is answered with marshal::BODY; `BODY?`: if the handler says
//                   so, and then with an error, too; `bytes`: the handler writes to call::reply itself
//   via SYMBOL      it travels (or also travels) in requests of that function, which has a request or is
//                   generated
// Everything here is constexpr and has no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace outboard::api {

enum class kind : std::uint8_t {
  call,     ///< travels, waits for its reply
  post,     ///< travels, no reply; validated on the front-end
  custom,   ///< hand-written ends, same wire rules
  local,    ///< answered by the front-end alone
  refused,  ///< a gap with a reason in docs/coverage.md: unknown to cuGetProcAddress, NOT_SUPPORTED when
            ///< called
};

enum class direction : std::uint8_t {
  in,
  out,
  inout,
  at,  ///< in, and a device address: one that the front-end does not know turns a post into a call
};
enum class count_kind : std::uint8_t { one, number, parameter, string };

struct parameter {
  std::string_view name;
  direction dir = direction::in;
  bool may_be_null = false;
  count_kind count = count_kind::one;
  std::size_t number = 0;                     ///< count_kind::number
  std::string_view count_name;                ///< count_kind::parameter
  std::size_t count_index = ~std::size_t{0};  ///< index of count_name, found by parse()
};

/// What a question about completion is about.
enum class completion : std::uint8_t { none, stream, event, context };

/// Where a request that begins work says in which stream.
enum class flow_place : std::uint8_t {
  thread,  ///< nowhere: taken for one of the calling thread's own
  default_stream,
  last_parameter,
  launch,  ///< in the body of a launch; likewise the next ones
  graph_launch,
  copy_across,
  copy_in,
  prefetch,
};

/// Who makes the first check of a hand-written end: that CUDA is initialised, and a usable current context.
enum class gatekeeper : std::uint8_t {
  entry,
  init,  ///< the entry, but for the context
  end,
};

enum class parse_error : std::uint8_t { none, parameter, count, unknown_count, word, too_many };

inline constexpr std::size_t max_parameters = 16;
inline constexpr std::size_t max_count = 1 << 20;  ///< of a number in brackets, give or take a digit
inline constexpr std::size_t no_parameter = ~std::size_t{0};
inline constexpr std::size_t max_via = 4;

/// How a function with hand-written ends travels. The names are parts of the line's text.
struct travel {
  std::string_view request;        ///< the struct of its message; empty: it has none of its own
  std::string_view reply;          ///< of its answer; empty: the result code only
  bool tail = false;               ///< bytes follow the request's body
  bool raw = false;                ///< the handler decodes the request and encodes the reply
  bool reply_is_optional = false;  ///< the handler says whether there is one
  /// Functions in whose requests it travels; the rest is empty. (Written out: gcc 12 takes members that it
  /// initialised by itself for no constants.)
  std::array<std::string_view, max_via> via{"", "", "", ""};

  constexpr bool says_nothing() const {
    return request.empty() && reply.empty() && via[0].empty() && !tail && !raw;
  }
};

struct description {
  api::kind how = kind::refused;
  std::array<parameter, max_parameters> parameters{};
  std::size_t arity = 0;
  std::size_t creates = no_parameter;   ///< index of the handle parameter that is born
  std::size_t destroys = no_parameter;  ///< index of the handle parameter that dies
  bool preinit = false, noctx = false, unsafe = false, fence = false, waits = false, deferred = false;
  bool returns = false;  ///< its value is a handle that is born
  api::travel travel;

  // Behaviour; the header's comment has the meaning of each.
  bool work = false, reads = false, quiet = false, drains = false, no_work = false, tells_end = false;
  bool light = false, passes_frees = false, sends_frees = false;
  bool captured = false, of_object = false, stream_context = false, copies = false;
  bool any_thread = false, loads_code = false, makes_graph = false, unlocked = false;
  bool per_thread = false;  ///< from the symbol
  gatekeeper gate = gatekeeper::entry;
  completion asks = completion::none;
  flow_place flow = flow_place::thread;
  std::uint32_t plain_bits = 0;
  std::size_t context_of = no_parameter, records = no_parameter, awaits = no_parameter;
  std::size_t plain = no_parameter, aligned = no_parameter, fill = no_parameter;
  std::size_t extent = no_parameter, rows = no_parameter, pitch = no_parameter;

  parse_error error = parse_error::none;
};

namespace detail {

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

constexpr bool is_identifier(std::string_view s) {
  if (s.empty() || (s.front() >= '0' && s.front() <= '9')) return false;
  for (char c : s) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  }
  return true;
}

/// Cuts the text before the first `separator` off `rest`.
constexpr std::string_view next_item(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view item = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return trim(item);
}

constexpr bool take_word(std::string_view& s, std::string_view word) {
  if (!s.starts_with(word) || s.size() <= word.size() || s[word.size()] != ' ') return false;
  s = trim(s.substr(word.size()));
  return true;
}

constexpr parse_error parse_count(std::string_view text, parameter& p) {
  if (text == "str") {
    p.count = count_kind::string;
  } else if (is_identifier(text)) {
    p.count = count_kind::parameter;
    p.count_name = text;
  } else {
    p.count = count_kind::number;
    for (char c : text) {
      if (c < '0' || c > '9' || p.number > max_count) return parse_error::count;
      p.number = p.number * 10 + static_cast<std::size_t>(c - '0');
    }
    if (p.number == 0) return parse_error::count;
  }
  return parse_error::none;
}

constexpr parse_error parse_parameter(std::string_view text, parameter& p) {
  if (take_word(text, "in")) {
    p.dir = direction::in;
  } else if (take_word(text, "out")) {
    p.dir = direction::out;
  } else if (take_word(text, "inout")) {
    p.dir = direction::inout;
  } else if (take_word(text, "at")) {
    p.dir = direction::at;
  }
  if (text.ends_with(']')) {
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos) return parse_error::count;
    const std::string_view count = text.substr(open + 1, text.size() - open - 2);
    if (parse_error e = parse_count(trim(count), p); e != parse_error::none) return e;
    text = trim(text.substr(0, open));
  }
  if (text.ends_with('?')) {
    p.may_be_null = true;
    text = trim(text.substr(0, text.size() - 1));
  }
  p.name = text;
  return is_identifier(text) ? parse_error::none : parse_error::parameter;
}

constexpr std::size_t index_of(const description& d, std::string_view name) {
  for (std::size_t i = 0; i < d.arity; ++i) {
    if (d.parameters[i].name == name) return i;
  }
  return no_parameter;
}

struct flag_word {
  std::string_view word;
  bool description::*flag;
};

inline constexpr flag_word flag_words[] = {
    {"noctx", &description::noctx},
    {"unsafe", &description::unsafe},
    {"fence", &description::fence},
    {"waits", &description::waits},
    {"deferred", &description::deferred},
    {"returns", &description::returns},
    {"work", &description::work},
    {"reads", &description::reads},
    {"quiet", &description::quiet},
    {"drains", &description::drains},
    {"no_work", &description::no_work},
    {"tells_end", &description::tells_end},
    {"light", &description::light},
    {"passes_frees", &description::passes_frees},
    {"sends_frees", &description::sends_frees},
    {"captured", &description::captured},
    {"of_object", &description::of_object},
    {"stream_context", &description::stream_context},
    {"copies", &description::copies},
    {"any_thread", &description::any_thread},
    {"loads_code", &description::loads_code},
    {"makes_graph", &description::makes_graph},
    {"unlocked", &description::unlocked},
};

/// Words that are followed by the name of a parameter.
struct parameter_word {
  std::string_view word;
  std::size_t description::*index;
};

inline constexpr parameter_word parameter_words[] = {
    {"creates", &description::creates},
    {"destroys", &description::destroys},
    {"context_of", &description::context_of},
    {"records", &description::records},
    {"awaits", &description::awaits},
    {"aligned", &description::aligned},
    {"fill", &description::fill},
    {"extent", &description::extent},
    {"rows", &description::rows},
    {"pitch", &description::pitch},
};

constexpr bool parse_flow(std::string_view where, description& d) {
  if (where == "default_stream") d.flow = flow_place::default_stream;
  if (where == "last_parameter") d.flow = flow_place::last_parameter;
  if (where == "launch") d.flow = flow_place::launch;
  if (where == "graph_launch") d.flow = flow_place::graph_launch;
  if (where == "copy_across") d.flow = flow_place::copy_across;
  if (where == "copy_in") d.flow = flow_place::copy_in;
  if (where == "prefetch") d.flow = flow_place::prefetch;
  return d.flow != flow_place::thread;
}

constexpr bool parse_asks(std::string_view what, description& d) {
  if (what == "stream") d.asks = completion::stream;
  if (what == "event") d.asks = completion::event;
  if (what == "context") d.asks = completion::context;
  return d.asks != completion::none;
}

constexpr bool parse_gate(std::string_view who, description& d) {
  if (who == "init") d.gate = gatekeeper::init;
  if (who == "end") d.gate = gatekeeper::end;
  return d.gate != gatekeeper::entry;
}

/// "P n", n of at most two digits.
constexpr bool parse_plain(std::string_view text, description& d) {
  const std::string_view name = next_item(text, ' ');
  if (text.empty() || text.size() > 2) return false;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    d.plain_bits = d.plain_bits * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return (d.plain = index_of(d, name)) != no_parameter;
}

/// The first `via` that is free, or nullptr.
constexpr std::string_view* free_via(travel& t) {
  for (std::string_view& v : t.via) {
    if (v.empty()) return &v;
  }
  return nullptr;
}

/// A word that says how the function travels; false: another word, or one said twice.
constexpr bool parse_travel(std::string_view word, travel& t) {
  if (word == "tail") return t.tail = true;
  if (word == "raw") return t.raw = true;
  if (take_word(word, "via")) {
    std::string_view* const to = free_via(t);
    if (!to || !is_identifier(word)) return false;
    return *to = word, true;
  }
  if (take_word(word, "request")) {
    if (!t.request.empty() || !is_identifier(word)) return false;
    return t.request = word, true;
  }
  if (!take_word(word, "reply") || !t.reply.empty()) return false;
  if (word.ends_with('?')) t.reply_is_optional = true, word = trim(word.substr(0, word.size() - 1));
  return t.reply = word, is_identifier(word);
}

/// A version as in CUDA_VERSION; 0: it is none.
constexpr unsigned parse_version(std::string_view text) {
  if (text.empty() || text.size() > 6) return 0;
  unsigned version = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return 0;
    version = version * 10 + static_cast<unsigned>(c - '0');
  }
  return version;
}

constexpr bool parse_word(std::string_view word, description& d) {
  for (const parameter_word& p : parameter_words) {
    if (take_word(word, p.word)) return (d.*p.index = index_of(d, word)) != no_parameter;
  }
  if (take_word(word, "plain")) return parse_plain(word, d);
  if (take_word(word, "flow")) return parse_flow(word, d);
  if (take_word(word, "asks")) return parse_asks(word, d);
  if (take_word(word, "gate")) return parse_gate(word, d);
  if (take_word(word, "since")) return parse_version(word) != 0;
  if (word == "preinit") return d.preinit = d.noctx = true;
  for (const flag_word& f : flag_words) {
    if (word == f.word) return d.*f.flag = true;
  }
  return parse_travel(word, d.travel);
}

}  // namespace detail

/// Integers of generated functions take 64 bits on the wire: for an API whose clients may have 32 bits, where
/// the type of a parameter does not say whether the other end's is as wide.
template <class Opcode>
inline constexpr bool integers_travel_wide = false;

/// function<opcode>::prototype, ::name, ::about, for the opcodes of every API whose tables describe what
/// travels; only for lines that need the prototype (not refused).
template <auto>
struct function;

constexpr bool is_per_thread(std::string_view symbol) {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}

/// Parses what stands behind the symbol in a table line (without the leading comma).
constexpr description parse(kind how, std::string_view text) {
  description d;
  d.how = how;
  std::string_view words = text;
  std::string_view list = detail::next_item(words, ';');
  while (!list.empty()) {
    if (d.arity == max_parameters) return d.error = parse_error::too_many, d;
    parameter& p = d.parameters[d.arity];
    d.error = detail::parse_parameter(detail::next_item(list, ','), p);
    if (d.error != parse_error::none) return d;
    ++d.arity;
  }
  for (std::size_t i = 0; i < d.arity; ++i) {
    parameter& p = d.parameters[i];
    if (p.count != count_kind::parameter) continue;
    p.count_index = detail::index_of(d, p.count_name);
    if (p.count_index == no_parameter) return d.error = parse_error::unknown_count, d;
  }
  while (!words.empty()) {
    if (!detail::parse_word(detail::next_item(words, ','), d)) return d.error = parse_error::word, d;
  }
  return d;
}

/// What the word `since` of a line says, whatever its kind; 0: nothing. (It is no member of the description,
/// since all refused lines share one.)
constexpr unsigned since_of(std::string_view text) {
  std::string_view words = text;
  detail::next_item(words, ';');
  while (!words.empty()) {
    std::string_view word = detail::next_item(words, ',');
    if (detail::take_word(word, "since")) return detail::parse_version(word);
  }
  return 0;
}

/// Of a refused line: the family that it belongs to.
constexpr std::string_view family_of(std::string_view text) { return detail::next_item(text, ';'); }

/// The whole line.
constexpr description parse(kind how, std::string_view symbol, std::string_view text) {
  description d = parse(how, text);
  d.per_thread = is_per_thread(symbol);
  return d;
}

}  // namespace outboard::api
