// parse_ptx: the entries and variables of a PTX text, without understanding an instruction. It reads the
// statements at module level and skips every body; the grammar is that of the PTX ISA, chapters 4 and 5.
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "marshal/cuda/kernel_table.hh"

namespace outboard::marshal {
namespace {

// CUDA's limit for all parameters together is 32764 bytes, and each takes one at least.
constexpr std::uint64_t max_parameter_bytes = 32764;

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

/// Tokens: words (directives with their dot, names, numbers), strings, single other characters; empty at the
/// end.
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_(text) { step(); }

  std::string_view token() const { return token_; }
  bool at_end() const { return token_.empty(); }
  bool is(std::string_view what) const { return token_ == what; }
  std::string_view take() {
    const auto taken = token_;
    step();
    return taken;
  }
  bool skip(std::string_view what) {
    if (!is(what)) return false;
    step();
    return true;
  }

  /// From an opening bracket to behind its partner.
  void skip_brackets(std::string_view open, std::string_view close) {
    std::size_t depth = 0;
    while (!at_end()) {
      if (is(open)) ++depth;
      if (is(close) && --depth == 0) return step();
      step();
    }
  }

 private:
  void step() {
    skip_blank();
    if (rest_.empty()) {
      token_ = {};
      return;
    }
    std::size_t n = 1;
    if (rest_[0] == '"') {
      while (n < rest_.size() && rest_[n] != '"') n += rest_[n] == '\\' ? 2 : 1;
      n = std::min(n + 1, rest_.size());
    } else if (in_word(rest_[0])) {
      while (n < rest_.size() && in_word(rest_[n])) ++n;
    }
    token_ = rest_.substr(0, n);
    rest_.remove_prefix(n);
  }

  void skip_blank() {
    while (!rest_.empty()) {
      const char c = rest_[0];
      if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') {
        rest_.remove_prefix(1);
      } else if (rest_.starts_with("//")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        const auto end = rest_.find("*/", 2);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
      } else {
        return;
      }
    }
  }

  std::string_view rest_, token_;
};

