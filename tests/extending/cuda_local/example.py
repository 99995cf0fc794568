"""cuExampleLocal is answered by the front-end."""
import tables
from workshop import Failed

TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    tables.append_cuda(copy, "device", "LOCAL(cuExampleLocal, out answer; preinit)")
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
