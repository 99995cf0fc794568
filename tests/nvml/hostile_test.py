"""Clients of NVML that are wrong on purpose: each loses its own connection, the helper that answers everybody goes on,
and its memory, threads and descriptors do not grow. usage: hostile_test.py [ATTACKS]"""
import os
import pathlib
import random
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tool"))
os.environ.setdefault("OUTBOARD_TEST_DEVICE", "cpu")
from harness import HEADER, WELCOME, Client, DaemonTest, descriptors_of, opcodes, processes_below, wait_until  # noqa: E402

ATTACKS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 300
SANITIZED = bool(os.environ.get("OUTBOARD_PRELOAD"))
NVML, POST, CALL, REPLY = 3, 5, 6, 7
SEED = 20261120
FIRST_DEVICE = 0x4E4D_0100_0100_0010  # what the helper gives out first

OPCODES = opcodes("nvml")


def call(opcode, payload, kind=CALL, size=None):
    return HEADER.pack(len(payload) if size is None else size, kind, 0, opcode, 0, 1, 0, 0) + payload


def devices(client):
    """Asks a right question: how many devices there are."""
    client.send(call(OPCODES["nvmlDeviceGetCount_v2"], b"\1"))
    kind, payload = client.receive()
    return struct.unpack("<iII", payload)[2] if kind == REPLY else None


class Hostile(DaemonTest):
    def client(self, over):
        client = Client(over)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(NVML)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def helper(self, daemon):
        for process in processes_below(daemon.process.pid):
            if b"--monitor" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes():
                return process
        return None

    def held(self, process):
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines())
        return descriptors_of(process), int(status["Threads"]), int(status["VmRSS"].split()[0])

    def attacks(self):
        """Messages that no front-end sends, for ever."""
        chance = random.Random(SEED)
        codes = list(OPCODES.values())
        yield call(OPCODES["nvmlDeviceGetCount_v2"], b"\1", kind=POST)
        yield call(3000, b"")  # a function of the driver
        yield call(OPCODES["nvmlDeviceSetPersistenceMode"], struct.pack("<QI", FIRST_DEVICE, 1))
        yield call(OPCODES["nvmlDeviceGetCount_v2"], b"", size=0xFFFFFFFF)
        yield call(OPCODES["nvmlDeviceGetCount_v2"], b"\1\0")
        yield call(OPCODES["nvmlDeviceGetHandleByUUID"], b"\1" + struct.pack("<Q", 1 << 62) + b"GPU-" + b"\1")
        yield call(OPCODES["nvmlDeviceGetMemoryInfo_v2"],
                   struct.pack("<QBIII", FIRST_DEVICE, 1, 1, 0xFFFFFFF0, 0x02FFFFFF))
        # Lists in structs: more elements than there are bytes, than the struct counts, than anybody has; lists in lists.
        places = struct.pack("<IIIIQ", 24 | 1 << 24, 0, 4, 0, 0x1234560)
        for said in (5, 0x4000, 0xFFFFFFFF):
            yield call(OPCODES["nvmlDeviceGetVgpuTypeSupportedPlacements"],
                       struct.pack("<QIBII", FIRST_DEVICE, 11, 1, 1, 24) + places + struct.pack("<BI", 1, said) + bytes(16))
        yield call(OPCODES["nvmlDeviceGetVgpuTypeSupportedPlacements"],  # of a version that nobody knows
                   struct.pack("<QIBII", FIRST_DEVICE, 11, 1, 1, 64) + struct.pack("<I", 64 | 3 << 24) + bytes(61))
        slots = struct.pack("<IIQ", 0xFFFF, 0, 0)
        yield call(OPCODES["nvmlDeviceGetNvLinkTelemetrySamples_v1"],
                   struct.pack("<QBII", FIRST_DEVICE, 1, 1, 16) + slots + struct.pack("<BI", 1, 0x3FFF)
                   + (struct.pack("<I", 32) + struct.pack("<IIIIQQ", 0, 0, 0x4000, 0, 0, 0) + struct.pack("<BI", 1, 0x3F)) * 300)
        for metrics in (477, 478, 0xFFFFFFFF):
            yield call(OPCODES["nvmlGpmMetricsGet"],
                       struct.pack("<BII", 1, 1, 24) + struct.pack("<IIQQ", 1, metrics, FIRST_DEVICE, 0x4E4D_0600_0100_0010))
        while True:
            payload = chance.randbytes(chance.randrange(64))
            if chance.random() < 0.5:  # a right beginning gets further
                payload = struct.pack("<QBI", FIRST_DEVICE, 1, chance.randrange(4)) + payload
            yield call(chance.choice(codes), payload)

    def test_the_helper_goes_on(self):
        daemon = self.serve()
        right = self.client(daemon.unix)
        self.assertEqual(devices(right), 1)
        helper = self.helper(daemon)
        attacks, before, answered = self.attacks(), None, 0
        for number in range(ATTACKS):
            client = self.client(daemon.tcp if number % 2 else daemon.unix)
            client.send(next(attacks))
            client.socket.shutdown(1)
            answered += client.receive()[0] == REPLY
            client.close()
            if number == ATTACKS // 5:
                wait_until(lambda: self.held(helper)[1] <= 3)
                before = self.held(helper)
        self.assertEqual(devices(right), 1, "an honest client's answer")
        self.assertEqual(self.helper(daemon), helper, "the helper has ended")
        self.assertTrue(wait_until(lambda: self.held(helper)[:2] <= before[:2]), (before, self.held(helper)))
        if not SANITIZED:  # ASan keeps what was freed for a while
            self.assertLess(self.held(helper)[2], before[2] + 4096)
        self.assertLess(answered, ATTACKS // 2, "what was sent was wrong")
        print(f"{ATTACKS} attacks, {answered} of them answered; descriptors, threads, KiB: {before}, {self.held(helper)}")

    def test_too_many_clients_of_one_peer_are_told_so_and_others_find_room(self):
        daemon = self.serve()
        clients = [self.client(daemon.unix) for _ in range(171)]  # two thirds of 256
        one_more = Client(daemon.unix)
        self.addCleanup(one_more.close)
        kind, payload = one_more.say_hello(NVML)
        self.assertEqual(one_more.refusal(payload)[0], "busy")
        self.assertEqual(devices(self.client(daemon.tcp)), 1)
        for client in clients:
            client.close()
        self.assertTrue(wait_until(lambda: self.held(self.helper(daemon))[1] <= 3), "threads are left")
        self.assertEqual(devices(self.client(daemon.unix)), 1)


if __name__ == "__main__":
    unittest.main()
