"""cuExampleLocal is answered by the front-end."""
from workshop import Failed

NEEDS = ["cuda_release"]
TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    copy.append("src/api/cuda/device.def", "LOCAL(cuExampleLocal, out answer; since 13010, preinit)\n")
    copy.at_end("src/frontend/cuda/chapters/device.cc", """
CUresult ends::cuExampleLocal(int* answer) {
  if (!answer) return CUDA_ERROR_INVALID_VALUE;
  return *answer = 42, CUDA_SUCCESS;
}
""")


def check(shop):
    trace = shop.cuda("""
answer = c_int(0)
ok(cuda.cuExampleLocal(byref(answer)))
assert answer.value == 42 and cuda.cuExampleLocal(None) == 1
""")
    if not any("cuExampleLocal" in line and "local" in line for line in trace.splitlines()):
        raise Failed(f"cuExampleLocal was not answered locally:\n{trace}")
