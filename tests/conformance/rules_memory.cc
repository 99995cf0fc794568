// Rules for loads, stores and fences in every state space.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

std::string space_of(const form& f) {
  const std::string s = f.first_of(
      {"global", "shared", "shared::cta", "local", "param", "const", "param::entry", "param::func"});
  return s.substr(0, s.find(':'));
}

unsigned lanes_of(const form& f) { return f.has("v8") ? 8 : f.has("v4") ? 4 : f.has("v2") ? 2 : 1; }

/// Registers for one element: 8-bit values need 16 bits at least.
std::string element(const form& f) { return bits_of(f.type()) < 16 ? "b16" : register_type(f.type()); }

/// The record of another thread of the block, in shared memory.
const char* const fill_shared =
    "mov.u32 r20, buffer;\nmad.lo.u32 r21, i, 32, r20;\n"
    "ld.global.v4.b32 {r0, r1, r2, r3}, [in];\nst.shared.v4.b32 [r21], {r0, r1, r2, r3};\n"
    "ld.global.v4.b32 {r0, r1, r2, r3}, [in+16];\nst.shared.v4.b32 [r21+16], {r0, r1, r2, r3};\n"
    "bar.sync 0;\nxor.b32 r22, i, 33;\nmad.lo.u32 r22, r22, 32, r20;\n";

/// A function whose parameters lie in memory: bytes and a scalar.
std::string function_with(const std::string& body, const std::string& returns) {
  return ".func (" + returns + ") callee(.param .align 16 .b8 block[32], .param .b32 number)\n{\n" + body +
         "ret;\n}\n";
}

std::string load_block(const form& f, const std::string& registers, const std::string& address) {
  return write(f, {registers, "[" + address + "]"});
}

kernel load_kernel(const form& f) {
  const std::string space = space_of(f);
  const unsigned lanes = lanes_of(f), bytes = bits_of(f.type()) / 8 * lanes;
  kernel k;
  std::vector<std::string> first, second;
  for (unsigned n = 0; n < 2 * lanes; ++n) {
    (n < lanes ? first : second).push_back(result_name(n));
    k.out.push_back(element(f));
  }
  k.in = {{"b64"}, {"b64"}};  // the record's bytes are what is read
  const std::string d = vector_of(first), d1 = vector_of(second),
                    beyond = "+" + std::to_string(bytes > 16 ? 32 : 16);
  if (space == "global" || space.empty()) {
    k.body = load_block(f, d, "in") + load_block(f, d1, "in" + beyond);
    if (space.empty()) {  // the second one by a generic address of shared memory
      k.globals = ".shared .align 32 .b8 buffer[4096];\n";
      k.body = load_block(f, d, "in") + fill_shared + "cvt.u64.u32 w0, r22;\ncvta.shared.u64 w0, w0;\n" +
               load_block(f, d1, "w0");
    }
  } else if (space == "shared") {
    k.globals = ".shared .align 32 .b8 buffer[4096];\n";
    k.body = fill_shared + load_block(f, d, "r22") + "cvt.u64.u32 w0, r22;\n" +
             load_block(f, d1, "w0+" + std::to_string(32 - bytes));
  } else if (space == "local") {
    k.more_registers = ".local .align 32 .b8 mine[64];\n";
    k.body =
        "mov.u64 w1, mine;\nld.global.v2.b64 {w2, w3}, [in];\nst.local.v2.b64 [mine+16], {w2, w3};\n"
        "ld.global.v2.b64 {w2, w3}, [in+16];\nst.local.v2.b64 [w1], {w2, w3};\n" +
        load_block(f, d, "w1") + load_block(f, d1, "mine+16");
  } else if (space == "const") {
    k.globals =
        ".const .align 32 .b32 fixed[16] = {0x80000001, 0xfffefdfc, 0x7f800000, 0x7fc00001, 5, 6, 7, 8, 9, "
        "10, "
        "0xc0490fdb, 0x40490fdb, 0xffffffff, 0x00010203, 15, 16};\n";
    k.body = "mov.u64 w0, fixed;\nand.b32 r0, i, 1;\nmul.wide.u32 w1, r0, 32;\nadd.u64 w0, w0, w1;\n" +
             load_block(f, d, "w0") + load_block(f, d1, "fixed" + beyond);
  } else {  // a kernel's parameter, and a function's result
    k.globals = function_with(
        "ld.param.v4.b32 {x0, x1, x2, x3}, [block+16];\nld.param.b32 x4, [number];\n"
        "add.u32 x0, x0, x4;\nst.param.v4.b32 [result], {x0, x1, x2, x3};\n",
        ".param .align 16 .b8 result[32]");
    const std::size_t brace = k.globals.find('{');
    k.globals.insert(brace + 1, "\n.reg .b32 x<5>;");
    k.body = load_block(f, d, "pblock+16") +
             "{\n.param .align 16 .b8 x[32];\n.param .b32 y;\n.param .align 16 .b8 z[32];\n"
             "ld.global.v4.b32 {r0, r1, r2, r3}, [in];\nst.param.v4.b32 [x+16], {r0, r1, r2, r3};\n"
             "st.param.b32 [y], t;\ncall.uni (z), callee, (x, y);\n" +
             load_block(f, d1, "z") + "}\n";
  }
  return k;
}

