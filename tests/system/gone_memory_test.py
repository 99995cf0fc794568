"""A program whose graph copies and fills memory that has gone since: on the cpu device that memory was its worker's own.
The launch fails with CUDA_ERROR_ILLEGAL_ADDRESS, the worker goes on, and the session ends in order."""
import sys
import unittest

from outboard_testing import CONFIG, SystemTest, run_program

PROGRAM = r"""
import ctypes as c, mmap
d = c.CDLL("libcuda.so.1")
HOST_TO_DEVICE, SIZE = 2, 1 << 20
pages = mmap.mmap(-1, SIZE)
place = c.c_void_p(c.addressof(c.c_char.from_buffer(pages)))
x, graph, node, made = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_void_p()
shown, block = c.c_uint64(), c.c_uint64()

class copy_end(c.Structure):
    _fields_ = [("at", c.c_size_t * 4), ("type", c.c_int), ("host", c.c_void_p), ("device", c.c_uint64),
                ("array", c.c_void_p), ("reserved", c.c_void_p), ("pitch", c.c_size_t), ("height", c.c_size_t)]

class copy(c.Structure):
    _fields_ = [("source", copy_end), ("target", copy_end), ("size", c.c_size_t * 3)]

class fill(c.Structure):
    _fields_ = [("target", c.c_uint64), ("pitch", c.c_size_t), ("value", c.c_uint), ("element", c.c_uint),
                ("width", c.c_size_t), ("height", c.c_size_t)]

def add_copy(source, target):
    ends = copy(copy_end(type=2, device=source), copy_end(type=2, device=target), (SIZE, 1, 1))
    return d.cuGraphAddMemcpyNode(c.byref(node), graph, None, c.c_size_t(0), c.byref(ends), x)

def add_fill(target):
    return d.cuGraphAddMemsetNode(c.byref(node), graph, None, c.c_size_t(0),
                                  c.byref(fill(target, 0, 7, 1, SIZE, 1)), x)

begun = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x),
         d.cuMemHostRegister_v2(place, c.c_size_t(SIZE), HOST_TO_DEVICE),
         d.cuMemHostGetDevicePointer_v2(c.byref(shown), place, 0), d.cuMemAlloc_v2(c.byref(block), c.c_size_t(SIZE)),
         d.cuGraphCreate(c.byref(graph), 0)]
begun += [ADD, d.cuGraphInstantiateWithFlags(c.byref(made), graph, c.c_uint64(0)), d.cuGraphLaunch(made, None),
          d.cuCtxSynchronize(), d.cuMemHostUnregister(place)]
assert begun == [0] * len(begun), begun
d.cuGraphLaunch(made, None)
print(d.cuCtxSynchronize())
"""
ILLEGAL_ADDRESS = "700"


class GoneMemory(SystemTest):
    def test_what_a_graph_names_may_go(self):
        daemon = self.serve(config=CONFIG)
        for add in ("add_copy(shown.value, block.value)", "add_copy(block.value, shown.value)", "add_fill(shown.value)"):
            with self.subTest(add):
                done = run_program([sys.executable, "-c", PROGRAM.replace("ADD", add)], daemon.unix)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, ILLEGAL_ADDRESS), done.stderr)
        self.sessions_are_gone(daemon)
        self.assertNotIn("signal", daemon.log())


if __name__ == "__main__":
    unittest.main()
