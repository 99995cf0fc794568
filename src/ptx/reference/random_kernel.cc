#include "ptx/reference/random_kernel.hh"

#include "ptx/reference/random_tables.hh"

namespace outboard::ptx::reference {
namespace {

class writer {
 public:
  explicit writer(std::uint64_t seed) : state_(seed * 2654435761u + 88172645463325252u) {}

  random_kernel whole() {
    random_kernel k;
    static constexpr std::uint32_t sizes[] = {1, 7, 32, 32, 40, 64, 64, 96};
    k.block = {sizes[below(8)], 1, 1};
    if (below(4) == 0) k.block = {8, 4, 2};
    k.grid = {1 + below(3), 1, 1};
    threads_ = k.block[0] * k.block[1] * k.block[2];
    whole_warps_ = threads_ % 32 == 0;
    functions_ = below(3);
    std::string functions;
    for (unsigned n = 0; n < functions_; ++n) functions += function(n);
    k.text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 slots[1024];\n.shared .align 8 "
        ".b8 totals[64];\n" +
        functions + kernel();
    return k;
  }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1d;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((next() >> 33) % n); }
  template <class T, std::size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }
  std::string number(std::uint64_t v) { return std::to_string(v); }

  std::string any(char kind) {
    for (const auto& p : pools) {
      if (p.kind == kind) return kind + number(below(p.count));
    }
    return "";
  }
  std::string hexadecimal(std::uint64_t v, int digits) {
    std::string s;
    for (int n = digits - 1; n >= 0; --n) s += "0123456789ABCDEF"[v >> (4 * n) & 15];
    return s;
  }
  std::string constant(char kind) {
    static constexpr std::uint32_t singles[] = {0x3f800000, 0xbf000000, 0,          0x80000000,
                                                0x7f800000, 0x00000001, 0x7f7fffff, 0x40490fdb};
    static constexpr std::uint64_t doubles[] = {
        0x3ff0000000000000, 0x3fe0000000000000, 0, 0x7ff0000000000000, 1, 0xc008000000000000};
    static constexpr std::uint32_t words[] = {0, 1, 2, 7, 31, 32, 255, 0x7fffffff};
    if (kind == 'f') return "0f" + hexadecimal(one_of(singles), 8);
    if (kind == 'g') return "0d" + hexadecimal(one_of(doubles), 16);
    return below(2) ? number(one_of(words) & (kind == 'h' ? 0x7fff : ~0u)) : number(below(30000));
  }
  /// A register to read, or occasionally a constant.
  std::string source(char kind) {
    if (kind != 'p' && below(6) == 0) return constant(kind);
    return (kind == 'p' && below(4) == 0 ? "!" : "") + any(kind);
  }
  std::string guard() {
    return below(5) == 0 ? std::string("@") + (below(2) ? "!" : "") + any('p') + " " : "";
  }

  /// Replaces a NaN by the canonical one, because the ISA leaves its bits open.
  std::string plain_nan(const std::string& d) {
    const bool wide = d[0] == 'g';
    const std::string t = wide ? "f64" : "f32";
    return "testp.notanumber." + t + " px, " + d + ";\nselp." + t + " " + d + ", " +
           (wide ? "0d7FF8000000000000" : "0f7FC00000") + ", " + d + ", px;\n";
  }

  std::string arithmetic() {
    const shape& s = one_of(shapes);
    const std::string opcode = s.opcode, kinds = s.operands;
    const bool divides = (opcode.substr(0, 4) == "div." || opcode.substr(0, 4) == "rem.") &&
                         kinds[0] != 'f' && kinds[0] != 'g';
    const std::string d = any(kinds[0]);
    std::string before, line = guard() + opcode + " " + d;
    for (std::size_t n = 1; n < kinds.size(); ++n) {
      if (divides && n == 2) {
        before = "or.b" +
                 std::string(kinds[0] == 'r'   ? "32"
                             : kinds[0] == 'w' ? "64"
                                               : "16") +
                 " " + kinds[0] + "x, " + any(kinds[0]) + ", 1;\n";
        line += std::string(", ") + kinds[0] + "x";
      } else {
        line += ", " + (opcode == "not.pred" || kinds[n] == 'p' ? any(kinds[n]) : source(kinds[n]));
      }
    }
    return before + line + ";\n" + (kinds[0] == 'f' || kinds[0] == 'g' ? plain_nan(d) : "");
  }

