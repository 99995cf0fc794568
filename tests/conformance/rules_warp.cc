// Rules for instructions in which lanes and warps meet: shuffles, votes, matches, reductions, barriers.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

/// Whole warps, segments of 8 and of 16 lanes, and the first 20 lanes alone.
kernel shuffle_kernel(const form& f) {
  const bool up = f.has("up"), idx = f.has("idx");
  const std::string whole = up ? "0" : "0x1f", eights = up ? "0x1800" : "0x181f",
                    halves = up ? "0x1000" : "0x100f";
  kernel k;
  k.in = {{"b32"}, {"u32", values::small}};
  k.out = {"b32", "pred", "b32", "pred", "b32", "pred", "b32", "pred"};
  k.body = write(f, {"d|d1", "a", "b", whole, "0xffffffff"}) +
           write(f, {"d2|d3", "a", "b", eights, "0xffffffff"}) +
           write(f, {"d4|d5", "a", "3", halves, "0xffffffff"});
  // With the first 20 lanes, only these may be read: idx takes the operand modulo 20, the others 4
  // lanes on.
  k.body += "mov.b32 d6, 77;\nsetp.eq.u32 d7, l, 1;\nsetp.lt.u32 p, l, 20;\n@!p bra after;\n";
  k.body += idx ? "rem.u32 r0, b, 20;\n" + write(f, {"d6|d7", "a", "r0", whole, "0xfffff"})
                : write(f, {"d6|d7", "a", f.has("bfly") ? "3" : "0", whole, "0xfffff"});
  k.body += "after:\nbar.warp.sync 0xffffffff;\n";
  return k;
}

kernel vote_kernel(const form& f) {
  kernel k;
  const std::string r = f.has("ballot") ? "b32" : "pred";
  k.in = {{"pred"}, {"b32"}};
  k.out = {r, r, r, r};
  // Mixed, all true, all false, and by the odd lanes alone.
  k.body = "setp.eq.u32 q, l, l;\n" + write(f, {"d", "a", "0xffffffff"}) +
           write(f, {"d1", "q", "0xffffffff"}) + write(f, {"d2", "!q", "0xffffffff"}) +
           "and.b32 r0, l, 1;\nsetp.ne.u32 p, r0, 0;\n" +
           (r == "pred" ? "setp.ne.u32 d3, l, l;\n" : std::string("mov.b32 d3, 5;\n")) + "@!p bra after;\n" +
           write(f, {"d3", "!a", "0xaaaaaaaa"}) + "after:\nbar.warp.sync 0xffffffff;\n";
  return k;
}

kernel match_kernel(const form& f) {
  const std::string t = f.type();
  kernel k;
  k.in = {{t, values::small}};
  const std::string rem = "rem.u" + t.substr(1), small = t == "b64" ? "w0" : "r0",
                    one = t == "b64" ? "w1" : "r1";
  k.body = rem + " " + small + ", a, 5;\nmov." + t + " " + one + ", 7;\n";
  if (f.has("all")) {
    k.out = {"b32", "pred", "b32", "pred", "b32"};
    k.body += write(f, {"d|d1", small, "0xffffffff"}) + write(f, {"d2|d3", one, "0xffffffff"}) +
              write(f, {"d4", small, "0xffffffff"});
  } else {
    k.out = {"b32", "b32", "b32"};
    k.body += write(f, {"d", small, "0xffffffff"}) + write(f, {"d1", one, "0xffffffff"}) +
              "mov.b32 d2, 9;\nsetp.ge.u32 p, l, 13;\n@!p bra after;\n" +
              write(f, {"d2", small, "0xffffe000"}) + "after:\nbar.warp.sync 0xffffffff;\n";
  }
  return k;
}

kernel redux_kernel(const form& f) {
  kernel k;
  k.in = {{f.type()}};
  k.out = {f.type(), f.type()};
  k.body = write(f, {"d", "a", "0xffffffff"}) + "mov.b32 d1, 9;\nsetp.ge.u32 p, l, 13;\n@!p bra after;\n" +
           write(f, {"d1", "a", "0xffffe000"}) + "after:\nbar.warp.sync 0xffffffff;\n";
  return k;
}

