"""cuExampleCall waits for its reply."""
import tables
from workshop import Failed

TARGETS = ["api_cuda_test", "outboard_shim_cuda"]


def apply(copy):
    tables.append_cuda(copy, "device", "CALL(cuExampleCall, out value, in dev; noctx)")


def check(shop):
    """The mock device answers what it does not know with zeros, so the value comes from the device."""
    trace = shop.cuda("""
value = c_int(77)
ok(cuda.cuExampleCall(byref(value), 0))
assert value.value == 0, value.value
address, status = address_of("cuExampleCall")
assert address == cast(cuda.cuExampleCall, c_void_p).value and status == 0
assert address_of("cuExampleCall", 12090) == (None, 2)
""")
    if "cuExampleCall" not in trace:
        raise Failed(f"the trace does not have cuExampleCall:\n{trace}")
    shop.unit_tests("api_cuda_test", "*")
    shop.python("tests/shim/exports_test.py", shop.build / "lib/outboard/libcuda.so.1", "src/api/cuda", "plain",
                "libcuda.so.1", "600")
