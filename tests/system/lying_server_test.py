"""A server that lies about code, to get more of the program's memory than its launches carry: the session ends before a
byte behind an argument leaves, and the program gets an error that is reported in one line. A server that says less than
the program's own image is believed in nothing, and programs with images that cannot be read here still run."""
import struct
import subprocess
import unittest

from damaged_replies import DamagedReplies
from outboard_testing import program, program_environment
from wrong_replies_test import OPCODES, DEVICE_UNAVAILABLE

SECRET = b"the secret of us"
KERNEL = b"takes_two"
# In the kernel table behind the name: two flags, the bytes of all parameters, 14 numbers, then the parameters.
TOTAL, COUNT, PARAMETERS = 2, 62, 66


def table_with(*sizes, total=None, known=1):
    """Changes the layout of the kernel's two parameters: (offset, size) each."""
    def change(payload):
        at = payload.find(KERNEL) + len(KERNEL)
        assert at > len(KERNEL) and struct.unpack_from("<I", payload, at + COUNT) == (2,), payload
        changed = bytearray(payload)
        changed[at] = known
        end = sizes[-1][0] + sizes[-1][1] if total is None else total
        struct.pack_into("<I", changed, at + TOTAL, end)
        for i, place in enumerate(sizes):
            struct.pack_into("<II", changed, at + PARAMETERS + 8 * i, *place)
        return bytes(changed)
    return change


def layout_of(*numbers):
    """The reply to cuFuncGetParamInfo: a code, then offsets and sizes."""
    return lambda payload: struct.pack(f"<iQ{len(numbers)}Q", 0, len(numbers), *numbers)


class LyingServer(DamagedReplies):
    daemon = None

    def run_client(self, way, function, change, **options):
        """The codes that the program printed, and what it wrote to stderr; `sent` is what left it."""
        self.daemon = self.daemon or self.serve(**options)
        proxy = self.proxy_of(self.daemon)
        self.sent = bytearray()
        note = proxy.note
        proxy.note = lambda header, payload, asked: (self.sent.extend(payload), note(header, payload, asked))[1]
        client = subprocess.Popen(program("lying_layout", way), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=program_environment(proxy.url))
        self.addCleanup(self.end, client)
        self.wait_for_line(client, "ready")
        if change:
            proxy.damage(OPCODES[function], change)
        out, err = client.communicate("\n", timeout=30)
        self.assertEqual(client.returncode, 0, err)
        if change:
            self.assertEqual(proxy.damaged, 1, "the server lied")
        self.sessions_are_gone(self.daemon)
        return out.split(), err

    def refused(self, way, function, change, codes, **options):
        with self.subTest(way=way, function=function):
            got, err = self.run_client(way, function, change, **options)
            self.assertEqual(got, codes, err)
            self.assertIn(f"the server's reply to {function} is malformed", err)
            self.assertEqual(err.count("\n"), 1, "it is reported in one line")
            self.assertNotIn(SECRET, self.sent, "nothing behind an argument left the program")

    AT_LAUNCH = ["0"] + [DEVICE_UNAVAILABLE] * 3
    AT_LOAD = [DEVICE_UNAVAILABLE] * 4

    def test_a_larger_parameter_gets_nothing(self):
        large = table_with((0, 4096), (4096, 4))
        for way, function in (("module", "cuModuleLoadData"), ("graph", "cuModuleLoadData"),
                              ("library", "cuLibraryLoadData")):
            self.refused(way, function, large, self.AT_LAUNCH)
        self.refused("module", "cuModuleLoadData", table_with((0, 8), (8, 8)), self.AT_LAUNCH)
        self.refused("module", "cuModuleLoadData", table_with((8, 8), (16, 4)), self.AT_LAUNCH)

    def test_a_server_that_says_less_changes_nothing(self):
        got, err = self.run_client("module", "cuModuleLoadData", table_with((0, 8), (8, 4), known=0))
        self.assertEqual((got, err), (["0"] * 4, ""))
        self.assertNotIn(SECRET, self.sent)

    def test_a_linked_image_ends_where_the_servers_bytes_end(self):
        def longer(payload):  # the fatbin's own size, behind its magic, version and head
            at = payload.find(b"\x50\xed\x55\xba")
            assert at > 0, payload
            changed = bytearray(payload)
            size, = struct.unpack_from("<Q", changed, at + 8)
            struct.pack_into("<Q", changed, at + 8, size + 4096)
            return bytes(changed)
        self.refused("link", "cuLinkComplete", longer, self.AT_LOAD)

    def test_a_linked_kernel_takes_what_its_inputs_take(self):
        def wider(payload):
            assert payload.count(b".u64 place") == 1, payload
            return payload.replace(b".u64 place", b".b8 p[999]")
        self.refused("link", "cuLinkComplete", wider, self.AT_LOAD)

    def test_an_image_that_cannot_be_read_here_still_runs(self):
        self.assertEqual(self.run_client("unreadable", None, None, device="mock"), (["0"] * 4, ""))

    def test_what_a_driver_says_of_such_an_image_has_limits(self):
        for numbers in ((0, 8, 8, 65536), (0, 40000), (0, 8, 4, 4), (0, 8, 1 << 40, 8), (0, 8, 8)):
            self.refused("unreadable", "cuFuncGetParamInfo", layout_of(*numbers), self.AT_LAUNCH, device="mock")


if __name__ == "__main__":
    unittest.main()
