// Chooses the lane loops for this processor, once.
#include "ptx/lanes/steps.hh"

namespace outboard::ptx {

#ifdef OUTBOARD_LANES_X86
namespace lanes_v4 {
void fill(step_table& t);
}
namespace lanes_v3 {
void fill(step_table& t);
}
#endif
namespace lanes_base {
void fill(step_table& t);
}

const step_table& steps() {
  static const step_table table = [] {
    step_table t{};
#ifdef OUTBOARD_LANES_X86
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v4) {
      lanes_v4::fill(t);
      return t;
    }
    if (v3) {
      lanes_v3::fill(t);
      return t;
    }
#endif
    lanes_base::fill(t);
    return t;
  }();
  return table;
}

}  // namespace outboard::ptx
