"""Which way the bytes of OpenCL's transfers go: over unix: and shm: the program and the worker share memory for them, so that
the connection carries few; over tcp: it carries all."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import LIBRARY, SystemTest, program, run_program  # noqa: E402


class Transfers(SystemTest):
    def moved(self, url):
        file = os.path.join(self.folder, "trace")
        done = run_program([*program("opencl_transfers"), "rows"], url, OUTBOARD_TRACE=file,
                           OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        with open(file, encoding="utf-8") as lines:
            sent, received = re.search(r"^sent (\d+) bytes, received (\d+) bytes$", lines.read(), re.MULTILINE).groups()
        print(f"over {url.split(':')[0]}: sent {sent} bytes, received {received}")
        return int(sent), int(received)

    def test_shared_memory_carries_most(self):
        daemon = self.serve()
        sent, received = self.moved(daemon.tcp)
        sent_beside, received_beside = self.moved(daemon.unix)
        # What is moved before that is worth it, and reads that nobody waits for, still travel.
        self.assertLess(sent_beside, 0.3 * sent)
        self.assertLess(received_beside, 0.6 * received)


if __name__ == "__main__":
    unittest.main()
