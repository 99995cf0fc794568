// The two kernels of the chains, as text.
#pragma once

namespace chains {

/// mix(to, from, n, value): to = 3 * from + value. spin(nowhere, rounds): takes its time.
inline constexpr char kernels[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry mix(.param .u64 to, .param .u64 from, .param .u32 n, .param .u32 value)
{
  .reg .pred %p;
  .reg .b32 %i, %n, %v, %x, %t, %b, %g;
  .reg .b64 %to, %from, %o, %a;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u32 %n, [n];
  ld.param.u32 %v, [value];
  mov.u32 %b, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %x, %tid.x;
  mad.lo.u32 %i, %b, %t, %x;
  mov.u32 %g, %nctaid.x;
  mul.lo.u32 %g, %g, %t;
more:
  setp.ge.u32 %p, %i, %n;
  @%p bra done;
  cvt.u64.u32 %o, %i;
  add.u64 %a, %from, %o;
  ld.u8 %x, [%a];
  mad.lo.u32 %x, %x, 3, %v;
  add.u64 %a, %to, %o;
  st.u8 [%a], %x;
  add.u32 %i, %i, %g;
  bra more;
done:
  ret;
}
.visible .entry spin(.param .u64 nowhere, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %n, %x;
  .reg .b64 %a;
  ld.param.u64 %a, [nowhere];
  ld.param.u32 %n, [rounds];
  mov.u32 %x, 1;
more:
  mad.lo.u32 %x, %x, 1664525, 1013904223;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra more;
  st.u32 [%a], %x;
  ret;
}
)";

}  // namespace chains