  std::string comparison() {
    const compared_type& t = one_of(compared_types);
    const bool real = t.kind == 'f' || t.kind == 'g';
    const std::string how = real ? one_of(real_relations) : one_of(integer_relations);
    static const char* const combinations[] = {"", "", "and.", "or.", "xor."};
    const std::string combined = one_of(combinations);
    const unsigned first = below(4), second = (first + 1 + below(3)) % 4;
    const std::string d = "p" + number(first) + (below(3) == 0 ? "|p" + number(second) : "");
    return guard() + "setp." + how + "." + combined + t.name + " " + d + ", " + any(t.kind) + ", " +
           source(t.kind) + (combined.empty() ? "" : ", " + std::string(below(3) ? "" : "!") + any('p')) +
           ";\n";
  }

  std::string carries() {
    const bool sub = below(2);
    const std::string op = sub ? "sub" : "add", t = below(2) ? "u32" : "s32";
    return op + ".cc." + t + " " + any('r') + ", " + any('r') + ", " + any('r') + ";\n" + op + "c.cc." + t +
           " " + any('r') + ", " + any('r') + ", " + any('r') + ";\naddc.u32 " + any('r') + ", " + any('r') +
           ", 0;\n";
  }

  std::string packing() {
    switch (below(4)) {
      case 0:
        return "mov.b64 " + any('w') + ", {" + any('r') + ", " + any('r') + "};\n";
      case 1:
        return "mov.b64 {r0, r1}, " + any('w') + ";\n";
      case 2:
        return "mov.b32 " + any('r') + ", {" + any('h') + ", " + any('h') + "};\n";
      default:
        return "mov.b32 {h0, h1}, " + any('r') + ";\n";
    }
  }

  std::string lookup() {
    return "lop3.b32 " + any('r') + ", " + any('r') + ", " + any('r') + ", " + any('r') + ", " +
           number(below(256)) + ";\n";
  }

  /// An address in this thread's own bytes: the input, which is read-only, or `mine`, which is local.
  std::string access() {
    static const char* const narrow[] = {"u8", "s8", "u16", "s16"};
    static const char* const words[] = {"u32", "s32", "b32"};
    const bool local = below(2) && !in_function_;
    const std::string base = local ? "wm" : "win", space = local ? "local." : "global.";
    const auto place = [&](unsigned size) {
      return "and.b32 rx, " + any('r') + ", " + number((local ? 63 : 255) & ~(size - 1)) +
             ";\ncvt.u64.u32 wx, rx;\nadd.u64 wx, wx, " + base + ";\n";
    };
    if (in_function_) return lookup();
    if (local && below(2)) {
      switch (below(4)) {
        case 0:
          return place(4) + guard() + "st.local.b32 [wx], " + any('r') + ";\n";
        case 1:
          return place(8) + guard() + "st.local.b64 [wx], " + any('w') + ";\n";
        case 2:
          return place(2) + guard() + "st.local.b16 [wx], " + any('h') + ";\n";
        default:
          return place(8) + guard() + "st.local.v2.b32 [wx], {" + any('r') + ", " + any('r') + "};\n";
      }
    }
    switch (below(5)) {
      case 0:
        return place(2) + guard() + "ld." + space + one_of(narrow) + " " + any('r') + ", [wx];\n";
      case 1:
        return place(4) + guard() + "ld." + space + one_of(words) + " " + any('r') + ", [wx];\n";
      case 2:
        return place(8) + "ld." + space + "b64 " + any('w') + ", [wx];\n";
      case 3:
        return place(16) + "ld." + space + "v4.b32 {r1, r2, r3, r4}, [wx];\n";
      default:
        return place(2) + "ld." + space + "s16 " + any('h') + ", [wx];\n";
    }
  }

