"""cuExamplePost does not wait."""
import tables
from workshop import Failed

TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    tables.append_cuda(copy, "profiler", "POST(cuExamplePost, in value)")


def check(shop):
    trace = shop.cuda("""
ok(cuda.cuExamplePost(5))
ok(cuda.cuCtxSynchronize())
ok(cuda.cuCtxSetCurrent(None))
assert cuda.cuExamplePost(5) == 201, "the line does not say noctx"
""")
    if not any("cuExamplePost" in line and "posted" in line for line in trace.splitlines()):
        raise Failed(f"cuExamplePost was not posted:\n{trace}")
