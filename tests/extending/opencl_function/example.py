"""clExampleFunction is one more function of cl.h."""
import tables

TARGETS = ["api_opencl_test", "outboard_shim_opencl"]


def apply(copy):
    tables.append(copy, "opencl", "platform", "CALL  (clExampleFunction,               in device, out value)")
    copy.at_end("src/frontend/opencl/chapters/platform.cc", """
cl_int clExampleFunction(cl_device_id device, cl_ulong* value) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  return value ? remote<opcode::clExampleFunction>(0, device, value) : CL_INVALID_VALUE;
}
""")


def check(shop):
    """That it builds says that both ends are there; no platform of this machine has the function."""
    shop.unit_tests("api_opencl_test", "*")
    shop.house("include_rules")
