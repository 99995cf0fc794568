"""What the command says of OpenCL: the devices as a program sees them, the platforms and their confinement in doctor, and
that a session of it does not name the CUDA device."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import SANITIZED, SystemTest, clean_environment, run, wait_until  # noqa: E402

NO_SERVER = 3
# LeakSanitizer of clang 14 crashes itself where a program has loaded libraries with variables of threads.
NO_LEAKS = clean_environment(ASAN_OPTIONS="detect_leaks=0")


class Lists(SystemTest):
    def test_devices(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            done = run("devices", "--opencl", "--json", "--server", url, environment=NO_LEAKS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            found = next(device for device in json.loads(done.stdout) if "Portable Computing" in device["platform"])
            self.assertEqual(found["kind"], "CPU")
            self.assertRegex(found["version"], r"^OpenCL \d\.\d PoCL")
            self.assertGreater(found["memory_bytes"], 1 << 28)
            self.assertGreater(found["compute_units"], 0)
            done = run("devices", "--opencl", "--server", url, environment=NO_LEAKS)
            self.assertRegex(done.stdout, r"^PLATFORM +NAME +KIND +MEMORY +UNITS +VERSION +DRIVER\n.*Portable Computing.* CPU ")
        self.sessions_are_gone(daemon)
        self.assertTrue(wait_until(lambda: daemon.log().count(" ended after ") == 4))
        ended = [line for line in daemon.log().splitlines() if " ended after " in line]
        self.assertEqual([line for line in ended if not line.endswith(", OpenCL")], [])
        self.nothing_is_left(daemon)
        done = run("devices", "--opencl", "--server", daemon.unix)
        self.assertEqual((done.returncode, done.stdout), (NO_SERVER, ""), done.stderr)

    @unittest.skipIf(SANITIZED, "the library is loaded by the command, which is not built for that")
    def test_devices_of_this_machine(self):
        done = run("devices", "--opencl", "--device", "cpu")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Portable Computing", done.stdout)

    def test_doctor(self):
        daemon = self.serve(config='[worker]\nconfine = "off"\n')
        about = daemon.doctor()["opencl"]
        self.assertTrue(any("libpocl" in library for library in about["platforms"]), about)
        self.assertEqual((about["confine"], about["served"]), ("off", True))
        said = run("doctor", "--server", daemon.unix).stdout
        self.assertRegex(said, r"(?m)^    OpenCL: .*libpocl\.so\S*, workers are not confined$")
        daemon.stop()
        none = self.serve(environment=clean_environment(OCL_ICD_VENDORS=self.folder))
        self.assertRegex(run("doctor", "--server", none.unix).stdout, r"(?m)^    OpenCL: no platform is installed$")
        self.assertRegex(run("doctor", "--device", "cpu").stdout, r"(?m)^  OpenCL: .*libpocl\.so\S*, workers are not confined$")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
