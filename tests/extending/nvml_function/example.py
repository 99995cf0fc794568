"""nvmlExampleFunction asks the server's helper."""
import tables

TARGETS = ["api_nvml_test", "outboard_shim_nvml"]


def apply(copy):
    tables.append(copy, "nvml", "power", "CALL(nvmlExampleFunction, in device, out value)")
    copy.append("src/api/nvml/prototypes.def", "PROTOTYPE(nvmlExampleFunction, nvmlDevice_t, unsigned*)\n")


def check(shop):
    """The mock device fills outputs with a pattern."""
    shop.cuda("""
nvml = CDLL("libnvidia-ml.so.1")
ok(nvml.nvmlInit_v2())
device, value = c_void_p(), c_uint(0)
ok(nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(device)))
ok(nvml.nvmlExampleFunction(device, byref(value)))
assert value.value != 0
""")
    shop.unit_tests("api_nvml_test", "*")
