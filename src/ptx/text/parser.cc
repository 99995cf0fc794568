#include "ptx/text/parser.hh"

#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "ptx/text/declarations.hh"
#include "ptx/text/module.hh"

namespace outboard::ptx {
namespace {

constexpr std::size_t max_scopes = 64, max_parts = 1024;
constexpr std::int32_t max_registers_declared = 1 << 20;
constexpr std::size_t max_statement_shown = 160;

struct symbol_entry {
  enum { single, range, local } kind = single;
  std::int32_t index = 0, count = 0;
};

struct scope {
  std::size_t first_pending = 0;  // what is pending from here on was met inside
  std::unordered_map<std::string_view, symbol_entry> names;
  std::unordered_map<std::string_view, std::int32_t> labels;
};

/// A branch to a label whose scope is still open.
struct pending_label {
  std::size_t statement;
  std::string_view name;
  std::uint32_t line;
};

struct pending_table {
  std::string_view table;
  std::vector<std::string_view> labels;
  std::uint32_t line;
};

class parser : declaration_parser {
 public:
  explicit parser(std::shared_ptr<const std::string> text)
      : declaration_parser(*text), tree_(std::make_unique<program>()) {
    tree_->text = std::move(text);
  }

  result<std::unique_ptr<program>> run() {
    advance();
    while (ok_ && now_.kind != token_kind::end) top_level();
    if (ok_ && tree_->version == 0) fail("no .version directive");
    if (!ok_ && tree_->version > newest_version) return error{action::fall_back, message_};
    if (!ok_) return failure(message_);
    return std::move(tree_);
  }

 private:
  static constexpr int newest_version = 90;  // what CUDA 13.0 emits, the version that the cpu device reports

  // ---- module level
  void top_level() {
    if (accept_directive("version")) return version();
    if (accept_directive("target")) return target();
    if (accept_directive("address_size")) {
      if (expect_integer(64) != 64) fail("only .address_size 64 is supported");
      return;
    }
    if (is_directive("file") || is_directive("loc")) return skip_line();
    if (accept_directive("section")) return section();
    if (accept_directive("pragma")) return skip_to_semicolon();
    if (accept_directive("alias")) {
      const auto alias = expect_name();
      expect(',');
      tree_->aliases[alias] = expect_name();
      return expect(';');
    }
    if (accept(';')) return;
    declaration();
  }

  void version() {
    const auto text = now_.text;
    if (tree_->version != 0) return fail(".version is given twice");
    if (now_.kind != token_kind::real || text.size() < 3) return fail("malformed .version");
    const auto dot = text.find('.');
    if (dot == std::string_view::npos || dot > 2 || text.size() - dot != 2) return fail("malformed .version");
    for (char c : text.substr(0, dot)) tree_->version = tree_->version * 10 + (c - '0');
    tree_->version = tree_->version * 10 + (text[dot + 1] - '0');
    if (tree_->version > newest_version) return fail("PTX " + std::string(text) + " is newer than 9.0");
    advance();
  }

  void target() {
    do {
      const auto name = expect_name();
      if (name.substr(0, 3) == "sm_") {
        int number = 0;
        std::size_t n = 3;
        for (; n < name.size() && name[n] >= '0' && name[n] <= '9' && number < 1000; ++n)
          number = number * 10 + (name[n] - '0');
        if (!is_target(number) ||
            (n < name.size() && (n + 1 < name.size() || (name[n] != 'a' && name[n] != 'f'))))
          return fail("there is no target " + std::string(name));
        tree_->target = number;
      }  // texmode_independent (OpenCL), debug: no difference but to textures by name
    } while (accept(','));
  }

  void section() {
    while (ok_ && now_.kind != token_kind::end && !is('{')) advance();
    std::size_t depth = 0;
    do {
      if (is('{')) ++depth;
      if (is('}')) --depth;
      if (now_.kind == token_kind::end) return fail(".section without end");
      advance();
    } while (ok_ && depth > 0);
  }

