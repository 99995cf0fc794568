// Rules for conversions, moves and address conversions.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

kernel pack_kernel(const form& f) {
  kernel k;
  const bool one = f.types() == 2 && f.type(1) != "f32" && f.type(1) != "f64";
  k.in = {{f.type(1)}};
  if (!one) k.in.push_back({f.type(1)});
  k.out = {f.type(0)};
  k.body = one ? write(f, {"d", "a"}) : write(f, {"d", "a", "b"});
  return k;
}

std::optional<kernel> cvt_rule(const form& f) {
  if (f.family == "cvt" && f.has("pack")) {
    kernel k;
    k.in = {{"s32"}, {"s32"}}, k.out = {"b32"};
    if (f.types() == 3) k.in.push_back({"b32"});
    k.body = f.types() == 3 ? write(f, {"d", "a", "b", "c"}) : write(f, {"d", "a", "b"});
    return k;
  }
  if (f.types() != 2) return {};
  const std::string to = f.type(0), from = f.type(1);
  if (bits_of(to) != 0 && (to.find("x2") != std::string::npos)) return pack_kernel(f);
  if (to == "tf32") {
    kernel k;
    k.in = {{from}}, k.out = {"b32"}, k.body = write(f, {"d", "a"});
    return k;
  }
  kernel k;
  k.in = {{from}}, k.out = {to}, k.body = write(f, {"d", "a"});
  // Operands and results may lie in registers wider than their type, if they are integers.
  const bool integer_from = !is_float(from), integer_to = !is_float(to);
  if (integer_from && bits_of(from) < 32) {
    k.out.push_back(to);
    k.body += "mov.b32 r0, {a, h7};\n" + write(f, {"d1", "r0"});
  }
  if (integer_to && bits_of(to) < 32) {
    const std::string wide = result_name(k.out.size());
    k.out.push_back("b32");
    k.body += write(f, {wide, "a"});
  }
  return k;
}

kernel mov_kernel(const form& f) {
  const std::string t = f.type();
  kernel k;
  k.in = {{t}}, k.out = {t}, k.body = write(f, {"d", "a"});
  if (t == "b32") {
    k.out = {t, "b16", "b16", "b32"};
    k.body += "mov.b32 {d1, d2}, a;\nmov.b32 d3, {d2, d1};\n";
  } else if (t == "b64") {
    k.out = {t, "b32", "b32", "b64"};
    k.body += "mov.b64 {d1, d2}, a;\nmov.b64 d3, {d2, d1};\n";
  } else if (t == "u32" || t == "s32") {
    k.out = {t, t, t, t, t, t};
    k.body += write(f, {"d1", "%tid.x"}) + write(f, {"d2", "%ntid.x"}) + write(f, {"d3", "%ctaid.x"}) +
              write(f, {"d4", "%nctaid.x"}) + write(f, {"d5", "%laneid"});
  } else if (t == "u64") {
    k.globals = ".global .align 8 .b8 here[64];\n";
    k.out = {t, t};
    k.body += write(f, {"w0", "here"}) + write(f, {"w1", "here+24"}) + "sub.u64 d1, w1, w0;\n";
  }
  return k;
}

/// Writes a value by one kind of address, reads it by the other.
kernel cvta_kernel(const form& f) {
  const std::string space = f.first_of({"global", "shared", "local", "const", "param"}), t = "b64";
  kernel k;
  k.in = {{t}}, k.out = {t};
  const std::string var = space == "global" ? "in" : space == "param" ? "pblock" : "there";
  std::string base = "mov.u64 w0, " + var + ";\n";
  if (space == "global") base = "mov.u64 w0, in;\n";
  if (space == "shared") {
    k.globals = ".shared .align 16 .b8 there[2048];\n";
    base += "mul.wide.u32 w1, i, 16;\nadd.u64 w0, w0, w1;\nst.shared.b64 [w0+8], a;\n";
  } else if (space == "local") {
    k.more_registers = ".local .align 16 .b8 there[32];\n";
    base += "st.local.b64 [there+8], a;\n";
  } else if (space == "const") {
    k.globals = ".const .align 16 .b32 there[4] = {1, 2, 3, 4};\n";
  }
  const bool back = f.has("to");
  const std::string there =
      back ? "cvta." + space + ".u64 w2, w0;\n" + write(f, {"w3", "w2"}) : write(f, {"w3", "w0"});
  if (space == "global" && back) {
    k.body = base + write(f, {"w3", "w0"});
  } else {
    k.body = base + there;
  }
  k.body +=
      "ld." + (back ? space + "." : std::string()) + "b64 d, [w3" + (space == "global" ? "" : "+8") + "];\n";
  return k;
}

kernel isspacep_kernel(const form& f) {
  kernel k;
  k.globals = ".shared .align 16 .b8 there[64];\n";
  k.more_registers = ".local .align 16 .b8 mine[32];\n";
  k.out = {"pred", "pred", "pred"};
  k.body = "cvta.global.u64 w0, out;\n" + write(f, {"d", "w0"}) +
           "mov.u64 w1, there;\ncvta.shared.u64 w1, w1;\n" + write(f, {"d1", "w1"}) +
           "mov.u64 w2, mine;\ncvta.local.u64 w2, w2;\nst.b32 [w2], t;\n" + write(f, {"d2", "w2"});
  return k;
}

}  // namespace

std::optional<kernel> convert_rule(const form& f) {
  if (f.family == "cvt") return cvt_rule(f);
  if (f.family == "mov" && f.types() == 1) return mov_kernel(f);
  if (f.family == "cvta") return cvta_kernel(f);
  if (f.family == "isspacep") return isspacep_kernel(f);
  return {};
}

}  // namespace conformance