kernel activemask_kernel(const form& f) {
  kernel k;
  k.out = {"b32", "b32"};
  k.body = write(f, {"d"}) + "mov.b32 d1, 0;\nsetp.lt.u32 p, l, 7;\n@!p bra after;\nbar.warp.sync 0x7f;\n" +
           write(f, {"d1"}) + "after:\nbar.warp.sync 0xffffffff;\n";
  return k;
}

const char* const exchange = "mov.u32 r20, buffer;\nmad.lo.u32 r21, i, 4, r20;\nst.shared.b32 [r21], a;\n";
const char* const take = "xor.b32 r22, i, 97;\nmad.lo.u32 r22, r22, 4, r20;\nld.shared.b32 d, [r22];\n";

std::optional<kernel> barrier_kernel(const form& f) {
  kernel k;
  k.globals = ".shared .align 16 .b8 buffer[1024];\n";
  k.in = {{"b32"}, {"pred"}};
  k.out = {"b32"};
  if (f.has("warp")) {
    k.body = std::string(exchange) + write(f, {"0xffffffff"}) +
             "xor.b32 r22, i, 17;\nmad.lo.u32 r22, r22, 4, r20;\nld.shared.b32 d, [r22];\n";
    return k;
  }
  if (f.has("cluster")) {  // a cluster of one block
    if (f.has("wait")) {
      k.body = std::string(exchange) + "barrier.cluster.arrive.aligned;\n" + f.text + ";\n" + take;
    } else {
      k.body = std::string(exchange) + f.text + ";\nbarrier.cluster.wait.aligned;\n" + take;
    }
    return k;
  }
  if (f.has("red")) {
    const bool popc = f.has("popc");
    const std::string r = popc ? "u32" : "pred";
    k.out = {"b32", r, r, r};
    k.body = std::string(exchange) + write(f, {"d1", "0", "b"}) + take + "setp.lt.u32 q, i, 200;\n" +
             write(f, {"d2", "1", "q"}) + write(f, {"d3", "1", "128", "!q"});
    return k;
  }
  if (f.has("arrive")) {  // half of the warps arrive and continue, the others wait for them
    k.body =
        std::string(exchange) + "mov.b32 d, 3;\nsetp.lt.u32 p, i, 64;\n@p bra bring;\n" +
        (f.family == "bar" ? "bar.sync 1, 128;\n" : "barrier.sync 1, 128;\n") +
        "sub.u32 r22, i, 64;\nmad.lo.u32 r22, r22, 4, r20;\nld.shared.b32 d, [r22];\nbra after;\nbring:\n" +
        write(f, {"1", "128"}) + "after:\nbar.sync 0;\n";
    return k;
  }
  if (!f.has("sync")) return {};
  // All threads, then a named one for the first half.
  k.out = {"b32", "b32"};
  k.body = std::string(exchange) + write(f, {"0"}) + take +
           "bar.sync 0;\nst.shared.b32 [r21], t;\nmov.b32 d1, 4;\nsetp.ge.u32 p, i, 64;\n@p bra after;\n" +
           write(f, {"3", "64"}) +
           "xor.b32 r22, i, 33;\nmad.lo.u32 r22, r22, 4, r20;\nld.shared.b32 d1, [r22];\nafter:\n";
  return k;
}

}  // namespace

std::optional<kernel> warp_rule(const form& f) {
  if (f.family == "shfl" && f.has("sync")) return shuffle_kernel(f);
  if (f.family == "vote" && f.has("sync")) return vote_kernel(f);
  if (f.family == "match") return match_kernel(f);
  if (f.family == "redux" && f.type() != "f32") return redux_kernel(f);
  if (f.family == "activemask") return activemask_kernel(f);
  if (f.family == "bar" || f.family == "barrier") return barrier_kernel(f);
  return {};
}

}  // namespace conformance
