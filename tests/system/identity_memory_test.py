#!/usr/bin/env python3
"""`device_memory` of a table [identity.NAME]: its sessions hold no more of a device together, each sees what is left,
and what a dead one held is free at once."""
import os
import sys
import time
import unittest

from outboard_testing import SystemTest, run, wait_until

MEMORY = 192 << 20
CONFIG = f"""
[limits]
linger_seconds = 0
[cpu]
memory = "2GiB"
[identity.lab]
users = ["{os.geteuid()}"]
device_memory = {MEMORY}
"""
# Reads sizes and answers each with the code of its allocation and what is free of how much then; "free" gives all back.
SCRIPT = """
import ctypes as c, sys
d = c.CDLL('libcuda.so.1')
x, free, total, held = c.c_void_p(), c.c_size_t(), c.c_size_t(), []
assert [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)] == [0, 0, 0]
print('ready', flush=True)
for line in sys.stdin:
    code = 0
    if line == 'free\\n':
        code = max([0, *(d.cuMemFree_v2(p) for p in held)])
        held.clear()
    elif int(line):
        p = c.c_uint64()
        code = d.cuMemAlloc_v2(c.byref(p), c.c_size_t(int(line)))
        if code == 0:
            held.append(p)
    assert d.cuMemGetInfo_v2(c.byref(free), c.byref(total)) == 0
    print(code, free.value, total.value, flush=True)
"""
OUT_OF_MEMORY = 2


class IdentityMemory(SystemTest):
    def program(self, url, **more):
        process = self.start([sys.executable, "-c", SCRIPT], url, stdin=-1, **more)
        self.wait_for_line(process, "ready")
        return process

    def ask(self, process, what):
        process.stdin.write(f"{what}\n")
        process.stdin.flush()
        return tuple(int(word) for word in process.stdout.readline().split())

    def test_all_sessions_of_an_identity_have_it_together(self):
        daemon = self.serve(config=CONFIG)
        (device,) = daemon.ask("devices")
        self.assertEqual(device["memory_bytes"], MEMORY)
        first, second, other = self.program(daemon.unix), self.program(daemon.unix), self.program(daemon.tcp)
        quarter = MEMORY // 4
        self.assertEqual(self.ask(first, 3 * quarter), (0, quarter, MEMORY))
        self.assertEqual(self.ask(second, 0), (0, quarter, MEMORY))
        self.assertEqual(self.ask(second, 2 * quarter)[0], OUT_OF_MEMORY)
        self.assertEqual(self.ask(second, quarter), (0, 0, MEMORY))
        self.assertEqual(self.ask(second, 1)[0], OUT_OF_MEMORY)
        code, _, total = self.ask(other, 4 * quarter)
        self.assertEqual((code, total > MEMORY), (0, True), "whoever is in no table has no such limit")
        told = daemon.doctor()["identity"]
        self.assertEqual((told["device_memory_limit"], told["device_memory_held"]), (MEMORY, [MEMORY]))
        self.assertIn("; memory 192 MiB of 192 MiB", run("doctor", "--server", daemon.unix).stdout)
        first.kill()
        first.wait()
        # Once its worker has ended.
        self.assertTrue(wait_until(lambda: self.ask(second, 3 * quarter)[0] == 0, 1))
        self.assertEqual(self.ask(second, "free"), (0, MEMORY, MEMORY))
        for process in (second, other):
            process.kill()
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_the_memory_of_a_revoked_token_is_back_within_ten_seconds(self):
        tokens = ["--tokens-file", f"{self.folder}/tokens"]
        daemon = self.serve(*tokens, config=CONFIG.replace(f'users = ["{os.geteuid()}"]', 'tokens = ["ann", "bob"]'))
        for name in ("ann", "bob"):
            done = run("token", "create", name, *tokens)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.token_file(done.stdout.strip(), name=name)
        self.assertTrue(wait_until(lambda: run("devices", "--server", daemon.tcp, "--token-file", f"{self.folder}/bob").returncode == 0))
        hers, his = (self.program(daemon.tcp, OUTBOARD_TOKEN_FILE=f"{self.folder}/{name}") for name in ("ann", "bob"))
        self.assertEqual(self.ask(hers, MEMORY), (0, 0, MEMORY))
        self.assertEqual(self.ask(his, 1)[0], OUT_OF_MEMORY)
        began = time.monotonic()
        self.assertEqual(run("token", "revoke", "ann", *tokens).returncode, 0)
        self.assertTrue(wait_until(lambda: self.ask(his, MEMORY)[0] == 0, 10))
        print(f"what a revoked token held is free after {time.monotonic() - began:.2f} s")
        self.assertEqual(len(daemon.sessions()), 1)
        for process in (hers, his):
            process.kill()
        self.sessions_are_gone(daemon)

    def test_a_new_limit_counts_for_those_that_run(self):
        daemon = self.serve(config=CONFIG)
        process = self.program(daemon.unix)
        self.assertEqual(self.ask(process, MEMORY // 2)[0], 0)
        with open(f"{self.folder}/serve.toml", "w", encoding="utf-8") as file:
            file.write(CONFIG.replace(str(MEMORY), str(MEMORY // 2)))
        self.assertEqual(run("reload", "--server", daemon.unix).returncode, 0)
        self.assertEqual(self.ask(process, 1)[0], OUT_OF_MEMORY)
        process.kill()
        self.sessions_are_gone(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