/// Decimal, hexadecimal, octal or binary, with an optional U.
std::optional<std::uint64_t> number(std::string_view text) {
  if (text.ends_with('U')) text.remove_suffix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16, text.remove_prefix(2);
  } else if (text.starts_with("0b") || text.starts_with("0B")) {
    base = 2, text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8, text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Bytes of a fundamental type, 0 if it is none.
std::uint32_t type_bytes(std::string_view type) {
  if (type.size() < 3 || type[0] != '.') return 0;
  if (type == ".bf16" || type == ".f16") return 2;
  if (type == ".bf16x2" || type == ".f16x2") return 4;
  if (std::string_view("busf").find(type[1]) == std::string_view::npos) return 0;
  const auto bits = number(type.substr(2));
  if (!bits || (*bits != 8 && *bits != 16 && *bits != 32 && *bits != 64 && *bits != 128)) return 0;
  return static_cast<std::uint32_t>(*bits / 8);
}

/// What stands between a state space and a name, and behind the name.
struct declaration {
  std::string_view name;
  std::uint64_t bytes = 0, element = 0;
  std::uint32_t alignment = 0;
  bool managed = false;
  bool known = false;  ///< a type we can measure (not .texref and the like)
};

class module_scan {
 public:
  explicit module_scan(std::string_view text) : at_(text) {}

  result<kernel_table> run() {
    table_.source = kernel_source::ptx;
    bool versioned = false;
    bool external = false;  // .extern belongs to the next declaration
    while (!at_.at_end()) {
      const std::string_view word = at_.take();
      if (word == ".version") {
        versioned = true;
      } else if (word == ".target") {
        read_target();
      } else if (word == ".extern") {
        external = true;
      } else if (word == ".entry") {
        OUTBOARD_TRY(read_entry());
        external = false;
      } else if (word == ".global" || word == ".const") {
        OUTBOARD_TRY(read_variables(word == ".const", external));
        external = false;
      } else if (word == ";" || word == "}" || word == ".func" || word == ".shared") {
        external = false;
      } else if (word == "{") {  // the body of a function, or debug data; its brace is taken already
        skip_body();
        external = false;
      }
    }
    if (!versioned) return failure("the text is no PTX: there is no .version");
    for (kernel_info& kernel : table_.kernels) kernel.ptx_version = capability_;
    sort_table(table_);
    return std::move(table_);
  }

 private:
  void read_target() {
    const std::string_view target = at_.take();  // sm_90, sm_90a, compute_90
    const auto digits = target.find_first_of("0123456789");
    if (digits == std::string_view::npos) return;
    std::int32_t value = -1;
    std::from_chars(target.data() + digits, target.data() + target.size(), value);
    if (value > 0 && value < 10000) capability_ = value;
  }

  void skip_body() {
    std::size_t depth = 1;
    while (!at_.at_end() && depth > 0) {
      const std::string_view word = at_.take();
      if (word == "{") ++depth;
      if (word == "}") --depth;
    }
  }

  /// `.align 4 .b8 name[12]`, `.u64 .ptr .global .align 8 name`, `.v4 .f32 name[2][3]`, `.attribute(.managed)
  /// …`.
  declaration read_declaration(declaration like) {
    declaration d = like;
    std::uint64_t lanes = 1;
    bool pointer = false;  // what follows .ptr describes the memory pointed to
    while (at_.token().starts_with('.')) {
      const std::string_view word = at_.take();
      if (word == ".align") {
        const auto n = number(at_.take());
        if (!pointer && n && *n > 0 && *n <= 1 << 16) d.alignment = static_cast<std::uint32_t>(*n);
      } else if (word == ".ptr") {
        pointer = true;
      } else if (word == ".attribute") {
        while (!at_.at_end() && !at_.is(")")) d.managed |= at_.take() == ".managed";
        at_.skip(")");
      } else if (word == ".v2" || word == ".v4" || word == ".v8") {
        lanes = static_cast<std::uint64_t>(word[2] - '0');
      } else if (const std::uint32_t bytes = type_bytes(word)) {
        d.element = bytes * lanes;
        d.known = true;
      }
    }
    d.bytes = d.element;
    if (d.alignment == 0) d.alignment = static_cast<std::uint32_t>(d.element);
    d.name = at_.take();
    while (at_.skip("[")) {
      if (at_.skip("]")) {  // as many as there are initial values
        d.bytes = 0;
        continue;
      }
      const auto n = number(at_.take());
      const bool closed = at_.skip("]");
      if (!n || !closed || (*n != 0 && d.bytes > (std::uint64_t{1} << 40) / *n)) {
        d.known = false;
      } else {
        d.bytes *= *n;
      }
    }
    if (at_.skip("=")) {
      const std::uint64_t values = skip_initial_values();
      if (d.bytes == 0) d.bytes = values * d.element;
    }
    return d;
  }

  /// Up to the comma or semicolon behind them; how many there are at the outer level.
  std::uint64_t skip_initial_values() {
    std::uint64_t values = 1;
    std::size_t depth = 0;
    while (!at_.at_end()) {
      if (depth == 0 && (at_.is(";") || at_.is(","))) break;
      const std::string_view word = at_.take();
      if (word == "{" || word == "(") ++depth;
      if ((word == "}" || word == ")") && depth > 0) --depth;
      if (word == "," && depth == 1) ++values;
    }
    return values;
  }

  status read_variables(bool constant, bool external) {
    declaration like;
    do {
      const declaration d = read_declaration(like);
      if (d.name.empty() || !in_word(d.name[0])) return failure("PTX: a variable without a name");
      like = d;  // `.global .u32 a, b;`
      if (external || !d.known) continue;
      const variable_space space = constant    ? variable_space::constant
                                   : d.managed ? variable_space::managed
                                               : variable_space::global;
      table_.variables.push_back({std::string(d.name), space, d.bytes});
    } while (at_.skip(","));
    return {};
  }

  status read_entry() {
    kernel_info kernel;
    kernel.name = at_.take();
    if (kernel.name.empty() || !in_word(kernel.name[0])) return failure("PTX: .entry without a name");
    kernel.layout_known = true;
    if (at_.skip("(") && !at_.skip(")")) {
      do {
        if (!at_.skip(".param")) return failure("PTX: parameter of " + kernel.name + " without .param");
        const declaration d = read_declaration({});
        if (!d.known) {
          kernel.layout_known = false;
        } else if (!add_parameter(kernel, d)) {
          return failure("PTX: parameters of " + kernel.name + " exceed 32764 bytes");
        }
      } while (at_.skip(","));
      if (!at_.skip(")")) return failure("PTX: damaged parameter list of " + kernel.name);
    }
    if (!kernel.layout_known) kernel.parameters.clear(), kernel.parameter_bytes = 0;
    std::int32_t bound[3] = {};
    while (!at_.at_end() && !at_.is("{") && !at_.is(";")) read_directive(kernel, bound);
    if (at_.skip(";")) return {};  // a declaration only
    at_.skip_brackets("{", "}");
    const std::int64_t threads = std::int64_t{bound[0]} * bound[1] * bound[2];
    if (threads > 0 && threads <= 1024) kernel.max_threads = static_cast<std::int32_t>(threads);
    table_.kernels.push_back(std::move(kernel));
    return {};
  }

  static bool add_parameter(kernel_info& kernel, const declaration& d) {
    const std::uint64_t alignment = std::max<std::uint32_t>(d.alignment, 1);
    const std::uint64_t offset = (kernel.parameter_bytes + alignment - 1) / alignment * alignment;
    if (d.bytes == 0 || d.bytes > max_parameter_bytes || offset + d.bytes > max_parameter_bytes) return false;
    kernel.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(d.bytes)});
    kernel.parameter_bytes = static_cast<std::uint32_t>(offset + d.bytes);
    return true;
  }

  void read_directive(kernel_info& kernel, std::int32_t (&bound)[3]) {
    const std::string_view word = at_.take();
    if (word == ".maxntid") {
      read_three(bound);
    } else if (word == ".reqntid") {
      read_three(kernel.required_block);
    } else if (word == ".reqnctapercluster") {
      read_three(kernel.required_cluster);
    } else if (word == ".explicitcluster") {
      kernel.explicit_cluster = true;
    } else if (word == ".maxclusterrank") {
      std::int32_t three[3] = {};
      read_three(three);
      kernel.max_cluster_rank = three[0];
    }
  }

  /// One to three numbers; what is missing is 1.
  void read_three(std::int32_t (&to)[3]) {
    to[0] = to[1] = to[2] = 1;
    for (std::int32_t& value : to) {
      const auto n = number(at_.take());
      value = n && *n <= 0xffff ? static_cast<std::int32_t>(*n) : 0;
      if (!at_.skip(",")) return;
    }
  }

  scanner at_;
  kernel_table table_;
  std::int32_t capability_ = -1;
};

}  // namespace

result<kernel_table> parse_ptx(std::string_view text) {
  auto table = module_scan(text).run();
  // The name under which compilers call the device's printf.
  if (table) table->prints = text.find("vprintf") != std::string_view::npos;
  if (table) table->allocates = text.find("malloc") != std::string_view::npos;
  return table;
}

}  // namespace outboard::marshal
