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
from outboard_testing import HEADER, LIBRARY, WELCOME, Client, KeepsCompiled, SystemTest, opcodes, program, run_program  # noqa: E402

ATTACKS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
OPENCL, POST, CALL, REPLY, DESCRIPTOR = 6, 5, 6, 7, 15
CONTEXT, QUEUE, BUFFER = 34, 35, 36
F_SEAL_FUTURE_WRITE = 16  # not in every Python
FINE = 1 << 10  # CL_MEM_SVM_FINE_GRAIN_BUFFER
SEED = 20261122
UPLOAD, BUILD_FILES = 200000, 200002
DATA_OPEN, WRITE_PIECE, READ_PIECE, CATCH_UP = range(200008, 200012)
DATA, DATA_CONNECTIONS, DATA_FRAME = 5, 2, 9  # purpose, feature, kind of frame
PLATFORM, DEVICE = (kind << 52 | 1 << 32 for kind in (32, 33))

OPCODES = opcodes("opencl")


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


class OpenClClient(KeepsCompiled):
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
        codes = [*OPCODES.values(), *range(UPLOAD, UPLOAD + 12), 3000, 17001]
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

    def over_tcp(self, daemon):
        """A client with a context, a queue and a buffer of 2 MiB, and the number of its session."""
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(OPENCL, features=DATA_CONNECTIONS)
        self.assertEqual(kind, WELCOME, payload)
        for function, *words in (("clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0),
                                 ("clCreateCommandQueueWithProperties", handle(QUEUE), handle(CONTEXT), DEVICE, 0)):
            self.assertEqual(self.ask(client, function, *words)[0], 0)
        made = struct.pack("<QQQQQ", handle(BUFFER), handle(CONTEXT), 1, 2 << 20, 0) + struct.pack("<QQB", 0, 0, 0)
        self.assertEqual(self.ask(client, "clCreateBufferWithProperties", tail=made)[0], 0)
        return client, struct.unpack_from("<Q", payload, 10)[0]

    def beside(self, daemon, client, session, inward, context=CONTEXT):
        """A data connection of that session for its context: whether it was taken, and the number of one that comes."""
        link = Client(daemon.tcp)
        self.addCleanup(link.close)
        kind, payload = link.say_hello(DATA, question=struct.pack("<Q", session))
        self.assertEqual(kind, WELCOME, payload)
        code, rest, _ = self.ask(client, DATA_OPEN, handle(context), tail=struct.pack("<IQ", inward, 1) + payload[-64:-32] + bytes(4))
        return link, code, struct.unpack("<QI", rest)[1] if code == 0 and not inward else None

    @staticmethod
    def place(offset, size, form=0, memory=36):
        return struct.pack("<QBQQ8Q", handle(memory), form, offset, size, *[0] * 8)

    def write_piece(self, number, offset=0, size=4096, context=CONTEXT, queue=QUEUE, **where):
        return (struct.pack("<QQQ", handle(queue), 0, 0) + self.place(offset, size, **where)
                + struct.pack("<QQ", handle(context), number))

    def read_piece(self, number, connection, offset=0, size=4096, queue=QUEUE, **where):
        return (struct.pack("<QQQ", handle(queue), 0, 0) + self.place(offset, size, **where)
                + struct.pack("<QII", number, connection, 0))

    def test_pieces_are_written_and_read_where_they_may_be(self):
        daemon = self.serve()
        client, session = self.over_tcp(daemon)
        into, code, _ = self.beside(daemon, client, session, 1)
        self.assertEqual(code, 0)
        out_of, code, number = self.beside(daemon, client, session, 0)
        self.assertEqual(code, 0)
        content = random.Random(SEED).randbytes(1 << 20)

        def send(piece, bytes_):
            into.send(HEADER.pack(len(bytes_), DATA_FRAME, 0, 0, 0, piece, 0, 0) + bytes_)

        def come():
            kind, payload = out_of.receive()
            self.assertEqual(kind, DATA_FRAME)
            return payload

        send(7, content)
        self.assertEqual(self.ask(client, WRITE_PIECE, tail=self.write_piece(7, 5, 1 << 20))[0], 0)
        self.assertEqual(self.ask(client, READ_PIECE, tail=self.read_piece(1, number, 5, 1 << 20))[0], 0)
        self.assertEqual(come(), content)
        # Not of the size that was said, outside the buffer, of no queue, of no buffer, an image that is none.
        for piece, wrong in enumerate(({"size": 4095}, {"offset": 2 << 20}, {"queue": 37}, {"memory": 37}, {"form": 2}), 8):
            send(piece, bytes(4096))
            self.assertNotEqual(self.ask(client, WRITE_PIECE, tail=self.write_piece(piece, **wrong))[0], 0, wrong)
        # Of those the connection tells.
        for piece, wrong in enumerate(({"size": (1 << 20) + 1}, {"offset": 2 << 20}, {"queue": 37}, {"memory": 37}, {"form": 2}), 2):
            self.assertEqual(self.ask(client, READ_PIECE, tail=self.read_piece(piece, number, **wrong))[0], 0, wrong)
            self.assertEqual(come(), b"", wrong)
        self.assertNotEqual(self.ask(client, READ_PIECE, tail=self.read_piece(9, number + 50))[0], 0)
        self.assertEqual(self.ask(client, CATCH_UP)[0], 0)
        # The context that they are for is none.
        self.assertNotEqual(self.beside(daemon, client, session, 1, context=36)[1], 0)
        self.assertEqual(self.ask(client, READ_PIECE, tail=self.read_piece(10, number, 5, 1 << 20))[0], 0)
        self.assertEqual(come(), content, "wrong writes have changed nothing")
        client.close()
        self.sessions_are_gone(daemon)
        self.works(daemon)

    def ends(self, daemon, attack):
        """The session of a client that does this ends."""
        client, session = self.over_tcp(daemon)
        link, code, _ = self.beside(daemon, client, session, 1)
        self.assertEqual(code, 0)
        attack(client, link)
        self.assertIsNone(client.receive()[0])
        self.sessions_are_gone(daemon)

    def test_pieces_that_nobody_could_take_end_the_session(self):
        daemon = self.serve()

        def ask_for(client, *pieces):
            for ticket, piece in enumerate(pieces, 100):
                client.send(request(WRITE_PIECE, piece, ticket, POST))

        def frame_of(size, kind=DATA_FRAME):
            return HEADER.pack(size, kind, 0, 0, 0, 1, 0, 0)

        # What was announced and never comes, of a context without connections, over none.
        self.ends(daemon, lambda client, link: (link.close(), ask_for(client, self.write_piece(1))))
        self.ends(daemon, lambda client, link: ask_for(client, self.write_piece(1, context=36)))
        self.ends(daemon, lambda client, link: link.send(frame_of((1 << 20) + 1)))
        self.ends(daemon, lambda client, link: link.send(frame_of(0)))
        self.ends(daemon, lambda client, link: link.send(frame_of(8, POST) + bytes(8)))
        self.ends(daemon, lambda client, link: link.send(2 * (frame_of(8) + bytes(8))))
        good = self.write_piece(1)
        for size in (0, 8, len(good) - 1):
            self.ends(daemon, lambda client, link, size=size: ask_for(client, good[:size]))
        self.works(daemon)

    def test_without_descriptors_there_are_no_such_pages(self):
        daemon = self.serve()
        client = self.client(daemon.tcp)
        self.assertEqual(self.ask(client, "clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0)[0], 0)
        code, _, file = self.fine_block(client, 4096)
        self.assertEqual((code != 0, file), (True, None))


if __name__ == "__main__":
    unittest.main()
