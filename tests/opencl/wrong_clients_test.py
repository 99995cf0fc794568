"""Clients of an OpenCL session that are wrong on purpose: each loses its own session at most, the daemon goes on, and a
program finds its device afterwards. usage: wrong_clients_test.py [ATTACKS]"""
import fcntl
import itertools
import mmap
import os
import hashlib
import pathlib
import random
import socket
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import HEADER, LIBRARY, WELCOME, Client, SystemTest, program, run_program  # noqa: E402

ATTACKS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
OPENCL, POST, CALL, REPLY, DESCRIPTOR = 6, 5, 6, 7, 15
CONTEXT, QUEUE = 34, 35
F_SEAL_FUTURE_WRITE = 16  # not in every Python
FINE = 1 << 10  # CL_MEM_SVM_FINE_GRAIN_BUFFER
SEED = 20261122
UPLOAD, BUILD_FILES = 200000, 200002
PLATFORM, DEVICE = (kind << 52 | 1 << 32 for kind in (32, 33))

TABLES = pathlib.Path(__file__).resolve().parent.parent.parent / "src/api/opencl/opcodes.golden"
OPCODES = {name: int(code) for code, name in (line.split() for line in TABLES.read_text().splitlines())}


def request(opcode, payload, ticket=1, kind=CALL):
    return HEADER.pack(len(payload), kind, 0, opcode, 1, ticket, 0, 0) + payload


def handle(kind, index=0):
    return kind << 52 | 1 << 32 | index << 4


def text(value):
    return struct.pack("<Q", len(value)) + value


def build_files(path=b"/inc/x.h", here=b"/home/u", folder=b"/inc", content=b"int a;", digest=None, **more):
    """One file for a build, with the content behind the request."""
    size, how = more.get("size", len(content)), more.get("how", 2)
    return (text(here) + struct.pack("<Q", 1) + text(folder) + struct.pack("<Q", 1) + text(path)
            + (digest or hashlib.sha256(content).digest()) + struct.pack("<QB", size, how)
            + struct.pack("<QQB", 0, len(content), 1) + content)


class OpenClClient:
    """For a SystemTest: clients that speak OpenCL's messages by themselves."""

    def setUp(self):
        super().setUp()
        self.tickets = itertools.count(1)

    def client(self, over):
        client = Client(over)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(OPENCL)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def ask(self, client, function, *words, tail=b""):
        """The code and the rest of the answer, and the descriptor that came before it."""
        client.send(request(OPCODES.get(function, function), struct.pack(f"<{len(words)}Q", *words) + tail, next(self.tickets)))
        file, kind = None, None
        while kind != REPLY:
            kind, payload = client.receive()
            self.assertIsNotNone(kind, f"{function} ended the session")
            if kind == DESCRIPTOR:
                _, files, _, _ = socket.recv_fds(client.socket, 1, 1)
                file = files[0]
                self.addCleanup(os.close, file)
        return struct.unpack("<i", payload[:4])[0], payload[4:], file