  void declaration() {
    linkage link = linkage::internal;
    while (true) {
      if (accept_directive("visible")) {
        link = linkage::visible;
      } else if (accept_directive("extern")) {
        link = linkage::external;
      } else if (accept_directive("weak")) {
        link = linkage::weak;
      } else if (accept_directive("common")) {
        link = linkage::common;
      } else {
        break;
      }
    }
    if (accept_directive("entry")) return parse_function(link, true);
    if (accept_directive("func")) return parse_function(link, false);
    std::vector<variable> list;
    const auto where = state_space();
    if (where != space::global && where != space::constant && where != space::shared) {
      return fail("unexpected '" + std::string(now_.text) + "' at module level");
    }
    variables(where, link, list);
    for (auto& v : list) tree_->variables.push_back(std::move(v));
  }

  // ---- functions
  void parameter_list(std::vector<variable>& out) {
    if (!accept('(')) return;
    if (accept(')')) return;
    do {
      const auto where = state_space();
      if (where != space::param && where != space::reg) return fail("expected .param");
      const auto d = type_prefix();
      variable v;
      if (now_.kind == token_kind::name) {
        v = declarator(d, where, linkage::internal);
      } else {
        return fail("expected a parameter name");
      }
      if (v.size == 0 && ok_) v.size = v.kind == type::pred ? 1 : 0;
      out.push_back(std::move(v));
      if (out.size() > max_parts * 8) return fail("more than 8192 parameters");
    } while (ok_ && accept(','));
    expect(')');
  }

  void triple(std::uint32_t (&out)[3]) {
    out[0] = out[1] = out[2] = 1;
    for (int n = 0; n < 3; ++n) {
      out[n] = static_cast<std::uint32_t>(expect_integer(1 << 20));
      if (!accept(',')) break;
    }
  }

  void parse_function(linkage link, bool kernel) {
    function f;
    f.kernel = kernel, f.link = link, f.line = now_.line;
    parameter_list(f.returns);
    f.name = expect_name();
    parameter_list(f.parameters);
    while (ok_ && !is('{') && !is(';')) {
      if (accept_directive("maxntid")) {
        triple(f.max_block);
      } else if (accept_directive("reqntid")) {
        triple(f.required_block);
      } else if (accept_directive("minnctapersm")) {
        f.min_blocks = static_cast<std::uint32_t>(expect_integer(1024));
      } else if (accept_directive("maxnctapersm")) {
        expect_integer(1024);
      } else if (accept_directive("maxnreg")) {
        f.max_registers = static_cast<std::uint32_t>(expect_integer(1024));
      } else if (accept_directive("reqnctapercluster")) {
        std::uint32_t blocks[3];
        triple(blocks);
        if (ok_ && (blocks[0] != 1 || blocks[1] != 1 || blocks[2] != 1))
          return fail(".reqnctapercluster of more than one block is not supported");
      } else if (accept_directive("explicitcluster") || accept_directive("blocksareclusters")) {
        // every launch is one of clusters of one block
      } else if (accept_directive("maxclusterrank") || accept_directive("abi_preserve") ||
                 accept_directive("abi_preserve_control")) {
        expect_integer(1 << 20);
      } else if (accept_directive("noreturn")) {
        f.noreturn = true;
      } else if (accept_directive("unified")) {
        expect('('), skip_to_close();
      } else if (is_directive("pragma")) {
        advance(), skip_to_semicolon();
      } else {
        return fail("unsupported function directive '" + std::string(now_.text) + "'");
      }
    }
    if (!ok_) return;
    if (is('{')) {
      f.defined = true;
      body(f);
    } else {
      expect(';');
    }
    f.target = tree_->target;
    if (ok_) tree_->functions.push_back(std::move(f));
  }

  void skip_to_close() {
    while (ok_ && now_.kind != token_kind::end && !is(')')) advance();
    expect(')');
  }

  std::int32_t new_registers(function& f, type kind, std::uint64_t count) {
    const auto first = f.register_count;
    if (count > static_cast<std::uint64_t>(max_registers_declared - first)) {
      return fail("more than " + std::to_string(max_registers_declared) + " registers"), 0;
    }
    f.register_count += static_cast<std::int32_t>(count);
    f.registers.push_back({kind, first, static_cast<std::int32_t>(count)});
    return first;
  }

