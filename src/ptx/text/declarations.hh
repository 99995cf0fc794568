// Declarations of variables with their types, sizes and initial values. Base of the parser; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/text/cursor.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx {

class declaration_parser : protected token_cursor {
 protected:
  static constexpr std::size_t max_nesting = 4;
  static constexpr std::uint64_t max_variable_bytes = std::uint64_t{1} << 36;

  using token_cursor::token_cursor;

  /// Consumes .global, .shared ...; space::generic when there is none.
  space state_space() {
    if (accept_directive("global")) return space::global;
    if (accept_directive("const")) return space::constant;
    if (accept_directive("shared")) return space::shared;
    if (accept_directive("local")) return space::local;
    if (accept_directive("param")) return space::param;
    if (accept_directive("reg")) return space::reg;
    return space::generic;
  }

  struct declared_type {
    type kind = type::none;
    std::uint32_t lanes = 1, align = 0;
    bool managed = false;
  };

  declared_type type_prefix() {
    declared_type d;
    while (ok_ && now_.kind == token_kind::directive) {
      if (accept_directive("align")) {
        d.align = static_cast<std::uint32_t>(expect_integer(4096));
        if (!std::has_single_bit(d.align))
          fail("alignment " + std::to_string(d.align) + " is no power of two");
      } else if (accept_directive("v2")) {
        d.lanes = 2;
      } else if (accept_directive("v4")) {
        d.lanes = 4;
      } else if (accept_directive("attribute")) {
        expect('(');
        do {
          if (accept_directive("managed")) {
            d.managed = true;
          } else if (accept_directive("unified")) {  // an identity across modules, no property of the memory
            expect('('), expect_integer(~std::uint64_t{0}), expect(','), expect_integer(~std::uint64_t{0});
            expect(')');
          } else {
            fail("unsupported attribute ." + std::string(now_.text));
          }
        } while (ok_ && accept(','));
        expect(')');
      } else if (accept_directive("ptr")) {
        // What the pointer leads to; the parameter itself is aligned as its type.
        state_space();
        if (accept_directive("align")) expect_integer(4096);
      } else if (d.kind == type::none && type_of(now_.text) != type::none) {
        d.kind = type_of(now_.text);
        advance();
      } else {
        fail("unsupported type or directive ." + std::string(now_.text));
      }
    }
    if (ok_ && d.kind == type::none) fail("expected a type, found '" + std::string(now_.text) + "'");
    return d;
  }

  /// name, name[3][4], name[]; fills name, size and align.
  variable declarator(const declared_type& d, space where, linkage link) {
    variable v;
    v.where = where, v.link = link, v.kind = d.kind, v.managed = d.managed, v.line = now_.line;
    v.name = expect_name();
    std::uint64_t size = std::uint64_t{size_of(d.kind)} * d.lanes;
    v.align = d.align ? d.align : static_cast<std::uint32_t>(size);
    while (ok_ && accept('[')) {
      std::uint64_t bound = 0;
      if (!is(']')) bound = expect_integer(max_variable_bytes);
      expect(']');
      if (__builtin_mul_overflow(size, bound, &size) || size > max_variable_bytes) {
        fail(std::string(v.name) + " is larger than the limit of " + std::to_string(max_variable_bytes) +
             " bytes");
      }
    }
    v.size = size;
    return v;
  }

  void variables(space where, linkage link, std::vector<variable>& out) {
    const auto d = type_prefix();
    do {
      variable v = declarator(d, where, link);
      if (ok_ && accept('=')) {
        std::uint64_t at = 0;
        initial_values(v, size_of(d.kind), is_float(d.kind), at, 0);
        if (v.size == 0) v.size = at;
        if (at > v.size) fail("too many initial values for " + std::string(v.name));
      }
      if (!ok_) return;
      out.push_back(std::move(v));
    } while (accept(','));
    expect(';');
  }

  void initial_values(variable& v, std::uint32_t width, bool real, std::uint64_t& at, std::size_t depth) {
    if (depth > max_nesting) return fail("initial values are nested too deeply");
    if (accept('{')) {
      if (accept('}')) return;
      do {
        initial_values(v, width, real, at, depth + 1);
      } while (ok_ && accept(','));
      return expect('}');
    }
    initial_value(v, width, real, at);
    at += width;
  }

  void initial_value(variable& v, std::uint32_t width, bool real, std::uint64_t at) {
    std::uint64_t bits = 0;
    const bool minus = accept('-');
    if (now_.kind == token_kind::real) {
      bits = real_bits(now_, width, minus);
      advance();
    } else if (now_.kind == token_kind::integer) {
      const auto number = now_.value;
      advance();
      if (is('(')) return symbol_address(v, width, at, number);
      bits = minus ? 0 - number : number;
      if (real)
        bits = real_bits_of(minus ? -static_cast<double>(number) : static_cast<double>(number), width);
    } else if (now_.kind == token_kind::name && !minus) {
      return symbol_address(v, width, at, 0);
    } else {
      return fail("expected an initial value, found '" + std::string(now_.text) + "'");
    }
    if (width > 8) width = 8;
    if (v.initial.size() < at + width) v.initial.resize(at + width);
    std::memcpy(v.initial.data() + at, &bits, width);
  }

  /// sym, sym+4, generic(sym)+4, 0xff00(generic(sym))
  void symbol_address(variable& v, std::uint32_t width, std::uint64_t at, std::uint64_t mask) {
    relocation r;
    r.offset = at, r.size = width;
    std::size_t open = 0;
    if (mask) {
      r.shift = static_cast<std::uint32_t>(std::countr_zero(mask));
      expect('('), ++open;
    }
    auto name = expect_name();
    if (name == "generic" && accept('(')) name = expect_name(), ++open;
    r.symbol = name;
    const auto addend = [&] {
      if (is('+') || is('-')) {
        const bool minus = is('-');
        advance();
        const auto value = static_cast<std::int64_t>(expect_integer(std::uint64_t{1} << 40));
        r.addend += minus ? -value : value;
      }
    };
    addend();
    for (; open > 0 && ok_; --open) expect(')'), addend();
    if (width > 8) fail("an address does not fit this type");
    if (v.initial.size() < at + width) v.initial.resize(at + width);
    v.relocations.push_back(r);
  }

  static std::uint64_t real_bits_of(double value, std::uint32_t width) {
    if (width == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return std::bit_cast<std::uint64_t>(value);
  }
  static std::uint64_t real_bits(const token& t, std::uint32_t width, bool minus) {
    if (t.single) {
      const auto bits = static_cast<std::uint32_t>(t.value) ^ (minus ? 0x80000000u : 0u);
      return width == 8 ? std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)))
                        : bits;
    }
    const double value = std::bit_cast<double>(t.value);
    return real_bits_of(minus ? -value : value, width);
  }
};

}  // namespace outboard::ptx