class Hostile(OpenClClient, SystemTest):
    def attacks(self):
        """Payloads that no front-end sends, for ever."""
        chance = random.Random(SEED)
        codes = [*OPCODES.values(), *range(UPLOAD, UPLOAD + 8), 3000, 17001]
        values = [0, 1, 2 ** 64 - 1, 2 ** 63, 1 << 40, PLATFORM, DEVICE, handle(34), handle(36), handle(39, 9)]
        # A context that there is, then reads and writes of what there is not.
        context = struct.pack("<QQQQQ", handle(34), PLATFORM, 1, DEVICE, 0)
        while True:
            words = b"".join(struct.pack("<Q", chance.choice(values)) for _ in range(chance.randrange(12)))
            noise = chance.randbytes(chance.randrange(40))
            yield [(OPCODES["clCreateContext"], context),
                   *((chance.choice(codes), words + noise) for _ in range(chance.randrange(1, 6)))]

    def works(self, daemon):
        done = run_program(program("opencl_vector_add"), daemon.unix,
                           OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def answers(self, daemon, payload):
        """Is it answered, or the end of its session?"""
        client = self.client(daemon.unix)
        try:
            client.send(request(BUILD_FILES, payload))
            return client.receive()[0] == REPLY
        except (OSError, EOFError, ValueError, struct.error, AssertionError):
            return False
        finally:
            client.close()

    def test_files_for_builds_lie_below_their_folder_or_end_the_session(self):
        daemon = self.serve()
        self.assertTrue(self.answers(daemon, build_files()))
        self.assertTrue(self.answers(daemon, build_files(how=1)))
        for wrong in ({"path": b"/../x.h"}, {"path": b"x.h"}, {"path": b"/a/../../x"}, {"path": b"/"}, {"path": b"/a\0b"},
                      {"path": b"/" + b"x" * 256}, {"here": b"../.."}, {"here": b""}, {"folder": b"/a/.."},
                      {"digest": b"0" * 32}, {"size": 5}, {"size": 7}, {"size": 2 ** 63}, {"how": 0}, {"how": 3}):
            self.assertFalse(self.answers(daemon, build_files(**wrong)), wrong)
        good = build_files()
        for size in range(0, len(good), 16):
            self.assertFalse(self.answers(daemon, good[:size]), size)
        self.sessions_are_gone(daemon)
        self.works(daemon)

    def test_each_loses_its_own_session_only(self):
        daemon = self.serve()
        self.works(daemon)
        answered = 0
        for _, attack in zip(range(ATTACKS), self.attacks()):
            client = self.client(daemon.unix)
            try:
                for ticket, (opcode, payload) in enumerate(attack, 1):
                    client.send(request(opcode, payload, ticket))
                    kind, _ = client.receive()
                    answered += kind == REPLY
            except (OSError, EOFError, ValueError, struct.error, AssertionError):
                pass
            client.close()
        print(f"{ATTACKS} attacks, {answered} answers")
        self.assertGreater(answered, ATTACKS // 2)
        self.sessions_are_gone(daemon)
        self.works(daemon)

    def fine_block(self, client, size, flags=FINE, alignment=0):
        code, rest, file = self.ask(client, "clSVMAlloc", handle(CONTEXT), flags, size, tail=struct.pack("<I", alignment))
        return code, struct.unpack("<Q", rest)[0] if code == 0 else 0, file

    def test_who_has_pages_of_a_worker_can_take_none_away(self):
        daemon = self.serve()
        client = self.client(daemon.unix)
        self.assertEqual(self.ask(client, "clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0)[0], 0)
        self.assertEqual(self.ask(client, "clCreateCommandQueueWithProperties", handle(QUEUE), handle(CONTEXT), DEVICE, 0)[0], 0)
        size = 3 * mmap.PAGESIZE
        code, address, file = self.fine_block(client, size)
        self.assertEqual((code, address % mmap.PAGESIZE), (0, 0))
        for new_size in (0, address, 1 << 50):
            self.assertRaises(OSError, os.ftruncate, file, new_size)
        for seal in (fcntl.F_SEAL_WRITE, F_SEAL_FUTURE_WRITE):
            self.assertRaises(OSError, fcntl.fcntl, file, fcntl.F_ADD_SEALS, seal)
        view = mmap.mmap(file, size, offset=address)
        self.assertEqual(view[:], bytes(size), "it shows what the worker had there before")

        def fill(value):
            code, *_ = self.ask(client, "clEnqueueSVMMemFill", handle(QUEUE), 0, 0, address, size, 1, tail=bytes([value]))
            self.assertEqual((code, self.ask(client, "clFinish", handle(QUEUE))[0]), (0, 0))

        fill(7)
        self.assertEqual(view[:], b"\7" * size)
        view.madvise(mmap.MADV_REMOVE)  # holes, not faults
        fill(8)
        self.assertEqual(view[:], b"\10" * size)
        # What is given back is the worker's alone, though the client keeps its view.
        self.assertEqual(self.ask(client, "clSVMFree", address)[0], 0)
        self.assertNotEqual(self.ask(client, "clSVMFree", address)[0], 0)
        view[:] = b"\11" * size
        again = [self.fine_block(client, size) for _ in range(20)]
        self.assertEqual([code for code, *_ in again], [0] * 20)
        for wanted in ((0,), (2 ** 64 - 1,), (2 ** 63,), (1 << 47,), (size, FINE, 3), (size, FINE, 1 << 31)):
            code, _, file = self.fine_block(client, *wanted)
            self.assertEqual((code != 0, file), (True, None), wanted)
        for function in ("clEnqueueSVMMap", "clEnqueueSVMUnmap"):
            extra = (1, address, 2 ** 63) if function.endswith("SVMMap") else (address + 2 ** 40,)
            tail = b"\0" if function.endswith("SVMMap") else b""
            self.assertNotEqual(self.ask(client, function, handle(QUEUE), 0, 0, *extra, tail=tail)[0], 0)
        client.close()
        self.sessions_are_gone(daemon)
        self.works(daemon)

    def test_without_descriptors_there_are_no_such_pages(self):
        daemon = self.serve()
        client = self.client(daemon.tcp)
        self.assertEqual(self.ask(client, "clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0)[0], 0)
        code, _, file = self.fine_block(client, 4096)
        self.assertEqual((code != 0, file), (True, None))


if __name__ == "__main__":
    unittest.main()
