"""cuExamplePost does not wait."""
from workshop import Failed

NEEDS = ["cuda_release"]
TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    copy.append("src/api/cuda/profiler.def", "POST(cuExamplePost, in value; since 13010)\n")


def check(shop):
    trace = shop.cuda("""
ok(cuda.cuExamplePost(5))
ok(cuda.cuCtxSynchronize())
ok(cuda.cuCtxSetCurrent(None))
assert cuda.cuExamplePost(5) == 201, "the line does not say noctx"
""")
    if not any("cuExamplePost" in line and "posted" in line for line in trace.splitlines()):
        raise Failed(f"cuExamplePost was not posted:\n{trace}")
