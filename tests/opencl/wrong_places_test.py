"""Requests of a client that checks nothing: places outside of its objects by numbers that overflow, arguments whose bytes are
not pointers, properties that are pointers. Each gets a code (or ends its session), and no platform sees it.
usage: wrong_places_test.py"""
import itertools
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from wrong_clients_test import CALL, CONTEXT, DEVICE, OPCODES, PLATFORM, QUEUE, REPLY, OpenClClient, handle, request, text  # noqa: E402
from outboard_testing import LIBRARY, SystemTest, program, run_program  # noqa: E402

BUFFER, PROGRAM, KERNEL, SAMPLER = 36, 37, 38, 40
SIZE = 4096
ROW, BOX, IMAGE = range(3)
VALUE, OBJECT = range(2)
MOST = 2 ** 64
INVALID_OPERATION = -59
SOURCE = b"""typedef sampler_t hidden;
typedef struct { int a, b; } pair;
__kernel void every(__global int* memory, sampler_t sampler, hidden other, long number, pair both, __local int* near,
                  __read_only image2d_t image) {
  near[0] = read_imagei(image, sampler, (int2)(0, 0)).x + read_imagei(image, other, (int2)(0, 0)).x;
  memory[0] = near[0] + number + both.a;
}
"""
MEMORY, PLAIN_SAMPLER, HIDDEN_SAMPLER, NUMBER, PAIR, LOCAL, PICTURE = range(7)


