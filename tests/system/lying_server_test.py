"""A server that lies about code, to get more of the program's memory than its launches carry: the session ends before
a byte behind an argument leaves, and the program's user is told. A server that says less changes nothing, and
programs with images that cannot be read here run still."""
import socket
import struct
import sys
import unittest

from malformed_replies_test import OPCODES, SUCCESS, UNAVAILABLE, Liar
from outboard_testing import AT_ONCE, SystemTest, run_program

SECRET = b"the secret of us"
KERNEL = b"takes_two"
# In the kernel table behind the name: two flags, the bytes of all parameters, 14 numbers, then the parameters.
TOTAL, COUNT, PARAMETERS = 2, 62, 66

PROGRAM = r"""
import ctypes as c
d = c.CDLL("libcuda.so.1")
head = b".version 7.0\n.target sm_52\n.address_size 64\n"
code = head + b".visible .entry takes_two(.param .u64 place, .param .u32 n) { ret; }\n"
unreadable = b".version 7.0\n.target sm_52\n.visible .entry takes_two(place, count)\n"

class argument(c.Structure):
    _fields_ = [("value", c.c_uint64), ("behind", c.c_char * 8192)]

arguments = [argument(0, b"the secret of us" * 512) for _ in range(2)]
pointers = (c.c_void_p * 2)(*[c.addressof(a) for a in arguments])
x, m, f, k = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_void_p()
made = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)]
assert made == [0] * 3, made

def launch(function):
    return d.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)

def by_module(image=code):
    loaded = d.cuModuleLoadData(c.byref(m), image)
    if loaded == 0:
        d.cuModuleGetFunction(c.byref(f), m, b"takes_two")
    return loaded, launch(f)

def by_library():
    loaded = d.cuLibraryLoadData(c.byref(m), code, None, None, 0, None, None, 0)
    if loaded == 0:
        d.cuLibraryGetKernel(c.byref(k), m, b"takes_two")
    return loaded, launch(k)

class node_parameters(c.Structure):
    _fields_ = [("function", c.c_void_p), ("sizes", c.c_uint * 7), ("parameters", c.c_void_p), ("extra", c.c_void_p),
                ("kernel", c.c_void_p), ("context", c.c_void_p)]

def in_a_graph():
    g, node = c.c_void_p(), c.c_void_p()
    loaded = d.cuModuleLoadData(c.byref(m), code)
    if loaded == 0:
        d.cuModuleGetFunction(c.byref(f), m, b"takes_two")
        d.cuGraphCreate(c.byref(g), 0)
    p = node_parameters(f, (c.c_uint * 7)(1, 1, 1, 1, 1, 1, 0), c.addressof(pointers))
    return loaded, d.cuGraphAddKernelNode_v2(c.byref(node), g, None, 0, c.byref(p))

def linked():
    link, image, size = c.c_void_p(), c.c_void_p(), c.c_size_t()
    d.cuLinkCreate_v2(0, None, None, c.byref(link))
    d.cuLinkAddData_v2(link, 1, code + b"\0", len(code) + 1, b"takes_two.ptx", 0, None, None)
    done = d.cuLinkComplete(link, c.byref(image), c.byref(size))
    return by_module(image) if done == 0 else (done, done)

print(*WAY)
print(d.cuCtxSynchronize())
"""


def table_with(*places, known=1):
    """Changes the layout of the kernel's two parameters: (offset, size) each."""
    def change(payload):
        at = payload.find(KERNEL) + len(KERNEL)
        assert at > len(KERNEL) and struct.unpack_from("<I", payload, at + COUNT) == (2,), payload
        changed = bytearray(payload)
        changed[at] = known
        struct.pack_into("<I", changed, at + TOTAL, places[-1][0] + places[-1][1])
        for i, place in enumerate(places):
            struct.pack_into("<II", changed, at + PARAMETERS + 8 * i, *place)
        return bytes(changed)
    return change


def layout_of(*numbers):
    """The reply to cuFuncGetParamInfo: a code, then offsets and sizes."""
    return lambda payload: struct.pack(f"<iQ{len(numbers)}Q", 0, len(numbers), *numbers)


class LyingServer(SystemTest):
    def run_client(self, daemon, way, function, change):
        """The codes of load, launch and a later call, and what was said to the user. `sent` is what the client sent."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
            liar = Liar(listener, url, daemon.tcp, OPCODES[function], change)
            self.addCleanup(liar.close)
            done = run_program([sys.executable, "-c", PROGRAM.replace("WAY", way)], url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(liar.lies > 0, change is not None, "the server lied")
        self.sent = b"".join(liar.sent)
        return done.stdout.split(), done.stderr

    def refused(self, daemon, way, function, change, codes):
        with self.subTest(way=way, function=function):
            got, said = self.run_client(daemon, way, function, change)
            self.assertEqual(got, codes, said)
            self.assertIn(f"the server's reply to {function} is malformed", said)
            self.assertNotIn(SECRET, self.sent, "nothing behind an argument left the program")

    AT_LAUNCH = [SUCCESS, UNAVAILABLE, UNAVAILABLE]
    AT_LOAD = [UNAVAILABLE] * 3

    def test_a_larger_parameter_gets_nothing(self):
        daemon = self.serve(config=AT_ONCE)
        large = table_with((0, 4096), (4096, 4))
        self.refused(daemon, "by_module()", "cuModuleLoadData", large, self.AT_LAUNCH)
        self.refused(daemon, "in_a_graph()", "cuModuleLoadData", large, self.AT_LAUNCH)
        self.refused(daemon, "by_library()", "cuLibraryLoadData", large, self.AT_LAUNCH)
        self.refused(daemon, "by_module()", "cuModuleLoadData", table_with((8, 8), (16, 4)), self.AT_LAUNCH)

    def test_a_server_that_says_less_changes_nothing(self):
        daemon = self.serve(config=AT_ONCE)
        for change in (None, table_with((0, 8), (8, 4), known=0)):
            self.assertEqual(self.run_client(daemon, "by_module()", "cuModuleLoadData", change), ([SUCCESS] * 3, ""))
            self.assertNotIn(SECRET, self.sent)

    def test_a_linked_image_ends_where_the_servers_bytes_end(self):
        def longer(payload):  # the fatbin's own size, behind its magic, version and head
            at = payload.find(b"\x50\xed\x55\xba")
            assert at > 0, payload
            changed = bytearray(payload)
            size, = struct.unpack_from("<Q", changed, at + 8)
            struct.pack_into("<Q", changed, at + 8, size + 4096)
            return bytes(changed)
        self.refused(self.serve(config=AT_ONCE), "linked()", "cuLinkComplete", longer, self.AT_LOAD)

    def test_a_linked_kernel_takes_what_its_inputs_take(self):
        def wider(payload):
            assert payload.count(b".u64 place") == 1, payload
            return payload.replace(b".u64 place", b".b8 p[999]")
        self.refused(self.serve(config=AT_ONCE), "linked()", "cuLinkComplete", wider, self.AT_LOAD)

    def test_what_a_driver_says_of_an_image_that_nobody_reads_has_limits(self):
        daemon = self.serve(config=AT_ONCE, device="mock")
        way = "by_module(unreadable)"
        self.assertEqual(self.run_client(daemon, way, "cuFuncGetParamInfo", None), ([SUCCESS] * 3, ""))
        for numbers in ((0, 8, 8, 65536), (0, 8, 4, 4), (0, 8, 1 << 40, 8)):
            self.refused(daemon, way, "cuFuncGetParamInfo", layout_of(*numbers), self.AT_LAUNCH)


if __name__ == "__main__":
    unittest.main()
