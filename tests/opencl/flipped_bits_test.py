"""OpenCL sessions with one flipped bit, over unix: and tcp:. A flip costs at most its own session, and the back-end continues
to serve. The requests cover all hand-written messages, with areas, shared memory and builds.
usage: flipped_bits_test.py [FLIPS of each kind]"""
import pathlib
import random
import struct
import sys
import unittest

FLIPS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from wrong_clients_test import (BUILD_FILES, CONTEXT, DEVICE, FINE, OPCODES, OPENCL, PLATFORM, QUEUE, UPLOAD, OpenClClient,  # noqa: E402
                                build_files, handle, request, text)
from wrong_places_test import BUFFER, IMAGE, KERNEL, PROGRAM, ROW, SIZE, command, place, words  # noqa: E402
from outboard_testing import HEADER, HELLO, LIBRARY, SystemTest, frame, hello_payload, program, run_program  # noqa: E402
from recording import frames_of, play  # noqa: E402

SEED = 20261123
SETTLE, OPEN_AREA, CLOSE_AREA, AWAIT_AREA, READ_INTO, WRITE_FROM = UPLOAD + 1, *range(UPLOAD + 3, UPLOAD + 8)
EVENT = 39
SOURCE = b"__kernel void plus(__global int* v, int n) { v[get_global_id(0)] += n; }"


def contents(data):
    return words(0, len(data)) + b"\1" + data


def picture(index):
    return (words(handle(BUFFER, index), handle(CONTEXT), 1) + struct.pack("<5I", 0x10B5, 0x10DA, 0x10F1, 0, 0)
            + words(16, 16, 0, 0, 0, 0, 0, 0, 0) + b"\0")


AREAS = (OPEN_AREA, CLOSE_AREA, AWAIT_AREA, READ_INTO, WRITE_FROM)


def transfers():
    """The requests that need no compiler."""
    some = bytes(range(64))
    yield "clCreateContext", words(handle(CONTEXT), PLATFORM, 1, DEVICE, 0)
    yield "clCreateCommandQueueWithProperties", words(handle(QUEUE), handle(CONTEXT), DEVICE, 0)
    for index in range(2):
        yield "clCreateBufferWithProperties", words(handle(BUFFER, index), handle(CONTEXT), 1, SIZE, 0, 0, 0) + b"\0"
    yield "clCreateSubBuffer", words(handle(BUFFER, 2), handle(BUFFER), 1, 1024, 1024)
    yield "clCreateImageWithProperties", picture(3)
    yield OPEN_AREA, words(1, handle(CONTEXT), 4 * SIZE, SIZE)
    yield WRITE_FROM, command() + place(ROW, size=SIZE) + words(1, SIZE, SIZE)
    yield READ_INTO, command() + place(ROW, index=2, size=1024) + b"\1" + words(1, 2 * SIZE)
    yield AWAIT_AREA, words(1, 1) + b"\0"
    yield "clEnqueueWriteBuffer", command() + place(IMAGE, index=3, region=(4, 4, 1)) + contents(some)
    yield "clEnqueueReadBuffer", command() + place(IMAGE, index=3, region=(8, 8, 1)) + b"\1"
    yield UPLOAD, words(7) + some
    yield "clEnqueueWriteBuffer", words(handle(QUEUE), 0, handle(EVENT)) + place(ROW, offset=64, size=64) + words(7, 64) + b"\1"
    yield "clSetEventCallback", words(handle(EVENT), 5) + struct.pack("<i", 0)
    yield "clSVMAlloc", words(handle(CONTEXT), 1, SIZE) + struct.pack("<I", 0)
    yield "clSVMAlloc", words(handle(CONTEXT), 1 | FINE, SIZE) + struct.pack("<I", 0)
    yield SETTLE, words(1, DEVICE, 1 << 20)
    yield CLOSE_AREA, words(1)
    yield "clFinish", words(handle(QUEUE))


def builds():
    yield from list(transfers())[:3]
    yield BUILD_FILES, build_files()
    yield "clCreateProgramWithSource", words(handle(PROGRAM), handle(CONTEXT)) + contents(SOURCE)
    yield "clBuildProgram", words(handle(PROGRAM), 0) + b"\1" + text(b"-I/inc")
    yield "clGetProgramInfo", words(handle(PROGRAM), 0) + struct.pack("<I", 0x1166) + words(0)
    yield "clCreateKernel", words(handle(KERNEL), handle(PROGRAM)) + text(b"plus")
    yield "clSetKernelArg", words(handle(KERNEL)) + struct.pack("<IB", 0, 1) + words(0, handle(BUFFER), 0)
    yield "clSetKernelArg", words(handle(KERNEL)) + struct.pack("<IB", 1, 0) + words(0, 0, 4) + bytes(4)
    yield ("clEnqueueNDRangeKernel", words(handle(QUEUE), handle(KERNEL), 1) + b"\0\1" + words(1, 8) + b"\0" + words(0) + b"\0" + words(0))
    yield "clFinish", words(handle(QUEUE))


def session(requests):
    data = frame(HELLO, hello_payload(OPENCL))
    for ticket, (function, payload) in enumerate(requests, 1):
        data += request(OPCODES.get(function, function), payload, ticket)
    return data


class FlippedBits(OpenClClient, SystemTest):
    def works(self, daemon):
        done = run_program(program("opencl_vector_add"), daemon.unix, OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_unchanged_requests_succeed(self):
        daemon = self.serve()
        for requests in (transfers(), builds()):
            client = self.client(daemon.unix)
            for function, payload in requests:
                self.assertEqual(self.ask(client, function, tail=payload)[0], 0, function)
            client.close()

    def flips(self, requests, flips):
        chance = random.Random(SEED)
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            # Areas are memory that both ends share.
            whole = session([each for each in requests if url == daemon.unix or each[0] not in AREAS])
            first = HEADER.size + struct.unpack_from("<I", whole)[0]  # skips the hello: hello_test.cc flips all of its bits
            self.assertGreater(len(frames_of(whole)), 10)
            self.assertTrue(play(url, whole), "the session as it was meant")
            for bit in chance.sample(range(first * 8, len(whole) * 8), flips):
                wrong = bytearray(whole)
                wrong[bit // 8] ^= 1 << bit % 8
                if not play(url, bytes(wrong), patience=30.0):
                    print(f"bit {bit} over {url}: a session that went on")  # the client ends it
        self.sessions_are_gone(daemon, 30.0)
        self.works(daemon)
        print(f"{flips} flips over each of two ways")

    def test_transfers_and_memory(self):
        self.flips(list(transfers()), FLIPS)

    def test_builds_and_kernels(self):
        self.flips(list(builds()), max(2, FLIPS // 8))


if __name__ == "__main__":
    unittest.main()
