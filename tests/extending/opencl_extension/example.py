"""clExampleExtension belongs to an extension that no platform has; a program that asks without a platform finds it."""
import sys

import tables

TARGETS = ["api_opencl_test", "outboard_shim_opencl"]


def apply(copy):
    tables.append(copy, "opencl", "extensions",
                  "EXTENSION(cl_example_extension, CALL, clExampleExtension, in buffer, out size)")
    copy.after("src/api/opencl/headers.hh", "clSetContentSizeBufferPoCL",
               "CL_API_ENTRY cl_int CL_API_CALL clExampleExtension(cl_mem buffer, cl_ulong* size);\n")


def check(shop):
    shop.run([sys.executable, "-c", """
import sys
from ctypes import *
library = CDLL(sys.argv[1])
library.clGetExtensionFunctionAddress.restype = c_void_p
address = library.clGetExtensionFunctionAddress(b"clExampleExtension")
assert address and not library.clGetExtensionFunctionAddress(b"clExampleNothing")
size = c_ulong()
assert CFUNCTYPE(c_int, c_void_p, c_void_p)(address)(None, byref(size)) == -38, "CL_INVALID_MEM_OBJECT"
""", shop.build / "lib/outboard/libOutboardOpenCL.so.1"])
    shop.unit_tests("api_opencl_test", "*")
