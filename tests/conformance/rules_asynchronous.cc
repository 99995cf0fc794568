// Rules for asynchronous copies and the barriers in shared memory that they signal.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

const char* const shared_buffer = ".shared .align 128 .b8 buffer[2048];\n.shared .align 8 .b64 gate;\n";
/// r21, w5: this thread's 16 bytes; r19, w4: the barrier; w6: the barrier by its generic address.
const char* const places =
    "mov.u32 r20, buffer;\nmad.lo.u32 r21, i, 16, r20;\ncvt.u64.u32 w5, r21;\nmov.u32 r19, "
    "gate;\ncvt.u64.u32 w4, r19;\n"
    "cvta.shared.u64 w6, w4;\nst.shared.v4.b32 [r21], {0, 0, 0, 0};\nbar.sync 0;\n";
const char* const take =
    "bar.sync 0;\nxor.b32 r22, i, 37;\nmad.lo.u32 r22, r22, 16, r20;\nld.shared.v4.b32 {r0, r1, r2, r3}, "
    "[r22];\n"
    "st.global.v4.b32 [out], {r0, r1, r2, r3};\n";

std::string gate_init(const std::string& count) {
  return "setp.eq.u32 p, i, 0;\n@p mbarrier.init.shared.b64 [r19], " + count + ";\nbar.sync 0;\n";
}
const char* const gate_wait = "waiting:\nmbarrier.test_wait.shared.b64 q, [r19], w7;\n@!q bra waiting;\n";

kernel copy_kernel(const form& f) {
  kernel k;
  k.globals = shared_buffer;
  k.in = {{"b64"}, {"b64"}};
  k.out = {"raw"};
  const std::string end = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
  if (f.has("commit_group") || f.has("wait_group") || f.has("wait_all")) {
    const std::string commit =
        f.has("commit_group") ? f.text + ";\n" : std::string("cp.async.commit_group;\n");
    const std::string wait = f.has("wait_group") ? f.text + " 0;\n"
                             : f.has("wait_all") ? f.text + ";\n"
                                                 : std::string("cp.async.wait_group 0;\n");
    k.body = std::string(places) + "cp.async.ca.shared.global [r21], [in], 16;\n" + commit + wait + take;
    return k;
  }
  if (f.has("mbarrier")) {  // each thread's arrival is triggered by its copy; without .noinc it is one more
                            // that is awaited
    const std::string gate = f.has("shared") || f.has("shared::cta") ? "[r19]" : "[w6]";
    k.body = std::string(places) + gate_init("128") + "cp.async.ca.shared.global [r21], [in], 16;\n" +
             write(f, {gate}) +
             (f.has("noinc") ? "mov.b32 r8, 0;\nwaiting:\nmbarrier.test_wait.parity.shared.b64 q, [r19], "
                               "r8;\n@!q bra waiting;\n"
                             : "mbarrier.arrive.shared.b64 w7, [r19];\n" + std::string(gate_wait)) +
             take;
    return k;
  }
  const std::string bytes = f.has("cg") ? "16" : "8";
  k.body =
      std::string(places) + write(f, {"[r21]", "[in]", bytes}) +
      (f.has("cg") ? ""
                   : write(f, {"[r21+8]", "[in+16]", "4"}) + write(f, {"[r21+12]", "[in+20]", "4", "2"})) +
      end + take;
  return k;
}