  void body(function& f) {
    scopes_.clear(), pending_.clear(), tables_.clear();
    scopes_.emplace_back();
    const auto enter = [&](const variable& v) {
      f.variables.push_back(v);
      auto& mine = f.variables.back();
      if (v.where == space::reg) {
        mine.reg = new_registers(f, v.kind, 1);
        scopes_[0].names[v.name] = {symbol_entry::single, mine.reg, 1};
      } else {
        scopes_[0].names[v.name] = {symbol_entry::local, static_cast<std::int32_t>(f.variables.size() - 1),
                                    1};
      }
    };
    for (const auto& v : f.returns) enter(v);
    for (const auto& v : f.parameters) enter(v);
    expect('{');
    while (ok_ && !scopes_.empty()) {
      if (now_.kind == token_kind::end) return fail("function " + std::string(f.name) + " has no end");
      if (accept('{')) {
        if (scopes_.size() == max_scopes) return fail("blocks are nested more than 64 deep");
        scopes_.emplace_back();
        scopes_.back().first_pending = pending_.size();
      } else if (is('}')) {
        close_scope(f);
        advance();
      } else {
        statement(f);
      }
    }
  }

  void close_scope(function& f) {
    const std::size_t depth = scopes_.size() - 1;
    const auto& labels = scopes_.back().labels;
    auto kept = pending_.begin() + static_cast<std::ptrdiff_t>(scopes_.back().first_pending);
    for (auto p = kept; p != pending_.end(); ++p) {
      const auto found = labels.find(p->name);
      if (found == labels.end()) {
        if (depth == 0) return fail_at(p->line, "label " + std::string(p->name) + " is not defined");
        *kept++ = *p;
        continue;
      }
      for (auto& o : f.body[p->statement].operands) {
        if (o.kind == operand_kind::label && o.index < 0 && o.name == p->name) o.index = found->second;
      }
    }
    pending_.erase(kept, pending_.end());
    if (depth == 0) {
      for (const auto& t : tables_) {
        auto& targets = f.branch_tables[t.table];
        for (const auto name : t.labels) {
          const auto found = labels.find(name);
          if (found == labels.end()) return fail_at(t.line, "label " + std::string(name) + " is not defined");
          targets.push_back(found->second);
        }
      }
    }
    scopes_.pop_back();
  }

  void statement(function& f) {
    if (accept(';')) return;
    if (now_.kind == token_kind::directive) return directive(f);
    instruction i;
    i.line = now_.line;
    if (accept('@')) {
      i.guard_negated = accept('!');
      const auto name = expect_name();
      const auto o = resolve(name);
      if (o.kind != operand_kind::reg) return fail("guard " + std::string(name) + " is no register");
      i.guard = o.index;
    }
    const char* start = now_.text.data();
    const auto line = now_.line;
    const auto opcode = expect_name();
    if (!ok_) return;
    if (i.guard < 0 && accept(':')) return label(f, opcode, line);
    i.line = line;
    std::size_t at = 0;
    for (bool first = true; at <= opcode.size(); first = false) {
      const auto dot = std::min(opcode.find('.', at), opcode.size());
      if (first) {
        i.name = opcode.substr(at, dot - at);
      } else {
        i.modifiers.push_back(opcode.substr(at, dot - at));
      }
      at = dot + 1;
    }
    const bool branch = i.name == "bra";
    if (!is(';')) {
      do {
        i.operands.push_back(parse_operand(f, 0, branch));
        if (i.operands.size() > 16) return fail("more than 16 operands");
      } while (ok_ && accept(','));
    }
    const char* end = before_end_;
    if (ok_) i.text = {start, static_cast<std::size_t>(end - start)};
    if (ok_ && !is(';')) {
      return fail("expected ';', found '" + std::string(now_.text) +
                  "' in: " + std::string(i.text.substr(0, max_statement_shown)));
    }
    expect(';');
    if (!ok_) return;
    for (auto& o : i.operands) {
      if (o.kind != operand_kind::label) continue;
      pending_.push_back({f.body.size(), o.name, i.line});
    }
    f.body.push_back(std::move(i));
  }

