"""A server whose NVML replies are malformed: the connection ends at the first one, the call and all later ones say that the
GPU is lost until the program initialises NVML again, the log says why, and nothing hangs."""
import pathlib
import re
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from damaged_replies import DAMAGES, DamagingProxy  # noqa: E402
from outboard_testing import LIBRARY, SystemTest, program_environment  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/coverage-nvml.md"
OPCODES = {name: int(code) for code, name in
           re.findall(r"^\| (\d+) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)}
GPU_IS_LOST = 15

# Says "ready", waits for a line, asks one question, then others; then it begins anew.
CLIENT = """
import ctypes, sys
nvml = ctypes.CDLL(sys.argv[1])
assert nvml.nvmlInit_v2() == 0
count, device, memory, name = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)(), ctypes.create_string_buffer(96)
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
def processes():
    room, list = ctypes.c_uint(2), (ctypes.c_ulonglong * 6)()
    return nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(room), list)
ask = {"nvmlDeviceGetCount_v2": lambda: nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)),
       "nvmlDeviceGetMemoryInfo": lambda: nvml.nvmlDeviceGetMemoryInfo(device, memory),
       "nvmlDeviceGetName": lambda: nvml.nvmlDeviceGetName(device, name, 96),
       "nvmlDeviceGetComputeRunningProcesses_v3": processes}
print("ready", flush=True)
input()
codes = [ask[sys.argv[2]]()] + [each() for each in ask.values()]
codes += [nvml.nvmlShutdown(), nvml.nvmlInit_v2()] + [each() for each in ask.values()]
print(*codes)
"""


class WrongReplies(SystemTest):
    def one(self, proxy, function, damage, change=None):
        client = subprocess.Popen([sys.executable, "-c", CLIENT, str(LIBRARY / "libnvidia-ml.so.1"), function], text=True,
                                  env=program_environment(proxy.url), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.addCleanup(self.end, client)
        self.wait_for_line(client, "ready")
        proxy.damage(OPCODES[function], change or DAMAGES[damage])
        out, err = client.communicate("\n", timeout=30)
        with self.subTest(function=function, damage=damage):
            self.assertEqual(proxy.damaged, 1)
            self.assertEqual([int(code) for code in out.split()], [GPU_IS_LOST] * 5 + [0] * 6, err)
            self.assertIn(f"the server's reply to {function} is malformed", err)

    def test_each_ends_the_connection(self):
        daemon = self.serve()
        proxy = DamagingProxy(daemon.tcp)
        self.addCleanup(proxy.close)
        for function in ("nvmlDeviceGetCount_v2", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetName"):
            for damage in ("cut_off", "too_long", "empty"):
                self.one(proxy, function, damage)

    def test_a_list_is_no_longer_than_the_programs_room(self):
        def longer(payload):  # a code, one counter, the list
            self.assertEqual(struct.unpack_from("<iI", payload), (0, 1))
            return payload[:8] + struct.pack("<I", 9999) + payload[12:]
        daemon = self.serve()
        proxy = DamagingProxy(daemon.tcp)
        self.addCleanup(proxy.close)
        self.one(proxy, "nvmlDeviceGetComputeRunningProcesses_v3", "longer", longer)


if __name__ == "__main__":
    unittest.main()