kernel store_kernel(const form& f) {
  const std::string space = space_of(f), t = element(f);
  const unsigned lanes = lanes_of(f);
  kernel k;
  std::vector<std::string> values;
  const char* const names[] = {"a", "b", "c", "e"};
  for (unsigned n = 0; n < lanes; ++n) {
    k.in.push_back({f.type()});
    values.push_back(names[n % 4]);
  }
  k.out = {"raw"};  // 16 bytes that hold a pattern before
  const auto store = [&](const std::string& address) {
    return write(f, {"[" + address + "]", vector_of(values)});
  };
  const std::string pattern = "st.X.v4.b32 [Y], {0xcccccccc, 0xcccccccc, 0xcccccccc, 0xcccccccc};\n";
  if (space == "global" || space.empty()) {
    k.body = store("out");
    if (space.empty()) {
      k.globals = ".shared .align 16 .b8 buffer[2048];\n";
      k.out = {"raw", "raw"};
      k.body +=
          "mov.u64 w0, buffer;\nmul.wide.u32 w1, i, 16;\nadd.u64 w0, w0, w1;\n"
          "st.shared.v4.b32 [w0], {0, 0, 0, 0};\ncvta.shared.u64 w2, w0;\n" +
          store("w2") +
          "ld.shared.v4.b32 {r0, r1, r2, r3}, [w0];\nst.global.v4.b32 [out+16], {r0, r1, r2, r3};\n";
    }
  } else if (space == "shared") {
    k.globals = ".shared .align 16 .b8 buffer[2048];\n";
    k.body = "mov.u32 r20, buffer;\nmad.lo.u32 r21, i, 16, r20;\nst.shared.v4.b32 [r21], {0, 0, 0, 0};\n" +
             store("r21") +
             "bar.sync 0;\nxor.b32 r22, i, 35;\nmad.lo.u32 r22, r22, 16, r20;\n"
             "ld.shared.v4.b32 {r0, r1, r2, r3}, [r22];\nst.global.v4.b32 [out], {r0, r1, r2, r3};\n";
  } else if (space == "local") {
    k.more_registers = ".local .align 16 .b8 mine[32];\n";
    k.body = "mov.u64 w1, mine;\nst.local.v4.b32 [mine+16], {0, 0, 0, 0};\n" + store("w1+16") +
             "ld.local.v4.b32 {r0, r1, r2, r3}, [mine+16];\nst.global.v4.b32 [out], {r0, r1, r2, r3};\n";
  } else {
    k.globals = function_with(
        "ld.param.v4.b32 {x0, x1, x2, x3}, [block];\nst.param.v4.b32 [result], {x0, x1, x2, x3};\n",
        ".param .align 16 .b8 result[32]");
    const std::size_t brace = k.globals.find('{');
    k.globals.insert(brace + 1, "\n.reg .b32 x<4>;");
    k.body =
        "{\n.param .align 16 .b8 x[32];\n.param .b32 y;\n.param .align 16 .b8 z[32];\n"
        "st.param.v4.b32 [x], {0, 0, 0, 0};\n" +
        store("x") +
        "st.param.b32 [y], t;\ncall.uni (z), callee, (x, y);\nld.param.v4.b32 {r0, r1, r2, r3}, [z];\n"
        "st.global.v4.b32 [out], {r0, r1, r2, r3};\n}\n";
  }
  return k;
}

