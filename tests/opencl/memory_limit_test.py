"""`devices.memory` of the server's configuration for OpenCL's sessions: what a program sees and gets, each session for itself,
without one waiting call more, and whatever a client says."""
import os
import pathlib
import re
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from outboard_testing import LIBRARY, SystemTest, program, run_program, wait_until  # noqa: E402
from wrong_clients_test import CONTEXT, DEVICE, PLATFORM, OpenClClient, handle  # noqa: E402

LIMIT = 256 << 20
REFUSED = -4  # CL_MEM_OBJECT_ALLOCATION_FAILURE
ICD = {"OCL_ICD_VENDORS": str(LIBRARY / "libOutboardOpenCL.so.1")}
MEM = 36
SETTLE = 200001


class MemoryLimit(OpenClClient, SystemTest):
    def limited(self):
        return self.serve(config=f"[devices]\nmemory = {LIMIT}\n")

    def buffer(self, client, index, size):
        # flags, size, no shared memory; upload, bytes, none present
        return self.ask(client, "clCreateBufferWithProperties", handle(MEM, index), handle(CONTEXT), 1, size, 0, 0, 0, tail=b"\0")[0]

    def test_a_program_gets_so_much_and_no_more(self):
        daemon = self.limited()
        for url in (daemon.unix, daemon.tcp):
            done = run_program(program("opencl_memory_limit", LIMIT), url, **ICD)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "PASS\n", ""), url)
            self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_each_session_has_the_limit_for_itself(self):
        daemon = self.limited()
        held = [self.start(program("opencl_memory_limit", LIMIT, "hold"), daemon.unix, **ICD) for _ in range(2)]
        for process in held:
            self.assertEqual(process.stdout.readline(), f"0 {REFUSED}\n")
        both = [LIMIT // 4 * 3] * 2  # the daemon learns it a moment after the program
        self.assertTrue(wait_until(lambda: [s["memory_bytes"] for s in daemon.sessions()] == both), daemon.sessions())
        for process in held:
            process.kill()
        self.sessions_are_gone(daemon)

    def test_a_session_whose_client_is_away_gives_way(self):
        daemon = self.serve(config=f"[limits]\nlinger_seconds = 60\n[identity.default]\ndevice_memory = {LIMIT}\n")
        absent = self.start(program("opencl_memory_limit", LIMIT, "hold"), daemon.tcp, **ICD)
        self.assertEqual(absent.stdout.readline(), f"0 {REFUSED}\n")
        self.assertTrue(wait_until(lambda: [s["memory_bytes"] for s in daemon.sessions()] == [LIMIT // 4 * 3]), daemon.sessions())
        client = self.client(daemon.tcp)
        self.assertEqual(self.ask(client, "clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0)[0], 0)

        self.assertEqual(self.buffer(client, 0, LIMIT // 2), REFUSED)
        absent.kill()
        self.assertTrue(wait_until(lambda: any(s["state"] == "interrupted" for s in daemon.sessions())), daemon.sessions())
        self.assertEqual(self.buffer(client, 1, LIMIT * 2), REFUSED)
        self.assertEqual(len(daemon.sessions()), 2)
        self.assertEqual(self.buffer(client, 2, LIMIT // 2), 0)
        self.assertEqual(len(daemon.sessions()), 1)
        self.assertIn("another session needed its memory", daemon.log())

    def test_nothing_waits_for_it(self):
        daemon = self.limited()
        file = os.path.join(self.folder, "trace")
        done = run_program(program("opencl_memory_limit", LIMIT, "once"), daemon.tcp, OUTBOARD_TRACE=file, **ICD)
        self.assertEqual((done.returncode, done.stdout), (0, f"0 {REFUSED}\n"), done.stderr)
        with open(file, encoding="utf-8") as lines:
            how = re.findall(r"^clCreateBuffer\w*\(.* = \S+ (\w+) [\d.]+ us lane", lines.read(), re.MULTILINE)
        self.assertEqual(how, ["posted", "local"])

    def test_a_front_end_that_does_not_count_is_counted(self):
        daemon = self.limited()
        for url in (daemon.unix, daemon.tcp):
            client = self.client(url)
            self.assertEqual(self.ask(client, "clCreateContext", handle(CONTEXT), PLATFORM, 1, DEVICE, 0)[0], 0)
            block = LIMIT // 4

            def buffer(index, size):
                return self.buffer(client, index, size)

            codes = [buffer(i, block) for i in range(5)]
            self.assertEqual(codes, [0, 0, 0, 0, REFUSED])
            self.assertEqual(buffer(5, 2 ** 64 - 1), REFUSED)
            for grain in (0, 1 << 10):
                code, _, file = self.ask(client, "clSVMAlloc", handle(CONTEXT), grain, 4096, tail=struct.pack("<I", 0))
                self.assertNotEqual(code, 0)
                self.assertIsNone(file)
            self.assertEqual(self.ask(client, "clReleaseMemObject", handle(MEM))[0], 0)
            self.assertEqual(buffer(6, block), 0)
            self.assertEqual(buffer(7, 1), REFUSED)
            # Whatever is asked about it.
            for devices in ([], [DEVICE], [DEVICE, DEVICE], [handle(33, 7)]):
                self.ask(client, SETTLE, len(devices), *devices, 2 ** 64 - 1)
            client.close()
            self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