  void label(function& f, std::string_view name, std::uint32_t line) {
    if (accept_directive("callprototype")) {
      prototype p;
      parameter_list(p.returns);
      if (now_.kind == token_kind::name) advance();  // _
      parameter_list(p.parameters);
      while (ok_ && now_.kind == token_kind::directive) advance();
      expect(';');
      f.prototypes[name] = std::move(p);
      return;
    }
    if (accept_directive("branchtargets")) {
      pending_table t{name, {}, line};
      do {
        t.labels.push_back(expect_name());
      } while (ok_ && accept(','));
      expect(';');
      tables_.push_back(std::move(t));
      return;
    }
    if (accept_directive("calltargets")) return skip_to_semicolon();
    const auto here = static_cast<std::int32_t>(f.body.size());
    if (!scopes_.back().labels.emplace(name, here).second) {
      fail_at(line, "label " + std::string(name) + " is defined twice");
    }
  }

  void directive(function& f) {
    if (is_directive("loc") || is_directive("file")) return skip_line();
    if (accept_directive("pragma")) return skip_to_semicolon();
    const linkage link = accept_directive("extern") ? linkage::external : linkage::internal;
    const auto where = state_space();
    if (where == space::reg) return registers(f);
    if (where != space::shared && where != space::local && where != space::param) {
      return fail("unsupported directive ." + std::string(now_.text) + " in a function");
    }
    std::vector<variable> list;
    variables(where, link, list);
    if (!ok_) return;
    for (auto& v : list) {
      scopes_.back().names[v.name] = {symbol_entry::local, static_cast<std::int32_t>(f.variables.size()), 1};
      f.variables.push_back(std::move(v));
    }
  }

  void registers(function& f) {
    const auto d = type_prefix();
    if (d.lanes != 1) return fail("vector registers are not supported");
    do {
      const auto name = expect_name();
      if (accept('<')) {
        const auto count = expect_integer(max_registers_declared);
        expect('>');
        scopes_.back().names[name] = {symbol_entry::range, new_registers(f, d.kind, count),
                                      static_cast<std::int32_t>(count)};
      } else {
        scopes_.back().names[name] = {symbol_entry::single, new_registers(f, d.kind, 1), 1};
      }
    } while (ok_ && accept(','));
    expect(';');
  }

  // ---- operands
  operand resolve(std::string_view name) {
    operand o;
    o.name = name;
    std::size_t stem = name.size();
    std::uint64_t number = 0, scale = 1;
    while (stem > 1 && name.size() - stem < 9 && name[stem - 1] >= '0' && name[stem - 1] <= '9') {
      number += scale * static_cast<std::uint64_t>(name[--stem] - '0');
      scale *= 10;
    }
    // %r01 is no member of a range, %r0 is; a stem may itself end in digits (%r1<4>: %r13).
    for (auto level = scopes_.rbegin(); level != scopes_.rend(); ++level) {
      if (const auto found = level->names.find(name); found != level->names.end()) {
        if (found->second.kind == symbol_entry::range) continue;
        o.kind = found->second.kind == symbol_entry::local ? operand_kind::local : operand_kind::reg;
        o.index = found->second.index;
        return o;
      }
      std::uint64_t index = number, weight = scale;
      for (std::size_t cut = stem; cut < name.size(); ++cut) {
        if (name[cut] != '0' || cut + 1 == name.size()) {
          const auto found = level->names.find(name.substr(0, cut));
          if (found != level->names.end() && found->second.kind == symbol_entry::range &&
              index < static_cast<std::uint64_t>(found->second.count)) {
            o.kind = operand_kind::reg;
            o.index = found->second.index + static_cast<std::int32_t>(index);
            return o;
          }
        }
        weight /= 10;
        index %= weight ? weight : 1;
      }
    }
    o.kind = name.starts_with('%') || name == "WARP_SZ" ? operand_kind::special : operand_kind::symbol;
    return o;
  }

  operand parse_operand(function& f, std::size_t depth, bool branch) {
    operand o = simple_operand(f, depth, branch);
    if (ok_ && depth < max_nesting && is('|')) {
      advance();
      operand both;
      both.kind = operand_kind::pair;
      both.parts.push_back(std::move(o));
      both.parts.push_back(simple_operand(f, depth + 1, false));
      return both;
    }
    return o;
  }

