// Rules for wmma. Each device may choose how a fragment lies in the registers, so every form is tested as
// part of a whole product: load a, b and c, multiply, store d. The elements are small integers, so every
// order of sums is exact.
#include <map>

#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

struct product {
  std::string shape = "m16n16k16", a = "row", b = "col", c = "row", d = "row", space = "global";
  std::string factor = "f16", sum = "f32", result = "f32";
  unsigned m() const { return size('m'); }
  unsigned n() const { return size('n'); }
  unsigned k() const { return size('k'); }
  unsigned size(char which) const {
    return static_cast<unsigned>(std::stoul(shape.substr(shape.find(which) + 1)));
  }
};

/// Registers of one lane's part: the elements of the matrix over 32 lanes, packed; f16 factors come twice.
unsigned registers(const product& p, char matrix) {
  if (matrix == 'c' || matrix == 'd') {
    const std::string& t = matrix == 'c' ? p.sum : p.result;
    return p.m() * p.n() / 32 / (t == "f16" ? 2 : 1);
  }
  if (p.factor == "f16") return 8;
  const unsigned elements = (matrix == 'a' ? p.m() : p.n()) * p.k();
  const unsigned bits = p.factor == "tf32" ? 32 : bits_of(p.factor);
  return p.factor == "f64" ? elements / 32 : elements * bits / 32 / 32;
}

unsigned stride(const product& p, char matrix) {
  if (matrix == 'a') return p.a == "row" ? p.k() : p.m();
  if (matrix == 'b') return p.b == "row" ? p.n() : p.k();
  return (matrix == 'c' ? p.c : p.d) == "row" ? p.n() : p.m();
}

/// Writes `count` elements of small integers at the address in w1, lane by lane.
std::string fill(const std::string& space, const std::string& type, unsigned count, unsigned seed) {
  const bool plus = type == "u8" || type == "u4";
  const unsigned bytes = type == "tf32" ? 4 : bits_of(type) / 8;
  const std::string label = "fill" + std::to_string(seed), st = "st." + space + ".";
  std::string s = "mov.u32 r0, l;\n" + label + ":\nmad.lo.u32 r1, r0, 7, " + std::to_string(seed) +
                  ";\nmov.u32 r5, %ctaid.x;\nadd.u32 r1, r1, r5;\nrem.u32 r1, r1, 9;\n" +
                  (plus ? "" : "sub.u32 r1, r1, 4;\n") + "mul.wide.u32 w2, r0, " + std::to_string(bytes) +
                  ";\nadd.u64 w2, w1, w2;\n";
  if (type == "f16")
    s += "cvt.rn.f16.s32 h0, r1;\n" + st + "b16 [w2], h0;\n";
  else if (type == "bf16")
    s += "cvt.rn.f32.s32 r2, r1;\ncvt.rn.bf16.f32 h0, r2;\n" + st + "b16 [w2], h0;\n";
  else if (type == "f32" || type == "tf32")
    s += "cvt.rn.f32.s32 r2, r1;\n" + st + "b32 [w2], r2;\n";
  else if (type == "f64")
    s += "cvt.rn.f64.s32 w3, r1;\n" + st + "b64 [w2], w3;\n";
  else if (bytes == 1)
    s += st + "b8 [w2], r1;\n";
  else
    s += st + "b32 [w2], r1;\n";
  return s + "add.u32 r0, r0, 32;\nsetp.lt.u32 p, r0, " + std::to_string(count) + ";\n@p bra " + label +
         ";\n";
}

std::string mma_opcode(const product& p) {
  const std::string head = "wmma.mma.sync.aligned." + p.a + "." + p.b + "." + p.shape;
  if (p.factor == "f16") return head + "." + p.result + "." + p.sum;
  return head + "." + p.result + "." + p.factor + "." + p.factor + "." + p.sum +
         (p.factor == "f64" ? ".rn" : "");
}

std::string sum_of(const std::string& factor) {
  return factor == "f64" ? "f64" : factor == "f16" || factor == "bf16" || factor == "tf32" ? "f32" : "s32";
}