/// Message passing inside a warp: stores before the fence are visible after it.
kernel fence_kernel(const form& f) {
  kernel k;
  k.in = {{"b32"}}, k.out = {"b32"}, k.scratch = 1024 * 4;
  k.body = "mul.wide.u32 w0, t, 4;\nadd.u64 w0, mem, w0;\nst.global.b32 [w0], a;\n" + f.text +
           ";\nbar.warp.sync 0xffffffff;\nxor.b32 r0, t, 9;\nmul.wide.u32 w1, r0, 4;\nadd.u64 w1, mem, w1;\n"
           "ld.volatile.global.b32 d, [w1];\n";
  return k;
}

}  // namespace

std::optional<kernel> memory_rule(const form& f) {
  if (f.family == "membar" || f.family == "fence") return fence_kernel(f);
  if (f.family != "ld" && f.family != "ldu" && f.family != "st") return {};
  if (f.types() != 1 || bits_of(f.type()) * lanes_of(f) > 128) return {};
  return f.family == "st" ? store_kernel(f) : load_kernel(f);
}

std::optional<kernel> atomic_rule(const form& f) {
  if ((f.family != "atom" && f.family != "red") || f.types() == 0) return {};
  const bool returns = f.family == "atom", cas = f.has("cas");
  const std::string space = space_of(f), t = f.type(), r = register_type(t);
  kernel k;
  k.in = {{t}, {t}, {t}};
  const std::string shown = is_float(t) ? t : r;  // any NaN is right
  k.out = {shown, shown};
  // The word of this thread starts as a; half of the threads that compare find what they expect.
  std::string address = "out+16", before = "st.global." + r + " [out+16], a;\n", after;
  if (space == "shared") {
    k.globals = ".shared .align 16 .b8 buffer[2048];\n";
    before = "mov.u32 r20, buffer;\nmad.lo.u32 r21, i, 16, r20;\nst.shared." + r + " [r21], a;\n";
    address = "r21";
  }
  after = "ld.volatile." + std::string(space == "shared" ? "shared." : "global.") + r + " d1, [" + address +
          "];\n";
  before += "mov." + r + " d, b;\n";
  std::vector<std::string> operands;
  if (returns) operands.push_back("d");
  operands.push_back("[" + address + "]");
  if (cas) {
    before += "and.b32 r0, t, 1;\nsetp.eq.u32 p, r0, 0;\nselp." + r + " b, a, b, p;\n";
  }
  operands.push_back("b");
  if (cas) operands.push_back("c");
  k.body = before + write(f, operands) + after;
  // All threads update one word, but only where the order does not matter.
  const bool integer = !is_float(t) && bits_of(t) >= 32;
  const bool commutes =
      f.has("add") || f.has("min") || f.has("max") || f.has("and") || f.has("or") || f.has("xor");
  if (integer && commutes && space != "shared") {
    k.scratch = 16;
    std::vector<std::string> same;
    if (returns) same.push_back(r == "b64" ? "w14" : "r14");
    same.push_back("[mem]"), same.push_back("b");
    k.body += write(f, same);
  }
  return k;
}

}  // namespace conformance
