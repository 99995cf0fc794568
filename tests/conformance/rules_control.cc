// Rules for branches, calls, returns and instructions without a result.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

/// A loop whose length differs by thread, with an exit in its middle.
kernel branch_kernel(const form& f) {
  kernel k;
  k.in = {{"u32", values::small}, {"b32"}};
  k.out = {"b32"};
  if (f.has("uni")) {  // every thread takes the same way
    k.body =
        "mov.b32 d, b;\nmov.u32 r0, 0;\nagain:\nadd.u32 d, d, r0;\nadd.u32 r0, r0, 1;\nsetp.lt.u32 p, r0, "
        "9;\n@p " +
        f.text + " again;\n" + f.text + " over;\nmov.b32 d, 0;\nover:\n";
  } else {
    k.body = "mov.b32 d, b;\nmov.u32 r0, 0;\nagain:\nsetp.ge.u32 p, r0, a;\n@p " + f.text +
             " over;\nmad.lo.u32 d, d, 3, r0;\nand.b32 r1, d, 0x700;\nsetp.eq.u32 q, r1, 0;\n@q " + f.text +
             " over;\nadd.u32 r0, r0, 1;\n" + f.text + " again;\nover:\nadd.u32 d, d, a;\n";
  }
  return k;
}

kernel indexed_branch_kernel(const form& f) {
  kernel k;
  k.in = {{"u32", values::small}, {"b32"}};
  k.out = {"b32"};
  k.body = std::string(f.has("uni") ? "mov.u32 r0, %ctaid.x;\nand.b32 r0, r0, 3;\n" : "and.b32 r0, a, 3;\n") +
           "ways: .branchtargets one, two, three, four;\n" + write(f, {"r0", "ways"}) +
           "one:\nadd.u32 d, b, 1;\nbra over;\ntwo:\nmul.lo.u32 d, b, 5;\nbra over;\nthree:\nnot.b32 d, "
           "b;\nbra over;\n"
           "four:\nxor.b32 d, b, 0x5555;\nover:\n";
  return k;
}

kernel call_kernel(const form& f) {
  kernel k;
  k.globals =
      ".func (.param .b32 z) twice(.param .b32 x)\n{\n.reg .b32 r<3>;\nld.param.b32 r0, [x];\nadd.u32 r1, "
      "r0, r0;\n"
      "st.param.b32 [z], r1;\nret;\n}\n"
      ".func (.param .b32 z) sum(.param .b32 n)\n{\n.reg .b32 r<5>;\n.reg .pred p;\nld.param.b32 r0, [n];\n"
      "mov.b32 r2, 0;\nsetp.eq.u32 p, r0, 0;\n@p bra end;\nsub.u32 r1, r0, 1;\n{\n.param .b32 x;\n.param "
      ".b32 y;\n"
      "st.param.b32 [x], r1;\ncall.uni (y), sum, (x);\nld.param.b32 r2, [y];\n}\nadd.u32 r2, r2, r0;\nend:\n"
      "st.param.b32 [z], r2;\nret;\n}\n";
  // `sum` calls itself and must be declared before.
  k.globals = ".func (.param .b32 z) sum(.param .b32 n);\n" + k.globals;
  k.in = {{"u32", values::small}};
  k.out = {"b32", "b32", "b32"};
  const auto call = [&](const std::string& what, const std::string& result, const std::string& more) {
    return "{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], a;\n" + f.text + " (y), " + what + ", (x)" +
           more + ";\nld.param.b32 " + result + ", [y];\n}\n";
  };
  k.body = call("twice", "d", "") + call("sum", "d1", "") +
           "mov.u64 w0, twice;\nshape: .callprototype (.param .b32 _) _ (.param .b32 _);\n" +
           call("w0", "d2", ", shape");
  return k;
}

/// Threads end one by one in a loop; their stores remain.
kernel ending_kernel(const form& f) {
  kernel k;
  k.in = {{"u32", values::small}};
  k.out = {"raw"};
  k.body = "mov.u32 r0, 0;\nagain:\nst.global.b32 [out], r0;\nsetp.ge.u32 p, r0, a;\n@p " + f.text +
           ";\nadd.u32 r0, r0, 1;\nbra again;\n";
  if (f.family == "ret") {  // from a function too
    k.globals =
        ".func (.param .b32 z) clamp(.param .b32 x)\n{\n.reg .b32 r<2>;\n.reg .pred p;\nld.param.b32 r0, "
        "[x];\n"
        "st.param.b32 [z], 7;\nsetp.lt.u32 p, r0, 7;\n@p " +
        f.text + ";\nst.param.b32 [z], r0;\n" + f.text + ";\n}\n";
    k.body =
        "{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], a;\ncall.uni (y), clamp, (x);\n"
        "ld.param.b32 r1, [y];\nst.global.b32 [out+8], r1;\n}\n" +
        k.body;
  }
  return k;
}

/// Instructions that must have no visible effect, or must not be executed.
kernel silent_kernel(const form& f, const std::string& operands, bool never) {
  kernel k;
  k.in = {{"b32"}};
  k.out = {"b32"};
  k.body = std::string(never ? "setp.gt.u32 p, l, 31;\n@p " : "") + f.text + operands + ";\nmov.b32 d, a;\n";
  return k;
}

}  // namespace

std::optional<kernel> control_rule(const form& f) {
  if (f.family == "bra") return branch_kernel(f);
  if (f.family == "brx") return indexed_branch_kernel(f);
  if (f.family == "call") return call_kernel(f);
  if (f.family == "ret" || f.family == "exit") return ending_kernel(f);
  if (f.family == "trap" || f.family == "brkpt") return silent_kernel(f, "", true);
  if (f.family == "nanosleep") return silent_kernel(f, " 20", false);
  if (f.family == "griddepcontrol") return silent_kernel(f, "", false);
  if (f.family == "prefetch" || f.family == "prefetchu") return silent_kernel(f, " [in]", false);
  if (f.family == "discard" || f.family == "applypriority") return {};
  return {};
}

}  // namespace conformance