/// One thread copies all of the block's bytes; the barrier counts them.
kernel bulk_kernel(const form& f) {
  kernel k;
  k.globals = shared_buffer;
  k.in = {{"b64"}, {"b64"}};
  k.out = {"raw"};
  const bool to_shared = f.modifiers.size() > 2 && f.modifiers[2].substr(0, 6) == "shared";
  k.body = std::string(places) + gate_init("1");
  if (to_shared) {
    k.body +=
        "mov.b32 r8, 0;\n@p fence.proxy.async.shared::cta;\n@p mbarrier.arrive.expect_tx.shared.b64 w7, "
        "[r19], 2048;\n"
        "mov.u32 r9, %ctaid.x;\nmul.wide.u32 w8, r9, 8192;\nld.param.u64 w9, [pin];\nadd.u64 w9, w9, "
        "w8;\n@p " +
        f.text +
        " [r20], [w9], 2048, [r19];\n"
        "waiting:\nmbarrier.try_wait.parity.shared.b64 q, [r19], r8;\n@!q bra waiting;\n" +
        take;
    return k;
  }
  // Out of shared memory, in a group.
  const std::string copy = f.has("bulk_group") ? f.text : "cp.async.bulk.global.shared::cta.bulk_group";
  const std::string commit = f.has("commit_group") ? f.text : "cp.async.bulk.commit_group";
  const std::string wait = f.has("wait_group") ? f.text : "cp.async.bulk.wait_group";
  k.scratch = 6 * 2048;
  k.body +=
      "ld.global.v4.b32 {r0, r1, r2, r3}, [in];\nst.shared.v4.b32 [r21], {r0, r1, r2, r3};\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\nmov.u32 r9, %ctaid.x;\nmul.wide.u32 w8, r9, "
      "2048;\nadd.u64 w8, mem, w8;\n@p " +
      copy + " [w8], [r20], 2048;\n@p " + commit + ";\n@p " + wait + " 0;\n";
  return k;
}

kernel gate_kernel(const form& f) {
  kernel k;
  k.globals = shared_buffer;
  k.in = {{"b64"}};
  k.out = {"raw", "b32"};
  const bool shared = f.has("shared") || f.has("shared::cta");
  const std::string gate = shared ? "[r19]" : "[w6]", what = f.modifiers.at(0);
  const bool parity = f.has("parity"), drops = what == "arrive_drop";
  std::string init = gate_init("128"), arrive = "mbarrier.arrive.shared.b64 w7, [r19];\n", wait = gate_wait,
              after;
  if (what == "init") init = "setp.eq.u32 p, i, 0;\n@p " + write(f, {gate, "128"}) + "bar.sync 0;\n";
  if (what == "inval") after = "bar.sync 0;\n@p " + write(f, {gate});
  if (what == "arrive" || drops) {
    if (f.has("expect_tx")) {
      arrive = write(f, {"w7", gate, "0"});
    } else if (f.has("noComplete")) {
      init = gate_init("256");
      arrive = write(f, {"w8", gate, "1"}) + "mbarrier.arrive.shared.b64 w7, [r19];\n";
    } else {
      arrive = write(f, {"w7", gate});
    }
  }
  if (what == "expect_tx") arrive = write(f, {gate, "0"}) + arrive;
  if (what == "pending_count")
    arrive += write(f, {"d1", "w7"}) + "setp.le.u32 p, d1, 128;\n", after = "selp.u32 d1, 1, 0, p;\n";
  if (what == "test_wait" || what == "try_wait") {
    wait = "mov.b32 r8, 0;\nwaiting:\n" + write(f, {"q", gate, parity ? "r8" : "w7"}) + "@!q bra waiting;\n";
  }
  k.body = std::string(places) + "mov.b32 d1, 1;\n" + init + "st.shared.b64 [r21], a;\n" + arrive + wait +
           take + after;
  return k;
}

}  // namespace

std::optional<kernel> asynchronous_rule(const form& f) {
  if (f.family == "mbarrier" && !f.modifiers.empty()) return gate_kernel(f);
  if (f.family == "cp" && f.has("async")) return f.has("bulk") ? bulk_kernel(f) : copy_kernel(f);
  if (f.family == "elect") {
    kernel k;
    k.out = {"pred", "pred"};
    k.body = "setp.eq.u32 d1, l, l;\n" + f.text + " _|d, 0xffffffff;\n";
    return k;
  }
  return {};
}

}  // namespace conformance
