"""How often an OpenCL program waits for the back-end, counted by the trace: nothing that is enqueued waits but blocking
reads."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import LIBRARY, SystemTest, program, run_program  # noqa: E402

# The hello with its snapshot, the build, and what a program asks before its first kernel.
BEFORE_FIRST_KERNEL = 6
LINE = re.compile(r"^(\w+)\(.*\) = -?\d+ (local|posted|waited) \d+\.\d{3} us lane \d+$")


class RoundTrips(SystemTest):
    def calls(self, name, url):
        file = os.path.join(self.folder, "trace")
        done = run_program(program(f"opencl_{name}"), url, OUTBOARD_TRACE=file,
                           OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        with open(file, encoding="utf-8") as lines:
            *calls, moved, summary = lines.read().splitlines()
        self.assertRegex(moved, r"^sent [1-9]\d+ bytes, received [1-9]\d+ bytes$")
        self.assertRegex(summary, r"^local \d+, posted \d+, waited \d+$")
        found = [LINE.match(line) for line in calls]
        self.assertTrue(all(found), calls[found.index(None)] if None in found else "")
        return [(f[1], f[2], line) for f, line in zip(found, calls)]

    def test_what_is_enqueued_does_not_wait(self):
        daemon = self.serve()
        # One of them over tcp:, too, which compiles anew: what waits is the program's doing.
        for url, names in ((daemon.unix, ("vector_add", "matmul", "sort_networks")), (daemon.tcp, ("vector_add",))):
            for name in names:
                calls = self.calls(name, url)
                first = next(i for i, (function, *_) in enumerate(calls) if function == "clEnqueueNDRangeKernel")
                before = [function for function, how, _ in calls[:first + 1] if how == "waited"]
                print(f"{name} over {url.split(':')[0]}: {len(before)} waits up to its first kernel: {' '.join(before)}")
                self.assertEqual(calls[0][1], "waited", "the hello counts")
                self.assertLessEqual(len(before), BEFORE_FIRST_KERNEL)
                for function, how, line in calls:
                    if not function.startswith("clEnqueue"):
                        continue
                    blocking = re.search(r"blocking_\w+=(\d)", line)
                    reads = function.startswith(("clEnqueueRead", "clEnqueueMap"))
                    self.assertEqual(how, "waited" if reads and blocking and blocking[1] == "1" else "posted", line)


if __name__ == "__main__":
    unittest.main()
