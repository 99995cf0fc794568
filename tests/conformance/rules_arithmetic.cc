// Rules for instructions from registers to registers: arithmetic, logic, shifts, bit fields, approximations.
#include <cmath>
#include <map>

#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

/// The errors that the ISA allows for each approximation (PTX ISA 9.0, chapter 9.7.3 and following).
struct approximation {
  double relative, absolute;
  values operands;
};
std::optional<approximation> approximation_of(const form& f) {
  const std::string what = f.family +
                           (f.has("full")     ? ".full"
                            : f.has("approx") ? ".approx"
                                              : "") +
                           "." + f.type();
  static const std::map<std::string, approximation> all = {
      {"div.approx.f32", {0x1p-22, 0x1p-148, values::any}},   // 2 ulp for |b| in [2^-126, 2^126]
      {"div.full.f32", {0x1p-22, 0x1p-148, values::any}},     // 2 ulp
      {"rcp.approx.f32", {0x1p-23, 0x1p-148, values::any}},   // 1 ulp
      {"sqrt.approx.f32", {0x1p-22, 0x1p-148, values::any}},  // 2^-23
      {"rsqrt.approx.f32", {0x1p-22, 0, values::any}},        // 2^-22.9
      {"sin.approx.f32", {0, 0x1p-20, values::angle}},        // 2^-20.5 absolute in -2pi..2pi
      {"cos.approx.f32", {0, 0x1p-20, values::angle}},
      {"lg2.approx.f32", {0x1p-22, 0x1p-22, values::any}},  // relative outside 0.5..2, absolute within
      {"ex2.approx.f32", {0x1p-22, 0x1p-148, values::any}},
      {"tanh.approx.f32", {0x1p-11, 0, values::any}},
      {"tanh.approx.f16", {0, 0x1p-10, values::any}},
      {"tanh.approx.f16x2", {0, 0x1p-10, values::any}},
      {"tanh.approx.bf16", {0, 0x1p-7, values::any}},
      {"tanh.approx.bf16x2", {0, 0x1p-7, values::any}},
      {"ex2.approx.f16", {0x1p-9, 0x1p-23, values::any}},  // 2^-9.9
      {"ex2.approx.f16x2", {0x1p-9, 0x1p-23, values::any}},
      {"ex2.approx.bf16", {0x1p-7, 0, values::any}},
      {"ex2.approx.bf16x2", {0x1p-7, 0, values::any}},
      {"rcp.approx.f64", {0x1p-19, 0, values::any}},  // only the upper word counts: relative 2^-20 of it
      {"rsqrt.approx.f64", {0x1p-19, 0, values::any}},
  };
  const auto found = all.find(what);
  if (found == all.end()) return {};
  return found->second;
}

/// add.cc, addc ...: the carry comes from an addition before the instruction and is read by one after it.
kernel carry_kernel(const form& f) {
  const std::string t = f.type();
  const bool reads = f.family.back() == 'c', mad = f.family[0] == 'm';
  kernel k;
  k.in = {{t}, {t}, {t}, {t}};
  k.out = {t, t};
  if (reads) k.body = (f.family[0] == 's' ? "sub.cc." : "add.cc.") + t + " d1, a, e;\n";
  k.body += mad ? write(f, {"d", "a", "b", "c"}) : write(f, {"d", "b", "c"});
  k.body += f.has("cc") ? "addc." + t + " d1, 0, 0;\n" : "mov.b" + std::to_string(bits_of(t)) + " d1, 0;\n";
  return k;
}

/// d = f(a) ... f(a, b, c, e), types in the order d, a, b ...
kernel plain(const form& f, const std::vector<std::string>& types) {
  static const char* const names[] = {"a", "b", "c", "e"};
  kernel k;
  k.out = {types[0]};
  std::vector<std::string> operands = {"d"};
  for (std::size_t n = 1; n < types.size(); ++n) k.in.push_back({types[n]}), operands.push_back(names[n - 1]);
  k.body = write(f, operands);
  // If rounding carries a subnormal quotient up to the smallest normal number, the ISA leaves open what
  // .ftz flushes.
  if (f.family == "div" && f.has("ftz") && !f.has("approx") && !f.has("full")) k.within.absolute = 0x1p-126;
  if (const auto approximate = approximation_of(f)) {
    k.within = {approximate->relative, approximate->absolute};
    for (auto& o : k.in) o.which = approximate->operands;
  }
  return k;
}

std::string twice(const std::string& t) { return t.substr(0, 1) + std::to_string(2 * bits_of(t)); }

