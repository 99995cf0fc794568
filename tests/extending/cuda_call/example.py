"""cuExampleCall waits for its reply."""
from workshop import Failed

NEEDS = ["cuda_release"]
TARGETS = ["api_cuda_test", "outboard_shim_cuda"]


def apply(copy):
    copy.append("src/api/cuda/device.def", "CALL(cuExampleCall, out value, in dev; since 13010, noctx)\n")


def check(shop):
    """The mock answers what it does not know with zeros, so the value comes from the device."""
    trace = shop.cuda("""
value = c_int(77)
ok(cuda.cuExampleCall(byref(value), 0))
assert value.value == 0, value.value
address, status = address_of("cuExampleCall")
assert address == cast(cuda.cuExampleCall, c_void_p).value and status == 0
assert address_of("cuExampleCall", 13000) == (None, 2)
""")
    if "cuExampleCall" not in trace:
        raise Failed(f"the trace does not have cuExampleCall:\n{trace}")
    shop.unit_tests("api_cuda_test", "*")
    shop.run(["python3", "-B", "tests/shim/exports_test.py", shop.build / "lib/outboard/libcuda.so.1", "src/api/cuda",
              "plain", "libcuda.so.1", "600"])