  std::string updates() {
    if (in_function_) return lookup();
    if (below(2)) {
      const std::uint32_t n = below(8);
      const std::string op = sum_updates[n], kind = op.find("64") == std::string::npos ? "r" : "w";
      const bool shared = below(2);
      const std::string place = shared ? "[totals+" + number(n * 8) + "]" : "[wsums+" + number(n * 8) + "]";
      return guard() + "red." + (shared ? "shared." : "global.") + op + " " + place + ", " + any(kind[0]) +
             ";\n";
    }
    const std::string op = one_of(own_updates), kind = op.find("64") == std::string::npos ? "r" : "w";
    if (below(4) == 0)
      return guard() + "atom.global.cas.b32 " + any('r') + ", [wout+456], " + any('r') + ", " + any('r') +
             ";\n";
    return guard() + "atom.global." + op + " " + any(kind[0]) + ", [wout+" + (kind == "r" ? "448" : "464") +
           "], " + any(kind[0]) + ";\n";
  }

  std::string call() {
    if (functions_ == 0 || in_function_) return arithmetic();
    const std::string n = number(below(functions_));
    return "{\n.param .b32 x;\n.param .b64 y;\n.param .f32 z;\n.param .align 8 .b8 "
           "results[16];\nst.param.b32 [x], " +
           any('r') + ";\nst.param.b64 [y], " + any('w') + ";\nst.param.f32 [z], " + any('f') +
           ";\ncall.uni (results), function" + n + ", (x, y, z);\nld.param.b32 " + any('r') +
           ", [results];\nld.param.b64 " + any('w') + ", [results+8];\n}\n";
  }

  /// Exchanges values through shared memory: each thread writes a slot, waits at a barrier, reads another's
  /// slot, and waits again.
  std::string exchange() {
    return "mov.u32 rx, slots;\nmad.lo.u32 rx, rt, 8, rx;\nst.shared.b64 [rx], " + any('w') +
           ";\nbar.sync 0;\nadd.u32 rx, rt, " + number(1 + below(threads_)) + ";\nrem.u32 rx, rx, " +
           number(threads_) + ";\nmov.u32 ry, slots;\nmad.lo.u32 rx, rx, 8, ry;\nld.shared.b64 " + any('w') +
           ", [rx];\nbar.sync 0;\n";
  }

  std::string shuffle() {
    static const char* const modes[] = {"idx", "up", "down", "bfly"};
    const std::uint32_t mode = below(4);
    const std::string limit = mode == 1 ? (below(2) ? "0" : "0x1800") : (below(2) ? "31" : "0x181f");
    return std::string("shfl.sync.") + modes[mode] + ".b32 " + any('r') + "|" + any('p') + ", " + any('r') +
           ", " + (below(2) ? any('r') : number(below(32))) + ", " + limit + ", " + mask_ + ";\n";
  }

  std::string warp() {
    static const char* const votes[] = {"all", "any", "uni"};
    static const char* const sums[] = {"add.u32", "min.s32", "max.u32", "add.s32",
                                       "and.b32", "or.b32",  "xor.b32"};
    switch (below(7)) {
      case 0:
        return "vote.sync.ballot.b32 " + any('r') + ", " + any('p') + ", " + mask_ + ";\n";
      case 1:
        return std::string("vote.sync.") + one_of(votes) + ".pred " + any('p') + ", " + any('p') + ", " +
               mask_ + ";\n";
      case 2:
        return "and.b32 rx, " + any('r') + ", 3;\nmatch.any.sync.b32 " + any('r') + ", rx, " + mask_ + ";\n";
      case 3:
        return "and.b64 wx, " + any('w') + ", 1;\nmatch.all.sync.b64 " + any('r') + "|" + any('p') +
               ", wx, " + mask_ + ";\n";
      case 4:
        return std::string("redux.sync.") + one_of(sums) + " " + any('r') + ", " + any('r') + ", " + mask_ +
               ";\n";
      default:
        return whole_warps_ && mask_ == "0xffffffff" ? shuffle() : "bar.warp.sync " + mask_ + ";\n";
    }
  }