  operand simple_operand(function& f, std::size_t depth, bool branch) {
    operand o;
    if (depth > max_nesting) return fail("operands are nested too deeply"), o;
    if (accept('!')) {
      o = simple_operand(f, depth + 1, false);
      o.negated = true;
      return o;
    }
    if (is('{') || is('(')) {
      const char close = is('{') ? '}' : ')';
      advance();
      o.kind = operand_kind::list;
      if (accept(close)) return o;
      do {
        o.parts.push_back(parse_operand(f, depth + 1, false));
        if (o.parts.size() > max_parts) fail("more than 1024 operands in a list");
      } while (ok_ && accept(','));
      expect(close);
      return o;
    }
    if (accept('[')) {
      o = simple_operand(f, depth + 1, false);
      if (o.kind == operand_kind::list || o.kind == operand_kind::address || o.kind == operand_kind::real ||
          o.negated || !o.selector.empty()) {
        return fail("unsupported address"), o;
      }
      o.base = o.kind;
      o.kind = operand_kind::address;
      // [texture, {coordinates}]
      while (ok_ && accept(',')) {
        if (o.parts.size() == 2) return fail("unsupported address"), o;
        o.parts.push_back(parse_operand(f, depth + 1, false));
      }
      expect(']');
      return o;
    }
    if (accept('-')) {
      if (now_.kind != token_kind::name) return literal(true);
      o = simple_operand(f, depth + 1, false);  // vmad d, a, -b, c
      o.negated = !o.negated;
      return o;
    }
    if (is('+') || is('~') || now_.kind == token_kind::integer || now_.kind == token_kind::real) {
      return literal();
    }
    return named_operand(branch);
  }

  /// A register, symbol or label, with the part or the offset behind it.
  operand named_operand(bool branch) {
    operand o;
    const auto name = expect_name();
    if (!ok_) return o;
    if (name == "_") {
      o.kind = operand_kind::sink;
      return o;
    }
    o = resolve(name);
    // %r1.b0 of video instructions: the lexer takes the dot for a part of the name.
    const auto dot = name.find('.');
    if ((o.kind == operand_kind::special || o.kind == operand_kind::symbol) &&
        dot != std::string_view::npos) {
      if (auto whole = resolve(name.substr(0, dot)); whole.kind == operand_kind::reg) {
        o = std::move(whole);
        o.selector = name.substr(dot + 1);
      }
    }
    if (branch && o.kind == operand_kind::symbol) o.kind = operand_kind::label;
    while (ok_ && (is('+') || is('-'))) {
      const bool minus = is('-');
      advance();
      const operand n = literal();
      if (ok_ && n.kind != operand_kind::integer) return fail("expected an integer offset"), o;
      o.value = static_cast<std::int64_t>(
          minus ? static_cast<std::uint64_t>(o.value) - static_cast<std::uint64_t>(n.value)
                : static_cast<std::uint64_t>(o.value) + static_cast<std::uint64_t>(n.value));
    }
    return o;
  }

  std::unique_ptr<program> tree_;
  std::vector<scope> scopes_;
  std::vector<pending_label> pending_;
  std::vector<pending_table> tables_;
};

}  // namespace

type function::register_type(std::int32_t index) const {
  std::size_t low = 0, high = registers.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (registers[middle].first <= index ? low : high) = middle;
  }
  return low < registers.size() ? registers[low].kind : type::none;
}

const function* program::find_function(std::string_view name) const {
  const function* declared = nullptr;
  if (const auto alias = aliases.find(name); alias != aliases.end()) name = alias->second;
  for (const auto& f : functions) {
    if (f.name != name) continue;
    if (f.defined) return &f;
    declared = &f;
  }
  return declared;
}

const variable* program::find_variable(std::string_view name) const {
  const variable* declared = nullptr;
  for (const auto& v : variables) {
    if (v.name != name) continue;
    if (v.link != linkage::external || v.where == space::shared) return &v;
    declared = &v;
  }
  return declared;
}

result<std::unique_ptr<program>> parse_program(std::shared_ptr<const std::string> text) {
  return parser(std::move(text)).run();
}

}  // namespace outboard::ptx