kernel product_kernel(const product& p, const form& f) {
  kernel k;
  k.threads = 32;
  k.out = {"b32"};
  k.scratch = 8 * 8192;
  const std::string space = p.space.empty() ? "global" : p.space,
                    written = p.space.empty() ? "" : "." + p.space;
  // Four places of 2048 bytes, for a, b, c and d.
  if (space == "shared") {
    k.globals = ".shared .align 32 .b8 buffer[8192];\n";
    k.body = "mov.u64 w10, buffer;\n";
  } else {
    k.body = "mov.u32 r0, %ctaid.x;\nmul.wide.u32 w10, r0, 8192;\nadd.u64 w10, w10, mem;\n";
  }
  k.body += "mov.b32 d, l;\n";
  const std::pair<char, std::string> matrices[] = {{'a', p.factor}, {'b', p.factor}, {'c', p.sum}};
  for (unsigned n = 0; n < 3; ++n) {
    const auto& [name, type] = matrices[n];
    const unsigned count = name == 'a' ? p.m() * p.k() : name == 'b' ? p.k() * p.n() : p.m() * p.n();
    k.body += "add.u64 w1, w10, " + std::to_string(n * 2048) + ";\n" + fill(space, type, count, n + 3);
  }
  k.body += "bar.sync 0;\n";
  std::string fragments[4];
  for (unsigned n = 0; n < 4; ++n) {
    const char name = "abcd"[n];
    const std::string& type = n == 2 ? p.sum : n == 3 ? p.result : p.factor;
    const unsigned count = registers(p, name);
    k.more_registers += std::string(".reg .") +
                        (type == "f64"   ? "f64"
                         : type == "f32" ? "f32"
                                         : "b32") +
                        " f" + name + "<" + std::to_string(count) + ">;\n";
    fragments[n] = vector_of(numbered(std::string("f") + name, count));
    if (count == 1) fragments[n] = "{" + fragments[n] + "}";
  }
  const std::string layouts[] = {p.a, p.b, p.c};
  for (unsigned n = 0; n < 3; ++n) {
    k.body += std::string("wmma.load.") + "abc"[n] + ".sync.aligned." + layouts[n] + "." + p.shape + written +
              "." + (n == 2 ? p.sum : p.factor) + " " + fragments[n] + ", [w10+" + std::to_string(n * 2048) +
              "], " + std::to_string(stride(p, "abc"[n])) + ";\n";
  }
  k.body += (f.has("mma") ? f.text : mma_opcode(p)) + " " + fragments[3] + ", " + fragments[0] + ", " +
            fragments[1] + ", " + fragments[2] + ";\nwmma.store.d.sync.aligned." + p.d + "." + p.shape +
            written + "." + p.result + " [w10+6144], " + fragments[3] + ", " +
            std::to_string(stride(p, 'd')) + ";\n";
  if (space == "shared") {  // every lane copies its part of d
    const unsigned part = p.m() * p.n() * bits_of(p.result) / 8 / 32;
    k.body +=
        "bar.sync 0;\nmov.u32 r0, %ctaid.x;\nmul.wide.u32 w1, r0, 8192;\nadd.u64 w1, w1, mem;\nmul.wide.u32 "
        "w2, l, " +
        std::to_string(part) + ";\nadd.u64 w1, w1, w2;\nadd.u64 w2, w2, w10;\n";
    for (unsigned n = 0; n < part; n += 16) {
      k.body += "ld.shared.v4.b32 {r0, r1, r2, r3}, [w2+" + std::to_string(6144 + n) +
                "];\nst.global.v4.b32 [w1+" + std::to_string(6144 + n) + "], {r0, r1, r2, r3};\n";
    }
  }
  return k;
}

}  // namespace

std::optional<kernel> matrix_rule(const form& f) {
  if (f.family != "wmma" || f.types() == 0) return {};
  product p;
  for (const auto& m : f.modifiers) {
    if (m.size() >= 6 && m[0] == 'm' && m.find('n') != std::string::npos && m.find('k') != std::string::npos)
      p.shape = m;
  }
  p.space = f.first_of({"global", "shared"});
  std::vector<std::string> layouts;
  for (const auto& m : f.modifiers) {
    if (m == "row" || m == "col") layouts.push_back(m);
  }
  const std::string last = f.type(f.types() - 1);
  if (f.modifiers[0] == "mma") {
    if (layouts.size() != 2) return {};
    p.a = layouts[0], p.b = layouts[1], p.space = "global";
    p.result = f.type(0), p.sum = last;
    p.factor = f.types() == 2 ? "f16" : f.type(1);
  } else if (f.modifiers[0] == "store") {
    p.d = layouts.at(0), p.result = p.sum = last;
    p.factor = last == "s32" ? "s8" : last == "f64" ? "f64" : p.shape == "m16n16k8" ? "tf32" : "f16";
  } else if (f.has("c")) {
    p.c = layouts.at(0), p.sum = p.result = last;
    p.factor = last == "s32" ? "s8" : last == "f64" ? "f64" : p.shape == "m16n16k8" ? "tf32" : "f16";
  } else {
    (f.has("a") ? p.a : p.b) = layouts.at(0);
    p.factor = last, p.sum = p.result = sum_of(last);
  }
  if (bits_of(p.factor) < 8) return {};
  return product_kernel(p, f);
}

}  // namespace conformance