  std::string branch(unsigned depth) {
    const std::string label = number(labels_++), p = any('p'), outer = mask_;
    std::string s, inner, other;
    if (!mask_.empty()) {  // the lanes in each part
      inner = "ri" + label, other = "ro" + label;
      s += ".reg .b32 " + inner + ", " + other + ";\nvote.sync.ballot.b32 " + inner + ", " + p + ", " +
           mask_ + ";\nxor.b32 " + other + ", " + inner + ", " + mask_ + ";\n";
    }
    s += "@" + p + " bra then" + label + ";\n";
    mask_ = other;
    s += statements(depth + 1) + (below(2) ? "bra.uni" : "bra") + " end" + label + ";\nthen" + label + ":\n";
    mask_ = inner;
    s += statements(depth + 1) + "end" + label + ":\n";
    mask_ = outer;
    return s;
  }

  std::string loop(unsigned depth) {
    const std::string label = number(labels_++), outer = mask_, count = "rc" + label;
    const bool uniform = below(2);
    std::string s = ".reg .b32 " + count + ";\n.reg .pred pl" + label + ";\n";
    s += uniform ? "mov.u32 " + count + ", " + number(1 + below(4)) + ";\n"
                 : "and.b32 " + count + ", " + any('r') + ", 7;\n";
    if (!uniform) mask_.clear();  // lanes leave at different times
    s += "again" + label + ":\n" + statements(depth + 1);
    if (!uniform && below(2)) s += "@" + any('p') + " bra over" + label + ";\n";
    s += "sub.u32 " + count + ", " + count + ", 1;\nsetp.gt.s32 pl" + label + ", " + count + ", 0;\n@pl" +
         label + " bra again" + label + ";\nover" + label + ":\n";
    mask_ = outer;
    return s;
  }

  std::string statement(unsigned depth) {
    const std::uint32_t what = below(40);
    if (what < 20) return arithmetic();
    if (what < 24) return comparison();
    if (what < 25) return carries();
    if (what < 26) return packing();
    if (what < 27) return lookup();
    if (what < 30) return access();
    if (what < 32) return updates();
    if (what < 33) return call();
    if (what < 35) return mask_.empty() ? arithmetic() : warp();
    if (what < 36) return depth == 0 && !in_function_ ? exchange() : arithmetic();
    if (depth >= 3) return comparison();
    return what < 38 ? branch(depth) : loop(depth);
  }

  std::string statements(unsigned depth) {
    std::string s;
    for (unsigned n = 0, count = (depth == 0 ? 14 : 2) + below(depth == 0 ? 20 : 6); n < count; ++n)
      s += statement(depth);
    return s;
  }

  std::string registers() {
    std::string s;
    for (const auto& p : pools)
      s += std::string(".reg .") + p.type + " " + p.kind + "<" + number(p.count) + ">;\n";
    return s +
           ".reg .b32 rx, ry, rt, ri;\n.reg .b64 wx, win, wout, wsums, wm;\n.reg .b16 hx;\n.reg .pred px;\n";
  }

  std::string function(unsigned n) {
    in_function_ = true, mask_.clear();
    std::string s = ".func (.param .align 8 .b8 results[16]) function" + number(n) +
                    "(.param .b32 x, .param .b64 y, .param .f32 z)\n{\n" + registers() +
                    "ld.param.b32 r0, [x];\nld.param.b64 w0, [y];\nld.param.f32 f0, [z];\n" + initial(1) +
                    statements(1);
    in_function_ = false;
    return s + "st.param.b32 [results], r0;\nst.param.b64 [results+8], w0;\nret;\n}\n";
  }

  /// Every register from the first `known` on gets a value.
  std::string initial(unsigned known) {
    std::string s;
    for (const auto& p : pools) {
      for (unsigned n = p.kind == 'r' || p.kind == 'w' || p.kind == 'f' ? known : 0; n < p.count; ++n) {
        const std::string d = p.kind + number(n);
        if (p.kind == 'p')
          s += "setp.gt.s32 " + d + ", r0, " + number(below(1000)) + ";\n";
        else if (p.kind == 'f' || p.kind == 'g')
          s += "mov." + std::string(p.type) + " " + d + ", " + constant(p.kind) + ";\n";
        else
          s += "mov." + std::string(p.type) + " " + d + ", " + constant(p.kind) + ";\n";
      }
    }
    return s;
  }

