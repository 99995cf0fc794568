"""`--profile` of OpenCL programs: what each command did and when, and the calls that gave it, on one clock; programs see
nothing of it."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import LIBRARY, SystemTest, clean_environment, program, run_program, through_run  # noqa: E402

ICD = {"OCL_ICD_VENDORS": str(LIBRARY / "libOutboardOpenCL.so.1")}
SIZES = (16, 64, 192)  # of the matrices in tests/opencl/matmul.cc


class Profile(SystemTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "profile.json")

    def events(self):
        with open(self.file, encoding="utf-8") as lines:
            return json.load(lines)

    def profiled(self, name, url, **more):
        done = run_program(program(f"opencl_{name}"), url, OUTBOARD_PROFILE=self.file, **ICD, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_kernels_and_copies_with_their_calls(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            self.assertEqual(self.profiled("matmul", url).stderr, "")
            events = self.events()
            kernels = [e for e in events if e.get("cat") == "kernel"]
            self.assertEqual([(e["name"], e["args"]["grid"], e["args"]["block"]) for e in kernels],
                             [("product", [n // 16, n // 16, 1], [16, 16, 1]) for n in SIZES])
            copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
            self.assertEqual([(e["name"], e["args"]["bytes"]) for e in copies],
                             [("memcpy DtoH (device -> pageable)", 4 * n * n) for n in SIZES])
            calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "driver" and "correlation" in e["args"]}
            waits = [e for e in events if e["name"] == "clWaitForEvents"]
            title = next(e["args"]["name"] for e in events if e["name"] == "process_name" and "device" in e["args"]["name"])
            # And the device's own clock, which the length of an enqueue bounds: long on a busy machine.
            error_us = 1000 + int(title.split("agree to ")[1].split(" us")[0])
            for kernel, copy, wait in zip(kernels, copies, waits, strict=True):
                launch = calls[kernel["args"]["correlation"]]
                self.assertEqual(launch["name"], "clEnqueueNDRangeKernel")
                self.assertEqual(calls[copy["args"]["correlation"]]["name"], "clEnqueueReadBuffer")
                self.assertGreaterEqual(kernel["ts"] + error_us, launch["ts"])
                self.assertLessEqual(kernel["ts"] + kernel["dur"], copy["ts"] + error_us)
                self.assertLessEqual(copy["ts"] + copy["dur"], wait["ts"] + wait["dur"] + error_us)
        self.nothing_is_left(daemon)

    def test_programs_see_nothing_of_it(self):
        """Whether a queue has profiling is what the program asked for; a command without an event of its own has none."""
        daemon = self.serve()
        for name in ("wrong_calls", "out_of_order", "images"):
            plain = run_program(program(f"opencl_{name}"), daemon.tcp, **ICD)
            self.assertEqual(self.profiled(name, daemon.tcp).stdout, plain.stdout)
        kinds = {e.get("cat") for e in self.events()}
        self.assertTrue({"kernel", "gpu_memcpy", "gpu_memset"} <= kinds, kinds)
        self.nothing_is_left(daemon)

    def test_by_run_with_a_summary(self):
        done = through_run(program("opencl_vector_add"), "--profile-summary",
                           environment=clean_environment(OPENCL_TEST_PLATFORM="outboard"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"calls: [1-9]\d* answered here, [1-9]\d* sent without waiting, [1-9]\d* waited for")
        self.assertRegex(done.stderr, r"(?m)^ *100\.0 .* add$")

    def test_of_several_servers_the_first_tells(self):
        first, own = self.serve(), self.folder
        self.folder = os.path.join(own, "second")
        os.mkdir(self.folder)
        second, self.folder = self.serve(), own
        done = run_program(program("opencl_several"), f"{first.unix},{second.unix}", OUTBOARD_PROFILE=self.file, **ICD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"the profile lacks what the devices of {second.unix} do", done.stderr)
        self.assertTrue(any(e["name"].startswith("the profile lacks") for e in self.events()))
        self.assertTrue(any(e.get("cat") == "kernel" for e in self.events()))


if __name__ == "__main__":
    unittest.main()
