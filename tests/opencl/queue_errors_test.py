"""A posted command that the device does not take: the clFinish of its queue says so, once, and no other one does."""
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import HEADER, WELCOME, Client, SystemTest, opcodes  # noqa: E402

OPENCL, POST, CALL, REPLY = 6, 5, 6, 7
INVALID_EVENT, FAILED_EVENT = -58, -14
OPCODES = opcodes("opencl")


def handle(kind, index=0):
    return kind << 52 | 1 << 32 | index << 4


PLATFORM, DEVICE, CONTEXT = handle(32), handle(33), handle(34)
QUEUES = [handle(35, index) for index in range(2)]
EVENT, NO_EVENT = handle(39), handle(39, 77)


class QueueErrors(SystemTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.serve().unix)
        self.addCleanup(self.client.close)
        kind, payload = self.client.say_hello(OPENCL)
        self.assertEqual(kind, WELCOME, payload)
        self.ticket = 0
        self.post("clCreateContext", struct.pack("<5Q", CONTEXT, PLATFORM, 1, DEVICE, 0))
        for queue in QUEUES:
            self.post("clCreateCommandQueueWithProperties", struct.pack("<4Q", queue, CONTEXT, DEVICE, 0))

    def send(self, kind, function, payload, lane=1):
        self.ticket += 1
        self.client.send(HEADER.pack(len(payload), kind, 0, OPCODES[function], lane, self.ticket, 0, 0) + payload)

    def post(self, *request, **where):
        self.send(POST, *request, **where)

    def call(self, *request, **where):
        self.send(CALL, *request, **where)
        kind, payload = self.client.receive()
        self.assertEqual(kind, REPLY, payload)
        return struct.unpack_from("<i", payload)[0]

    def finish(self, queue, lane=1):
        return self.call("clFinish", struct.pack("<Q", queue), lane=lane)

    def post_marker(self, queue, waits_for, event=0, lane=1):
        self.post("clEnqueueMarkerWithWaitList", struct.pack("<QQ?QQQ", queue, 1, True, 1, waits_for, event), lane=lane)

    def test_the_queue_of_the_command_tells_once(self):
        self.post_marker(QUEUES[0], NO_EVENT)
        self.assertEqual(self.finish(QUEUES[1]), 0, "nothing of this queue has failed")
        self.assertEqual(self.finish(QUEUES[0]), INVALID_EVENT)
        self.assertEqual(self.finish(QUEUES[0]), 0, "it has been told")

    def test_whichever_thread_asks(self):
        self.post_marker(QUEUES[1], NO_EVENT, lane=1)
        self.assertEqual(self.finish(QUEUES[0], lane=1), 0)
        self.assertEqual(self.finish(QUEUES[1], lane=2), INVALID_EVENT)

    def test_waiting_for_its_event_fails(self):
        no_memory = handle(36, 77)
        self.post("clEnqueueMigrateMemObjects",
                  struct.pack("<QQ?QQQQ?Q", QUEUES[0], 1, True, 1, no_memory, 0, 0, False, EVENT))
        self.assertEqual(self.call("clWaitForEvents", struct.pack("<Q?QQ", 1, True, 1, EVENT)), FAILED_EVENT)


if __name__ == "__main__":
    unittest.main()
