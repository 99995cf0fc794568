"""A profiler in a program is told why it sees no kernels: one line on stderr, which can be silenced, and one of doctor's."""
import os
import subprocess
import sys
import tempfile
import unittest

from harness import BUILD, DEVICE, clean_environment, run

PRELOAD = os.environ.get("OUTBOARD_PRELOAD", "")
# Tables that CUPTI alone asks for, and one of those that every runtime wants.
TOOLS = "2c8e0ad80710ab4e90dd54719fe5f74b", "fc58ac1a057c444fa97772ee9aefdb89"
RUNTIME = "a094798c2e742e7493f20800200c0a66"
ASK = """
import ctypes, sys
driver, table = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
print([driver.cuGetExportTable(ctypes.byref(table), bytes.fromhex(one)) for one in sys.argv[1:]])
"""

BEGIN = 'import ctypes; driver = ctypes.CDLL("libcuda.so.1"); first = driver.cuInit(0); print(first, driver.cuInit(0))'
BEGIN_TWICE = """
import ctypes, os, threading
driver = ctypes.CDLL("libcuda.so.1")
threads = [threading.Thread(target=lambda: os.write(1, b"began\\n" if driver.cuInit(0) == 0 else b"failed")) for _ in range(2)]
for each in threads: each.start()
for each in threads: each.join()
"""
# The tool is told that nothing can be recorded, and calls the driver from there. It is not initialised yet.
FATAL = """
import ctypes
driver, cupti = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcupti.so.13")
STATE, CONCURRENT_KERNEL = 6, 10
def told(data, domain, what, about):
    print(domain, driver.cuInit(0), flush=True)
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(told)
subscriber = ctypes.c_void_p()
codes = [cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None), cupti.cuptiEnableDomain(1, subscriber, STATE),
         cupti.cuptiActivityEnable(CONCURRENT_KERNEL)]
print(codes, driver.cuInit(0))
"""

# Devices are known before the program says where records go.
LATE = """
import ctypes, time
driver, cupti = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcupti.so.13")
DEVICE = 8
codes = [cupti.cuptiActivityEnable(DEVICE), driver.cuInit(0)]
time.sleep(0.3)
room, kinds, kept = ctypes.create_string_buffer(65536 + 8), [], []
at = (ctypes.addressof(room) + 7) // 8 * 8
def give(buffer, size, most):
    buffer[0], size[0], most[0] = at, 65536, 0
def take(context, stream, buffer, size, valid):
    if valid: kinds.append(ctypes.c_int.from_address(buffer).value)
P = ctypes.POINTER
kept = [ctypes.CFUNCTYPE(None, P(ctypes.c_void_p), P(ctypes.c_size_t), P(ctypes.c_size_t))(give),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(take)]
codes += [cupti.cuptiActivityRegisterCallbacks(*kept), cupti.cuptiActivityFlushAll(0)]
print(codes, kinds)
"""

# Full buffers come back at the period that the program asks for, which here is longer than it runs, and else by themselves.
PERIOD = """
import ctypes, time
driver, cupti = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcupti.so.13")
DRIVER, SIZE = 4, 4096
room, back, at = ctypes.create_string_buffer(1 << 20), [], 0
def give(buffer, size, most):
    global at
    buffer[0], size[0], most[0] = (ctypes.addressof(room) + 7) // 8 * 8 + at % (1 << 19), SIZE, 0
    at += SIZE
P = ctypes.POINTER
kept = [ctypes.CFUNCTYPE(None, P(ctypes.c_void_p), P(ctypes.c_size_t), P(ctypes.c_size_t))(give),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
            lambda *about: back.append(about[4]))]
driver.cuInit(0)
codes = [cupti.cuptiActivityRegisterCallbacks(*kept), cupti.cuptiActivityFlushPeriod(3600000), cupti.cuptiActivityEnable(DRIVER)]
for i in range(1000): driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
time.sleep(0.5)
codes.append(len(back))
codes.append(cupti.cuptiActivityFlushPeriod(0))
end = time.monotonic() + 10
while not back and time.monotonic() < end: time.sleep(0.01)
print(codes, len(back) > 0)
"""

