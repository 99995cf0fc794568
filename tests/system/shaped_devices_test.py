#!/usr/bin/env python3
"""The server's configuration shapes what clients see: name, memory, which devices. Driver, NVML and the lists agree, the
limit holds for each session alone, and values that make no sense stop the server at its start."""
import sys
import unittest

from outboard_testing import SystemTest, clean_environment, program, run, run_program

MEMORY = 192 << 20
CONFIG = f"""
[cpu]
memory = "2GiB"
[devices]
visible = ["0"]
name = "Lab {{name}}"
memory = {MEMORY}
"""
NAME = "Lab Outboard CPU device"


class ShapedDevices(SystemTest):
    def test_a_program_sees_name_and_memory_as_configured(self):
        daemon = self.serve(config=CONFIG)
        (device,) = daemon.ask("devices")
        self.assertEqual((device["name"], device["memory_bytes"]), (NAME, MEMORY))
        for url in (daemon.unix, daemon.tcp):
            done = run_program(program("shaped_devices", NAME, MEMORY), url)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_each_session_has_the_limit_for_itself(self):
        daemon = self.serve(config=CONFIG)
        script = ("import ctypes as c, sys; d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); p = c.c_uint64();"
                  "r = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x),"
                  f"d.cuMemAlloc_v2(c.byref(p), c.c_size_t({MEMORY} * 3 // 4)), d.cuMemAlloc_v2(c.byref(p), c.c_size_t({MEMORY} // 2))];"
                  "print(*r, flush=True); sys.stdin.read()")
        held = [self.start([sys.executable, "-c", script], daemon.unix) for _ in range(2)]
        for process in held:
            self.assertEqual(process.stdout.readline(), "0 0 0 0 2\n")
        self.nothing_is_left(daemon)

    def test_without_the_section_nothing_is_shaped(self):
        daemon = self.serve()
        done = run_program(program("shaped_devices", "Outboard CPU device", 2 << 30), daemon.unix)
        # Everything but the limit: NVML then speaks of the whole board, of which the driver keeps a part.
        self.assertNotIn("cuDeviceGetName", done.stdout)
        (device,) = daemon.ask("devices")
        self.assertEqual((device["name"], device["memory_bytes"]), ("Outboard CPU device", 2 << 30))
        self.nothing_is_left(daemon)

    def test_values_that_make_no_sense_stop_the_start(self):
        path = f"{self.folder}/bad.toml"
        for text, status, said in (('visible = ["1"]', 1, '"1" names no device'),
                                   ('visible = ["0", "GPU-"]', 1, "names no device"),
                                   ('visible = []', 6, "devices.visible"),
                                   ('memory = "1KiB"', 6, "from 64MiB"),
                                   ('name = ""', 6, "devices.name"),
                                   ('names = "x"', 6, "visible, name, memory")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"[devices]\n{text}\n")
            done = run("serve", "--device", "cpu", "--listen", f"unix:{self.folder}/s", "--config", path,
                       environment=clean_environment())
            self.assertEqual(done.returncode, status, (text, done.stderr))
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
