// The grammar of one line of a *.def table and its compile-time parser. A line reads
//
//   KIND(symbol, parameter, parameter ...; word, word ...)
//   CUSTOM(symbol, request, reply, parameter ...; word ...)       of CUDA; request, reply: types of marshal
//   VIA(symbol, way way ..., parameter ...; word ...)
//   parameter = [in|out|inout|at] name [?] [ '[' count ']' ]      at: a device address passed by value
//   count     = name of another parameter | number | str
//
// `?` says the pointer may be null; a count that names a pointer parameter means the value behind it; `str`
// is a NUL-terminated string; a pointer without count is one object. Words: preinit (works before cuInit),
// noctx (works without a current context; a function that takes a stream needs none either unless it is a
// default stream), unsafe (the driver may refuse it while any stream is capturing, so it then waits for the
// server's word), fence (ordered after everything of the session), waits (may block on device work), deferred
// (may carry an earlier post's error), creates P / destroys P (handle parameter P is born / dies), returns
// (the function's value is the handle that is born, its last parameter where the error goes), work (leaves
// the device work that profilers show: kernels, graphs, copies, fills; in a capture it becomes a node), batch
// (as much of it as it lists), graph W, pool W, adds W (what it does to graphs and pools of memory, and which
// node it adds: changes.hh has the words), records event and its like (what it does to other objects: also
// there), leaves W, over W, doubts W (what it leaves at work, what is over when it succeeds, when its post
// waits for the driver's word: at_work.hh has the words). A line without parameters says `SYMBOL(cuX, ;
// words)`. For a refused function the text names the family whose reason docs/coverage.md gives. Anything
// odder is CUSTOM. noctx and unsafe were measured on driver 580.159.
//
// A CUSTOM function has a handler on the server and travels under its own opcode; via A B says that it goes
// under the opcode of A or of B, too, as the call needs. A VIA function has no handler: its ways are the
// functions under whose opcodes it travels, whose messages are its own; the first may be `aside` (in the
// hello of a connection of its own). Nothing travels for a LOCAL function, but for the question whether an
// open capture forbids it: of unsafe, and of uncaptured (the stream that it names must not be captured). What
// goes beside a request is no way: memory that is kept twice, frees that were put off, waits.
//
// More words: settles (over when it returns if it writes memory of the host; measured on 580), itself
// (unsafe, and says itself what a capture makes of it: nobody asks before), asks (a question about
// completion: it begins nothing), of_object (looks at its objects before anything else, even before cuInit),
// light (a post that makes, marks or changes and begins no work), followed (a post that only a later request
// sees), overtakes (its post may go out before frees that were put off), workless (leaves no stream anything
// to do), unlocked (does not wait where a checkpoint's lock is held).
//
// Everything here is constexpr and has no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/at_work.hh"
#include "api/changes.hh"