  std::string kernel() {
    mask_ = "0xffffffff";
    std::string s =
        ".visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 psums)\n{\n.local .align 16 .b8 "
        "mine[64];\n" +
        registers() +
        "mov.u32 rt, %tid.x;\nmov.u32 rx, %tid.y;\nmov.u32 ry, %ntid.x;\nmad.lo.u32 rt, rx, ry, rt;\nmov.u32 "
        "rx, %ntid.y;\n"
        "mul.lo.u32 ry, rx, ry;\nmov.u32 rx, %tid.z;\nmad.lo.u32 rt, rx, ry, rt;\nmov.u32 rx, "
        "%ctaid.x;\nmad.lo.u32 ri, rx, " +
        number(threads_) +
        ", rt;\nld.param.u64 win, [pin];\nld.param.u64 wout, [pout];\nld.param.u64 wsums, [psums];\n"
        "mov.u64 wm, mine;\nmul.wide.u32 wx, ri, 256;\nadd.u64 win, win, wx;\nmul.wide.u32 wx, ri, "
        "512;\nadd.u64 wout, wout, wx;\n"
        "st.local.v2.b64 [wm], {wx, win};\n";
    // The input pointer differs between the machines, so it must not appear in the result.
    s += "ld.global.v2.b64 {w0, w1}, [win];\nst.local.v2.b64 [wm], {w0, w1};\nst.local.v2.b64 [wm+16], {w1, "
         "w0};\n"
         "st.local.v2.b64 [wm+32], {w0, w0};\nst.local.v2.b64 [wm+48], {w1, w1};\n";
    unsigned at = 0;
    for (const auto& p : pools) {
      for (unsigned n = 0; n < p.count; ++n, at += 8) {
        const std::string d = p.kind + number(n), from = ", [win+" + number(at % 256) + "];\n";
        if (p.kind == 'p')
          s += "ld.global.u8 rx" + from + "setp.gt.u32 " + d + ", rx, 100;\n";
        else
          s += "ld.global." + std::string(p.type) + " " + d + from;
        if (p.kind == 'f' || p.kind == 'g') s += plain_nan(d);
      }
    }
    s += "setp.lt.u32 px, rt, 8;\nmul.wide.u32 wx, rt, 8;\nmov.u32 rx, totals;\nmad.lo.u32 rx, rt, 8, "
         "rx;\nmov.b64 wx, 0;\n";
    // A single thread must clear all totals too.
    s += "setp.eq.u32 px, rt, 0;\n";
    for (int n = 0; n < 64; n += 8)
      s += "@px st.shared.b64 [totals+" + number(static_cast<unsigned>(n)) + "], wx;\n";
    s += "bar.sync 0;\n" + statements(0) + "bar.sync 0;\n";
    at = 0;
    for (const auto& p : pools) {
      for (unsigned n = 0; n < p.count; ++n, at += 8) {
        const std::string d = p.kind + number(n), to = "[wout+" + number(at) + "], ";
        if (p.kind == 'p')
          s += "selp.u32 rx, 1, 0, " + d + ";\nst.global.b32 " + to + "rx;\n";
        else
          s += "st.global." + std::string(p.type) + " " + to + d + ";\n";
      }
    }
    s += "and.b32 rx, rt, 7;\nmul.lo.u32 rx, rx, 8;\nmov.u32 ry, totals;\nadd.u32 rx, rx, ry;\nld.shared.b64 "
         "wx, [rx];\nst.global.b64 [wout+" +
         number(at) + "], wx;\n";
    for (int n = 0; n < 64; n += 16) {
      s += "ld.local.v2.b64 {w0, w1}, [wm+" + number(static_cast<unsigned>(n)) +
           "];\nst.global.v2.b64 [wout+" + number(at + 16 + static_cast<unsigned>(n)) + "], {w0, w1};\n";
    }
    return s + "ret;\n}\n";
  }

  std::uint64_t state_;
  std::string mask_;  ///< the lanes that are certainly here, as an operand; empty when that is unknown
  std::uint32_t threads_ = 1;
  unsigned labels_ = 0, functions_ = 0;
  bool whole_warps_ = false, in_function_ = false;
};

}  // namespace

random_kernel random_kernel_of(std::uint64_t seed) { return writer(seed).whole(); }

}  // namespace outboard::ptx::reference