def words(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def place(form, index=0, offset=0, size=0, origin=(0, 0, 0), region=(0, 0, 0), row=0, slice=0):
    return words(handle(BUFFER, index)) + bytes([form]) + words(offset, size, *origin, *region, row, slice)


def command():
    return words(handle(QUEUE), 0, 0)


def listed(*values):
    """An array that is present, as a generated request has it."""
    return b"\1" + words(len(values), *values)


NO_WAITS = words(0) + b"\0" + words(0)


class WrongPlaces(OpenClClient, SystemTest):
    def begin(self):
        daemon = self.serve()
        client = self.client(daemon.unix)
        self.good(client, "clCreateContext", words(handle(CONTEXT), PLATFORM, 1, DEVICE, 0))
        self.good(client, "clCreateCommandQueueWithProperties", words(handle(QUEUE), handle(CONTEXT), DEVICE, 0))
        for index in range(2):
            self.good(client, "clCreateBufferWithProperties",
                      words(handle(BUFFER, index), handle(CONTEXT), 1, SIZE, 0, 0, 0) + b"\0")
        return daemon, client

    def code(self, client, function, payload):
        return self.ask(client, function, tail=payload)[0]

    def good(self, client, function, payload):
        self.assertEqual(self.code(client, function, payload), 0, function)

    def bad(self, client, function, payload, what=""):
        self.assertNotEqual(self.code(client, function, payload), 0, f"{function} {what}")

    def ends(self, daemon, function, payload):
        """Checks that a request that no front-end sends ends the session."""
        client = self.client(daemon.unix)
        client.send(request(OPCODES[function], payload, kind=CALL))
        kind = client.receive()[0]
        client.close()
        self.assertNotEqual(kind, REPLY, function)

    def serves_on(self, daemon, client):
        self.assertEqual(self.code(client, "clFinish", words(handle(QUEUE))), 0)
        client.close()
        self.sessions_are_gone(daemon)
        done = run_program(program("opencl_vector_add"), daemon.unix, OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_reads_and_writes_stay_in_their_object(self):
        daemon, client = self.begin()
        half = MOST // 2
        outside = [place(ROW, offset=1, size=SIZE), place(ROW, offset=MOST - 16, size=32), place(ROW, size=MOST - 1),
                   place(ROW, offset=half, size=half),
                   place(BOX, region=(64, 65, 1)), place(BOX, region=(64, 1, 1), origin=(0, 64, 0)),
                   place(BOX, region=(16, 1, 2), slice=half), place(BOX, region=(16, 1, 1), origin=(0, 0, 2), slice=half),
                   place(BOX, region=(16, 2, 1), row=MOST - 16), place(BOX, region=(16, 1, 1), origin=(0, 1, 0), row=MOST - 32),
                   place(BOX, region=(16, 2, 1), row=8), place(BOX, region=(1 << 32, 1 << 32, 1)),
                   place(IMAGE, region=(1, 1, 1)), place(4, size=16), place(200, region=(1, 1, 1))]
        for number, wrong in enumerate(outside):
            self.bad(client, "clEnqueueReadBuffer", command() + wrong + b"\1", number)
            self.bad(client, "clEnqueueWriteBuffer", command() + wrong + words(0, 32) + b"\1" + bytes(32), number)
        self.good(client, "clEnqueueWriteBuffer", command() + place(ROW, offset=SIZE - 32, size=32) + words(0, 32) + b"\1" + bytes(32))
        self.serves_on(daemon, client)

    def test_fills_and_copies_stay_in_their_objects(self):
        daemon, client = self.begin()
        one, other, queue = handle(BUFFER), handle(BUFFER, 1), handle(QUEUE)
        pattern = b"\1" + words(4) + b"abcd" + words(4)
        self.good(client, "clEnqueueFillBuffer", words(queue, one) + pattern + words(SIZE - 64, 64) + NO_WAITS)
        for offset, size in ((SIZE, 4), (MOST - 64, 128), (4, SIZE), (0, MOST - 4)):
            self.bad(client, "clEnqueueFillBuffer", words(queue, one) + pattern + words(offset, size) + NO_WAITS, (offset, size))
        self.good(client, "clEnqueueCopyBuffer", words(queue, one, other, 0, 64, 128) + NO_WAITS)
        for numbers in ((MOST - 64, 0, 128), (0, MOST - 64, 128), (0, 0, SIZE + 1), (0, 1, SIZE)):
            self.bad(client, "clEnqueueCopyBuffer", words(queue, one, other, *numbers) + NO_WAITS, numbers)
        zero, box, far = listed(0, 0, 0), listed(16, 2, 2), listed(0, 0, 2)
        half = MOST // 2
        self.good(client, "clEnqueueCopyBufferRect",
                  words(queue, one, other) + zero + zero + box + words(64, 256, 64, 256) + NO_WAITS)
        for origins, pitches in ((zero + zero, (64, half, 64, 256)), (zero + zero, (64, 256, 64, half)), (far + zero, (64, half, 64, 256)),
                                 (zero + far, (64, 256, half, half)), (zero + b"\0", (64, 256, 64, 256))):
            self.bad(client, "clEnqueueCopyBufferRect",
                     words(queue, one, other) + origins + box + words(*pitches) + NO_WAITS, pitches)
        self.bad(client, "clEnqueueCopyImage", words(queue, one, other) + zero + zero + listed(1, 1, 1) + NO_WAITS)
        self.bad(client, "clEnqueueCopyBufferToImage", words(queue, one, other, 0) + zero + listed(1, 1, 1) + NO_WAITS)
        self.bad(client, "clEnqueueCopyImageToBuffer", words(queue, one, other) + zero + listed(1, 1, 1) + words(0) + NO_WAITS)
        self.bad(client, "clWaitForEvents", words(3) + b"\0")
        self.serves_on(daemon, client)

    def image(self, index, width, height, memory=0, row=0, kind=0x10F1):
        """An image of RGBA bytes."""
        return (words(handle(BUFFER, index), handle(CONTEXT), 1) + struct.pack("<5I", 0x10B5, 0x10DA, kind, 0, 0)
                + words(width, height, 0, 0, row, 0, memory, 0, 0) + b"\0")

    def test_parts_of_objects_stay_in_them(self):
        daemon, client = self.begin()
        fresh = itertools.count(2)
        for origin, size in ((MOST - SIZE, SIZE), (MOST - SIZE, 2 * SIZE), (0, SIZE + 1), (SIZE, 128), (128, MOST - 128)):
            self.bad(client, "clCreateSubBuffer", words(handle(BUFFER, next(fresh)), handle(BUFFER), 1, origin, size), (origin, size))
        part = next(fresh)
        self.good(client, "clCreateSubBuffer", words(handle(BUFFER, part), handle(BUFFER), 1, 1024, 1024))
        self.bad(client, "clEnqueueReadBuffer", command() + place(ROW, offset=1024, size=64, index=part) + b"\1")
        for width, height, row, kind in ((64, 17, 0, 0x10F1), (16, 1 << 20, 0, 0x10F1), (64, 16, 512, 0x10F1), (1 << 12, 1, 0, 0x10F6)):
            wrong = self.image(next(fresh), width, height, handle(BUFFER), row, kind)
            self.bad(client, "clCreateImageWithProperties", wrong, (width, height, row))
        code = self.code(client, "clCreateImageWithProperties", self.image(next(fresh), 64, 16, handle(BUFFER)))
        self.assertIn(code, (0, INVALID_OPERATION))  # PoCL 3.1 shows buffers as images of one dimension only
        self.good(client, "clCreateImageWithProperties", self.image(next(fresh), 1024, 1, handle(BUFFER), kind=0x10F6))
        picture = next(fresh)
        self.good(client, "clCreateImageWithProperties", self.image(picture, 16, 16))
        for origin, region in (((0, 0, 0), (16, 17, 1)), ((1, 0, 0), (16, 1, 1)), ((0, MOST - 1, 0), (16, 2, 1)), ((0, 0, 1), (1, 1, 1))):
            wrong = place(IMAGE, origin=origin, region=region, index=picture)
            self.bad(client, "clEnqueueReadBuffer", command() + wrong + b"\1", (origin, region))
        self.bad(client, "clEnqueueReadBuffer", command() + place(ROW, size=64, index=picture) + b"\1", "rows of an image")
        self.serves_on(daemon, client)

    def test_properties_are_no_pointers(self):
        daemon, client = self.begin()
        for name in (0x2008, 0x1084, 0x200A):  # OpenGL's context, a platform once more, a display
            self.ends(daemon, "clCreateContext", words(handle(CONTEXT), PLATFORM, 1, DEVICE, 2, name, 0x4141414141414141))
        for counts in ((0x1087, 1), (0x1087, 1, 0), (0x1087,), (0x1086,), (0x4141, 1)):  # lists without their ends
            self.code(client, "clCreateSubDevices", words(DEVICE, len(counts), *counts) + b"\1" + words(0))
        self.serves_on(daemon, client)

    def argument(self, index, form, object=0, value=b""):
        return words(handle(KERNEL)) + struct.pack("<IB", index, form) + words(0, object, len(value)) + value

    def kernel(self, client):
        self.good(client, "clCreateProgramWithSource", words(handle(PROGRAM), handle(CONTEXT), 0, len(SOURCE)) + b"\1" + SOURCE)
        code, rest, _ = self.ask(client, "clBuildProgram", tail=words(handle(PROGRAM), 0) + b"\1" + text(b""))
        self.assertEqual((code, struct.unpack("<i", rest[:4])[0]), (0, 0), rest)
        self.good(client, "clCreateKernel", words(handle(KERNEL), handle(PROGRAM)) + text(b"every"))

    def test_bytes_are_no_pointers(self):
        daemon, client = self.begin()
        self.kernel(client)
        self.good(client, "clCreateSampler", words(handle(SAMPLER), handle(CONTEXT), 0, 0x1130, 0x1140) + b"\0")
        wild = struct.pack("<Q", 0x4141414141414141)
        for index in (MEMORY, PLAIN_SAMPLER, HIDDEN_SAMPLER, LOCAL, PICTURE, 7, 1 << 31):
            for value in (wild, wild[:7], wild + wild):
                self.bad(client, "clSetKernelArg", self.argument(index, VALUE, value=value), (index, len(value)))
        for index in (NUMBER, PAIR):
            self.good(client, "clSetKernelArg", self.argument(index, VALUE, value=wild))
            self.bad(client, "clSetKernelArg", self.argument(index, OBJECT, handle(BUFFER)), index)
        for index in (MEMORY, PLAIN_SAMPLER, HIDDEN_SAMPLER, NUMBER, PICTURE):
            for wrong in (handle(CONTEXT), handle(QUEUE), handle(PROGRAM), handle(KERNEL), DEVICE, PLATFORM, 255 << 52 | 1 << 32):
                self.bad(client, "clSetKernelArg", self.argument(index, OBJECT, wrong), (index, hex(wrong)))
        self.bad(client, "clSetKernelArg", self.argument(PLAIN_SAMPLER, OBJECT, handle(BUFFER)))
        self.bad(client, "clSetKernelArg", self.argument(MEMORY, OBJECT, handle(SAMPLER)))
        self.good(client, "clSetKernelArg", self.argument(PLAIN_SAMPLER, OBJECT, handle(SAMPLER)))
        self.code(client, "clSetKernelArg", self.argument(HIDDEN_SAMPLER, OBJECT, handle(SAMPLER)))  # PoCL 3.1 knows it as memory
        self.good(client, "clSetKernelArg", self.argument(MEMORY, OBJECT, handle(BUFFER)))
        code, rest, _ = self.ask(client, "clSVMAlloc", tail=words(handle(CONTEXT), 1, SIZE) + struct.pack("<I", 0))
        self.assertEqual(code, 0)
        for index in (PLAIN_SAMPLER, HIDDEN_SAMPLER, NUMBER, LOCAL, 9):
            self.bad(client, "clSetKernelArgSVMPointer", words(handle(KERNEL)) + struct.pack("<I", index) + words(1) + rest, index)
        self.serves_on(daemon, client)


if __name__ == "__main__":
    unittest.main()