kernel lop3_kernel(const form& f) {
  kernel k = plain(f, {"b32", "b32", "b32", "b32"});
  k.out = {"b32", "b32", "b32", "b32"};
  k.body = write(f, {"d", "a", "b", "c", "0xe8"}) + write(f, {"d1", "a", "b", "c", "0x96"}) +
           write(f, {"d2", "a", "b", "c", "0xca"}) + write(f, {"d3", "a", "b", "c", "0x1b"});
  return k;
}

}  // namespace

std::optional<kernel> arithmetic_rule(const form& f) {
  const std::string t = f.type(), &n = f.family;
  if (t.empty()) return {};
  if (n == "addc" || n == "subc" || n == "madc" || f.has("cc")) return carry_kernel(f);
  if ((n == "mul" || n == "mad") && f.has("wide")) {
    return n == "mul" ? plain(f, {twice(t), t, t}) : plain(f, {twice(t), t, t, twice(t)});
  }
  static const std::map<std::string, int> same = {
      {"add", 2},  {"sub", 2},   {"mul", 2}, {"div", 2},      {"rem", 2},  {"min", 2},
      {"max", 2},  {"mul24", 2}, {"xor", 2}, {"copysign", 2}, {"mad", 3},  {"fma", 3},
      {"sad", 3},  {"mad24", 3}, {"neg", 1}, {"abs", 1},      {"cnot", 1}, {"brev", 1},
      {"sqrt", 1}, {"rsqrt", 1}, {"rcp", 1}, {"ex2", 1},      {"lg2", 1},  {"sin", 1},
      {"cos", 1},  {"tanh", 1},  {"and", 2}, {"or", 2},       {"not", 1},  {"prmt", 3}};
  if (t == "pred") {
    if (n == "not") return plain(f, {"pred", "pred"});
    if (n == "and" || n == "or" || n == "xor") return plain(f, {"pred", "pred", "pred"});
    return {};
  }
  if (const auto found = same.find(n); found != same.end() && f.types() == 1) {
    return plain(f, std::vector<std::string>(static_cast<std::size_t>(found->second) + 1, t));
  }
  if (n == "popc" || n == "clz" || n == "bfind") return plain(f, {"u32", t});
  if (n == "shl" || n == "shr") return plain(f, {t, t, "u32"});
  if (n == "bfe") return plain(f, {t, t, "u32", "u32"});
  if (n == "bfi") return plain(f, {t, t, t, "u32", "u32"});
  if (n == "shf") return plain(f, {"b32", "b32", "b32", "u32"});
  if (n == "bmsk" || n == "szext") return plain(f, {t, t, "u32"});
  if (n == "lop3") return lop3_kernel(f);
  if (n == "dp4a" || n == "dp2a") {
    return plain(f, {f.type(0) == "s32" || f.type(1) == "s32" ? "s32" : "u32", "b32", "b32", "u32"});
  }
  if (n == "vabsdiff4" || n == "vabsdiff2" || n == "vadd4" || n == "vsub4" || n == "vavrg4" || n == "vmin4" ||
      n == "vmax4") {
    return plain(f, {"b32", "b32", "b32", "b32"});
  }
  return {};
}

std::optional<kernel> compare_rule(const form& f) {
  const std::string &n = f.family, t = f.type();
  if (t.empty()) return {};
  const bool combined = f.has("and") || f.has("or") || f.has("xor");
  kernel k;
  if (n == "setp") {
    k.in = {{t}, {t}};
    if (combined) k.in.push_back({"pred"});
    const std::vector<std::string> rest =
        combined ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"a", "b"};
    k.out = {"pred", "pred", "pred"};
    k.body = write(f, joined({"d"}, rest)) + write(f, joined({"d1|d2"}, rest));
    if (t == "f16" || t == "bf16") {  // one result only
      k.out = {"pred"}, k.body = write(f, joined({"d"}, rest));
    } else if (t == "f16x2" || t == "bf16x2") {
      k.out = {"pred", "pred"};
      k.body = write(f, joined({"d|d1"}, rest));
    }
    return k;
  }
  if (n == "set") {
    if (f.types() != 2) return {};
    k.in = {{f.type(1)}, {f.type(1)}};
    if (combined) k.in.push_back({"pred"});
    k.out = {t};
    k.body = combined ? write(f, {"d", "a", "b", "c"}) : write(f, {"d", "a", "b"});
    return k;
  }
  if (n == "selp") {
    k.in = {{t}, {t}, {"pred"}}, k.out = {t}, k.body = write(f, {"d", "a", "b", "c"});
    return k;
  }
  if (n == "slct") {
    k.in = {{t}, {t}, {f.type(1)}}, k.out = {t}, k.body = write(f, {"d", "a", "b", "c"});
    return k;
  }
  if (n == "testp") {
    k.in = {{t}}, k.out = {"pred"}, k.body = write(f, {"d", "a"});
    return k;
  }
  return {};
}

}  // namespace conformance
