"""Shared by the tests of what a stranger's OpenCL program can do that is this machine's own code: opencl_native_code, whose
kernels make the system calls that a test names."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import CONFIG, LIBRARY, SystemTest, program, program_environment  # noqa: E402

OFF = CONFIG + '[worker]\nconfine = "off"\n'
EPERM, EACCES = -1, -13
HERE = -100  # AT_FDCWD
MAKE = 0o101  # O_CREAT | O_WRONLY


class NativeCodeTest(SystemTest):
    def start_opencl(self, command, url, variables=None, **options):
        environment = program_environment(url, OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"), **(variables or {}))
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.end, process)
        return process

    def native(self, url, *words, **options):
        return self.start_opencl(program("opencl_native_code", *words), url, **options)

    def show(self, url, source, *words, **options):
        """What the compiler and the kernel say."""
        out, err = self.native(url, "show", *words, **options).communicate(source, timeout=120)
        return out + err

    def calls(self, url, attempts, **options):
        """{name: (result, text)} of {name: (number, argument...)}."""
        lines = "".join(f"{name} {' '.join(map(str, call))}\n" for name, call in attempts.items())
        process = self.native(url, "calls", **options)
        out, err = process.communicate(lines, timeout=120)
        self.assertEqual((process.returncode, err), (0, ""), out)
        found = {}
        for line in out.splitlines():
            name, result, *rest = line.split(" ", 2)
            found[name] = (int(result), "".join(rest))
        self.assertEqual(list(found), list(attempts))
        return found

    def results(self, url, attempts, **options):
        return {name: result for name, (result, _) in self.calls(url, attempts, **options).items()}