# Kinds: one without records here, one of CUPTI 13.1, one that none has; and the device's sensors.
KINDS = """
import ctypes
driver, cupti = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcupti.so.13")
UNIFIED_MEMORY_COUNTER, GRAPH_HOST_NODE, ENVIRONMENT, RESOURCE = 25, 56, 20, 3
driver.cuInit(0)
callback, subscriber = ctypes.CFUNCTYPE(None)(lambda: None), ctypes.c_void_p()
cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None)
print([cupti.cuptiActivityEnable(kind) for kind in (UNIFIED_MEMORY_COUNTER, GRAPH_HOST_NODE, 9999, ENVIRONMENT)] +
      [cupti.cuptiEnableCallback(1, subscriber, RESOURCE, 500)])
"""
NOT_SUPPORTED, INVALID_KIND, INVALID_PARAMETER = 27, 21, 1
LINKED = """
#include <stdio.h>
int cuptiActivityEnable_v2(void* subscriber, int kind, void* how);
int cuptiActivityEnable(int kind);
int main(void) { return printf("%d %d\\n", cuptiActivityEnable(4), cuptiActivityEnable_v2(0, 10, 0)) < 0; }
"""


class Profilers(unittest.TestCase):
    def asks(self, *tables, **variables):
        return self.runs([sys.executable, "-c", ASK, *tables], variables)

    def begins(self, **variables):
        return self.runs([sys.executable, "-c", BEGIN], variables)

    @staticmethod
    def runs(program, variables, device=DEVICE):
        if PRELOAD:
            program = ["env", f"LD_PRELOAD={PRELOAD}", "ASAN_OPTIONS=detect_leaks=0", *program]
        return run("run", "--device", device, "--", *program, environment=clean_environment(**variables))

    def test_a_profiler_is_told_once(self):
        done = self.asks(*TOOLS)
        self.assertEqual((done.returncode, done.stdout), (0, "[1, 1]\n"), done.stderr)
        self.assertEqual(done.stderr.count("will see no kernels"), 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_not_who_wants_silence(self):
        done = self.asks(*TOOLS, OUTBOARD_LOG="off")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[1, 1]\n", ""))

    def test_nor_a_runtime(self):
        done = self.asks(RUNTIME)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0]\n", ""))

    def test_a_tool_is_injected_once(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "tool.c"), os.path.join(folder, "tool.so")
            with open(source, "w") as file:
                file.write('#include <stdio.h>\nint InitializeInjection(void) { return puts("injected") >= 0; }\n')
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            for tool, said, complaint in ((library, "injected\n", ""), (source, "", "CUDA_INJECTION64_PATH"),
                                          ("libm.so.6", "", "has no function InitializeInjection")):
                done = self.begins(CUDA_INJECTION64_PATH=tool)
                self.assertEqual((done.returncode, done.stdout), (0, said + "0 0\n"), done.stderr)
                self.assertIn(complaint, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1 if complaint else 0, done.stderr)

    def test_no_thread_goes_on_before_the_tool_has_begun(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "tool.c"), os.path.join(folder, "tool.so")
            with open(source, "w") as file:
                file.write("#include <unistd.h>\n#include <dlfcn.h>\nint InitializeInjection(void) {\n  usleep(200000);\n"
                           "  int (*init)(unsigned) = (int (*)(unsigned))dlsym(dlopen(\"libcuda.so.1\", RTLD_NOW), \"cuInit\");\n"
                           "  return init(0) == 0 && write(1, \"injected\\n\", 9) == 9;\n}\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            done = self.runs([sys.executable, "-c", BEGIN_TWICE], {"CUDA_INJECTION64_PATH": library})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "injected\nbegan\nbegan\n", ""))

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_a_tool_that_cannot_record_may_call_the_driver(self):
        done = self.runs([sys.executable, "-c", FATAL], {}, "mock")
        self.assertEqual((done.returncode, done.stdout), (0, "6 0\n[0, 0, 0] 0\n"), done.stderr)
        self.assertIn("no kernels and no copies for the program's profiler", done.stderr)

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_devices_wait_for_the_tools_buffers(self):
        done = self.runs([sys.executable, "-c", LATE], {})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0, 0, 0, 0] [8]\n", ""))

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_full_buffers_come_back_when_the_program_wants_them(self):
        done = self.runs([sys.executable, "-c", PERIOD], {})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0, 0, 0, 0, 0] True\n", ""))

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_what_has_no_records_is_refused_by_name(self):
        done = self.runs([sys.executable, "-c", KINDS], {"OUTBOARD_LOG": "warn"}, "cpu")
        codes = [NOT_SUPPORTED, INVALID_KIND, INVALID_KIND, NOT_SUPPORTED, INVALID_PARAMETER]
        self.assertEqual((done.returncode, done.stdout), (0, f"{codes}\n"), done.stderr)
        for line in ("CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER is not recorded",
                     "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE (56) is of a newer CUPTI than this one",
                     "no samples of clocks, temperature and power for the program's profiler: the server's device has no sensors",
                     "callback 500 of CUPTI's domain 3 is of a newer CUPTI"):
            self.assertEqual(done.stderr.count(line), 1, done.stderr)

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_a_program_of_a_newer_cupti_starts_and_is_told_what_it_cannot_have(self):
        with tempfile.TemporaryDirectory() as folder:
            def build(name, source, *flags):
                path = os.path.join(folder, name)
                with open(path + ".c", "w") as file:
                    file.write(source)
                subprocess.run(["cc", "-o", path, path + ".c", *flags], check=True)
                return path

            with open(os.path.join(folder, "map"), "w") as file:
                file.write("libcupti.so.13 { global: *; };\n")
            newer = build("libcupti.so.13", "int cuptiActivityEnable(void) { return 0; }\nint cuptiActivityEnable_v2(void) { return 0; }\n",
                          "-shared", "-fPIC", "-Wl,-soname,libcupti.so.13", f"-Wl,--version-script,{folder}/map")
            # As Python loads its modules: all functions must be there at once.
            linked = build("linked", LINKED, newer, "-Wl,-z,now")
            done = self.runs([linked], {})
        self.assertEqual((done.returncode, done.stdout), (0, f"0 {NOT_SUPPORTED}\n"), done.stderr)
        self.assertIn("cuptiActivityEnable_v2 is of a newer CUPTI than this one", done.stderr)
        self.assertIn("outboard run --profile", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_doctor_says_it(self):
        done = run("doctor")
        here = (BUILD / "lib/outboard/libcupti.so.13").exists()
        self.assertIn("profilers in programs (CUPTI): see " + ("the server's kernels" if here else "no kernels"), done.stdout)
        self.assertIn("    profilers see its work\n", run("doctor", "--device", "cpu").stdout)

    @unittest.skipIf(PRELOAD, "the sanitizer's run time comes first")
    def test_programs_find_ours(self):
        libraries = ["libcupti.so.13", "libcupti.so.12"]
        if not (BUILD / "lib/outboard" / libraries[0]).exists():
            self.skipTest("built without CUPTI")
        ask = "import ctypes, sys; [print(hasattr(ctypes.CDLL(n), 'outboard_frontend_marker')) for n in sys.argv[1:]]"
        program = [sys.executable, "-c", ask, *libraries]
        done = run("run", "--device", DEVICE, "--", *program, environment=clean_environment())
        self.assertEqual((done.stdout, done.stderr), ("True\nTrue\n", ""))
        done = run("run", "--device", DEVICE, "--", "printenv", "LD_PRELOAD",
                   environment=clean_environment(OUTBOARD_CUPTI="0", LD_PRELOAD=""))
        self.assertEqual(done.stdout, "\n" if done.returncode == 0 else "")
        done = run("run", "--device", DEVICE, "--", "printenv", "LD_PRELOAD",
                   environment=clean_environment(LD_PRELOAD="libm.so.6"))
        self.assertTrue(done.stdout.startswith("libm.so.6:"), done.stdout)

    def test_nvtx_finds_ours_where_a_profile_is_made_or_cupti_is_named(self):
        ours = str(BUILD / "lib/outboard/libcupti.so.13")
        if not os.path.exists(ours):
            self.skipTest("built without CUPTI")

        def named(*flags, **variables):
            done = run("run", "--device", DEVICE, *flags, "--", "printenv", "NVTX_INJECTION64_PATH",
                       environment=clean_environment(**variables))
            return done.stdout.strip(), done.stderr

        with tempfile.TemporaryDirectory() as folder:
            profile = ("--profile", os.path.join(folder, "profile.json"))
            self.assertEqual(named(), ("", ""))
            self.assertEqual(named(*profile), (ours, ""))
            self.assertEqual(named(OUTBOARD_PROFILE_SUMMARY="1"), (ours, ""))
            # NVIDIA's is meant as ours, like the libraries themselves; not where the user wants NVIDIA's.
            for theirs in ("/usr/local/cuda/lib64/libcupti.so", "libcupti.so.12"):
                self.assertEqual(named(NVTX_INJECTION64_PATH=theirs), (ours, ""))
                self.assertEqual(named(NVTX_INJECTION64_PATH=theirs, OUTBOARD_CUPTI="0"), (theirs, ""))
            # Another tool's stays, and the profile's user is told.
            other = "/opt/tool/libother.so"
            self.assertEqual(named(NVTX_INJECTION64_PATH=other), (other, ""))
            value, said = named(*profile, NVTX_INJECTION64_PATH=other)
            self.assertEqual(value, other)
            self.assertIn("the profile will have no NVTX ranges", said)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
