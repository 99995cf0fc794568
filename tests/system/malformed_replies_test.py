"""A server whose replies cannot be: the session ends, says at which call, and every later call fails as after a lost
connection. A proxy makes a right server's replies to one function longer or shorter by a byte."""
import socket
import struct
import sys
import unittest

from outboard_testing import AT_ONCE, HEADER, SystemTest, opcodes, run_program
from recording import Relay

REPLY = 7  # a kind of frame
SUCCESS, UNAVAILABLE = "0", "46"  # codes of CUDA
OPCODES = opcodes("cuda")

# What the program calls: one that is read by hand, one that is read as its line in the table says.
CALLS = {
    "cuMemGetInfo_v2": "d.cuMemGetInfo_v2(c.byref(c.c_size_t()), c.byref(c.c_size_t()))",
    "cuEventElapsedTime": "d.cuEventElapsedTime(c.byref(c.c_float()), e, e)",
}
PROGRAM = """
import ctypes as c
d = c.CDLL("libcuda.so.1")
x, e = c.c_void_p(), c.c_void_p()
made = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x), d.cuEventCreate(c.byref(e), 0),
        d.cuEventRecord(e, None), d.cuCtxSynchronize()]
assert made == [0] * 6, made
print({call})
print(d.cuCtxSynchronize())
"""


class Liar(Relay):
    """A relay that falsifies the replies to one function: `lie` gives what a payload becomes; None: it does not."""

    def __init__(self, listener, url, server, opcode, lie):
        self.opcode, self.lie, self.lies = opcode, lie, 0
        super().__init__(listener, url, server, keeps=True)

    def changed(self, header, payload):
        size, kind, flags, opcode, *rest = HEADER.unpack(header)
        if self.lie and kind == REPLY and opcode == self.opcode:
            payload = self.lie(payload)
            self.lies += 1
        return HEADER.pack(len(payload), kind, flags, opcode, *rest) + payload

    def change(self, way):
        if way == 0:
            return super().change(way)
        waiting = bytearray()

        def whole_frames(data):
            waiting.extend(data)
            passed = b""
            while len(waiting) >= HEADER.size:
                end = HEADER.size + struct.unpack_from("<I", waiting)[0]
                if len(waiting) < end:
                    break
                passed += self.changed(waiting[:HEADER.size], waiting[HEADER.size:end])
                del waiting[:end]
            return passed
        return whole_frames


def longer_by(more):
    return lambda payload: payload + bytes(more) if more >= 0 else payload[:more]


class MalformedReplies(SystemTest):
    def through(self, daemon, name, more):
        """What the program printed, and what was said to its user."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
            relay = Liar(listener, url, daemon.tcp, OPCODES[name], longer_by(more))
            self.addCleanup(relay.close)
            done = run_program([sys.executable, "-c", PROGRAM.format(call=CALLS[name])], url)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split(), done.stderr

    def test_a_reply_that_does_not_fit_ends_the_session(self):
        daemon = self.serve(config=AT_ONCE)
        for name in CALLS:
            with self.subTest(name, more=0):
                self.assertEqual(self.through(daemon, name, 0), ([SUCCESS, SUCCESS], ""))
            for more in (1, -1):
                with self.subTest(name, more=more):
                    codes, said = self.through(daemon, name, more)
                    self.assertEqual(codes, [UNAVAILABLE, UNAVAILABLE])
                    self.assertIn(f"the server's reply to {name} is malformed", said)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
