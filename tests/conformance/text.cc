// The PTX around the body of a kernel, and the list of rules.
#include <algorithm>

#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

std::string declare(const std::string& type, const std::string& names) {
  return ".reg ." + type + " " + names + ";\n";
}

/// An operand from the thread's record: predicates are words that are zero or not.
std::string load_operand(const std::string& type, const std::string& name, unsigned at) {
  const std::string from = ", [in+" + std::to_string(at) + "];\n";
  if (type == "pred") return "ld.global.b32 r31" + from + "setp.ne.u32 " + name + ", r31, 0;\n";
  if (bits_of(type) == 8) return "ld.global." + std::string(type[0] == 's' ? "s8 " : "u8 ") + name + from;
  if (bits_of(type) == 128) return "";
  return "ld.global." + register_type(type) + " " + name + from;
}

std::string store_result(const std::string& type, const std::string& name, unsigned at) {
  const std::string to = "[out+" + std::to_string(at) + "], ";
  if (type == "raw") return "";
  if (type == "pred") return "selp.u32 r31, 1, 0, " + name + ";\nst.global.b32 " + to + "r31;\n";
  return "st.global." + register_type(type) + " " + to + name + ";\n";
}

}  // namespace

std::string text_of(const kernel& k) {
  static const char* const names[] = {"a", "b", "c", "e"};
  std::string s =
      ".version 8.8\n.target sm_90\n.address_size 64\n" + k.globals +
      ".visible .entry k(.param .u64 pout, .param .u64 pin, .param .u64 pmem, .param .u64 pobject,\n"
      ".param .align 16 .b8 pblock[" +
      std::to_string(parameter_block) + "])\n{\n";
  for (std::size_t n = 0; n < k.in.size(); ++n) s += declare(register_type(k.in[n].type), names[n]);
  for (std::size_t n = 0; n < k.out.size(); ++n) {
    if (k.out[n] != "raw") s += declare(register_type(k.out[n]), result_name(n));
  }
  s += declare("pred", "p, q, s") + declare("b16", "h<8>") + declare("b32", "r<32>") +
       declare("b64", "w<16>") + declare("b32", "t, i, l") + declare("b64", "in, out, mem") +
       k.more_registers;
  s += "mov.u32 i, %tid.x;\nmov.u32 r31, %ctaid.x;\nmov.u32 r30, %ntid.x;\nmad.lo.u32 t, r31, r30, i;\n"
       "and.b32 l, i, 31;\nmov.b16 h7, 0x6b7c;\n"
       "ld.param.u64 mem, [pmem];\nld.param.u64 in, [pin];\nld.param.u64 out, [pout];\n"
       "mul.wide.u32 w15, t, " +
       std::to_string(operand_stride) +
       ";\nadd.u64 in, in, w15;\n"
       "mul.wide.u32 w15, t, " +
       std::to_string(result_bytes * std::max<std::size_t>(k.out.size(), 1)) + ";\nadd.u64 out, out, w15;\n";
  for (std::size_t n = 0; n < k.in.size(); ++n) {
    s += load_operand(k.in[n].type, names[n], static_cast<unsigned>(n) * 16);
  }
  s += k.body;
  for (std::size_t n = 0; n < k.out.size(); ++n) {
    s += store_result(k.out[n], result_name(n), static_cast<unsigned>(n) * result_bytes);
  }
  return s + "ret;\n}\n";
}

std::optional<kernel> kernel_of(const form& f) {
  using rule = std::optional<kernel> (*)(const form&);
  for (const rule r : {asynchronous_rule, texture_rule, matrix_rule, memory_rule, atomic_rule, warp_rule,
                       control_rule, convert_rule, compare_rule, arithmetic_rule}) {
    if (auto k = r(f)) return k;
  }
  return {};
}

}  // namespace conformance