namespace outboard::api {

enum class kind : std::uint8_t {
  call,     ///< travels, waits for its reply
  post,     ///< travels, no reply; validated on the front-end
  custom,   ///< hand-written ends, same wire rules
  via,      ///< a hand-written front-end, whose requests are those of others
  local,    ///< answered by the front-end, nothing travels
  later,    ///< promised, not yet there: unknown to cuGetProcAddress, NOT_SUPPORTED when called
  refused,  ///< a gap with a reason in docs/coverage.md; behaves as later
};

/// How requests of a function travel, and what carries them out.
enum class travel : std::uint8_t {
  nothing,    ///< none do
  generated,  ///< under its own opcode; carried out by what its line generates
  handled,    ///< under its own opcode, perhaps under others', too; its handler is written by hand
  via,        ///< under others' opcodes alone
  aside       ///< in the hello of a connection of its own, perhaps under others' opcodes, too
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

enum class parse_error : std::uint8_t { none, parameter, count, unknown_count, word, too_many };

inline constexpr std::size_t max_parameters = 16;
inline constexpr std::size_t max_count = 1 << 20;  ///< of a number in brackets, give or take a digit
inline constexpr std::size_t no_parameter = ~std::size_t{0};

struct description {
  api::kind how = kind::later;
  std::array<parameter, max_parameters> parameters{};
  std::size_t arity = 0;
  std::size_t creates = no_parameter;   ///< index of the handle parameter that is born
  std::size_t destroys = no_parameter;  ///< index of the handle parameter that dies
  bool preinit = false, noctx = false, unsafe = false, fence = false, waits = false, deferred = false;
  bool returns = false;  ///< its value is a handle that is born
  bool work = false;     ///< it leaves the device work that profilers show
  bool batch = false;    ///< that work is many operations
  travel travels = travel::nothing;
  std::string_view via;  ///< the functions under whose opcodes it travels, with blanks between
  bool uncaptured = false;
  bool settles = false, itself = false, asks = false, of_object = false;
  bool light = false, followed = false, overtakes = false, workless = false, unlocked = false;
  left_work leaves = left_work::none;
  api::over over = api::over::nothing;
  doubt doubts = doubt::none;
  graph_change graph = graph_change::none;
  pool_change pool = pool_change::none;
  added_node adds = added_node::none;
  object_change object = object_change::none;
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

/// How a function travels whose line says no more.
constexpr travel travel_of(kind how) {
  if (how == kind::call || how == kind::post) return travel::generated;
  if (how == kind::via) return travel::via;
  return how == kind::custom ? travel::handled : travel::nothing;
}

/// What a VIA line has before its parameters.
constexpr bool parse_ways(std::string_view ways, description& d) {
  if (ways == "aside" || take_word(ways, "aside")) d.travels = travel::aside;
  if (ways != "aside") d.via = ways;
  return d.travels == travel::aside || !d.via.empty();
}

constexpr bool parse_word(std::string_view word, description& d) {
  if (take_word(word, "creates")) return (d.creates = index_of(d, word)) != no_parameter;
  if (take_word(word, "destroys")) return (d.destroys = index_of(d, word)) != no_parameter;
  if (word == "preinit") return d.preinit = d.noctx = true;
  if (word == "noctx") return d.noctx = true;
  if (word == "unsafe") return d.unsafe = true;
  if (word == "fence") return d.fence = true;
  if (word == "waits") return d.waits = true;
  if (word == "deferred") return d.deferred = true;
  if (word == "returns") return d.returns = true;
  if (word == "uncaptured") return d.uncaptured = true;
  if (word == "settles") return d.settles = true;
  if (word == "itself") return d.itself = true;
  if (word == "asks") return d.asks = true;
  if (word == "of_object") return d.of_object = true;
  if (word == "light") return d.light = true;
  if (word == "followed") return d.followed = true;
  if (word == "overtakes") return d.overtakes = true;
  if (word == "workless") return d.workless = true;
  if (word == "batch") return d.batch = true;
  if (word == "unlocked") return d.unlocked = true;
  if (take_word(word, "leaves")) return find_word(left_words, word, d.leaves);
  if (take_word(word, "over")) return find_word(over_words, word, d.over);
  if (take_word(word, "doubts")) return find_word(doubt_words, word, d.doubts);
  if (word == "work") return d.graph = graph_change::may_be_captured, d.work = true;
  if (take_word(word, "graph")) return find_word(graph_words, word, d.graph);
  if (take_word(word, "pool")) return find_word(pool_words, word, d.pool);
  if (take_word(word, "adds")) return d.graph = graph_change::adds_node, find_word(node_words, word, d.adds);
  if (find_word(object_words, word, d.object)) return true;
  return d.how == kind::custom && d.via.empty() && take_word(word, "via") && (d.via = word, true);
}

}  // namespace detail

/// Whether the server has a handler for its opcode that is written by hand.
constexpr bool has_handler(const description& d) { return d.travels == travel::handled; }

/// Whether requests under its opcode are carried out.
constexpr bool is_served(const description& d) { return d.travels == travel::generated || has_handler(d); }

/// Integers of generated functions take 64 bits on the wire: for an API whose clients may have 32 bits, where
/// the type of a parameter does not say whether the other end's is as wide.
template <class Opcode>
inline constexpr bool integers_travel_wide = false;

/// A line as the table has it: ::prototype, ::how, ::name and ::text, what stands behind the symbol. For the
/// opcodes of every API whose tables describe what travels; only for lines that need the prototype (not
/// later, refused).
template <auto>
struct line;

/// Parses what stands behind the symbol in a table line (without the leading comma).
constexpr description parse(kind how, std::string_view text) {
  description d;
  d.how = how;
  d.travels = detail::travel_of(how);
  std::string_view words = text;
  if (how == kind::via && !detail::parse_ways(detail::next_item(words, ';'), d))
    return d.error = parse_error::word, d;
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

/// function<opcode>::prototype, ::name, ::about of a line<opcode>. Each file parses the lines that it asks
/// about and no other ones: there are hundreds, and most files need none.
template <auto Op>
struct function {
  using prototype = typename line<Op>::prototype;
  static constexpr std::string_view name = line<Op>::name;
  static constexpr description about = parse(line<Op>::how, line<Op>::text);
};

}  // namespace outboard::api
