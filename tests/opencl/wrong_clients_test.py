"""Clients of an OpenCL session that are wrong on purpose: each loses its own session at most, the daemon goes on, and a
program finds its device afterwards. usage: wrong_clients_test.py [ATTACKS]"""
import pathlib
import random
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import HEADER, LIBRARY, WELCOME, Client, SystemTest, program, run_program  # noqa: E402

ATTACKS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
OPENCL, POST, CALL, REPLY = 6, 5, 6, 7
SEED = 20261122
UPLOAD = 200000
PLATFORM, DEVICE = (kind << 52 | 1 << 32 for kind in (32, 33))

TABLES = pathlib.Path(__file__).resolve().parent.parent.parent / "src/api/opencl/opcodes.golden"
OPCODES = {name: int(code) for code, name in (line.split() for line in TABLES.read_text().splitlines())}


def request(opcode, payload, ticket=1, kind=CALL):
    return HEADER.pack(len(payload), kind, 0, opcode, 1, ticket, 0, 0) + payload


def handle(kind, index=0):
    return kind << 52 | 1 << 32 | index << 4


class Hostile(SystemTest):
    def client(self, over):
        client = Client(over)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(OPENCL)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def attacks(self):
        """Payloads that no front-end sends, for ever."""
        chance = random.Random(SEED)
        codes = [*OPCODES.values(), UPLOAD, 3000, 17001]
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


if __name__ == "__main__":
    unittest.main()
