"""Memory of an identity: its sessions together stay within what its row allows of a device and of the server's machine, others
are not affected, the share of a killed session is there at once, a reload counts for running sessions, and a worker that
writes nonsense where its identity counts harms its own identity only."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

from outboard_testing import CONFIG, SystemTest, program_environment, run, wait_until

MIB = 1 << 20
LIMIT = 256
OUT_OF_MEMORY = "2"
ROWS = f'[identity.ann]\ndevice_memory = "{LIMIT}MiB"\n'

# A CUDA program that does what the lines of its standard input say, and prints each result.
PROGRAM = """
import ctypes as c, sys
d = c.CDLL("libcuda.so.1")
context, held, locked = c.c_void_p(), [], []

def keep(place, code, what):
    if code == 0: place.append(what)
    return code

def take(mib):
    at = c.c_uint64()
    return keep(held, d.cuMemAlloc_v2(c.byref(at), c.c_size_t(mib << 20)), at)

def managed(mib):
    at = c.c_uint64()
    return keep(held, d.cuMemAllocManaged(c.byref(at), c.c_size_t(mib << 20), 1), at)

def pooled(mib):
    at = c.c_uint64()
    return keep(held, d.cuMemAllocAsync(c.byref(at), c.c_size_t(mib << 20), None), at)

# The question behind it is answered when the memory is free.
def give():
    return d.cuMemFree_v2(held.pop()) or left() * 0

def left():
    free, total = c.c_size_t(), c.c_size_t()
    return d.cuMemGetInfo_v2(c.byref(free), c.byref(total)) or free.value >> 20

def board():
    n = c.CDLL("libnvidia-ml.so.1")
    device, numbers = c.c_void_p(), (c.c_ulonglong * 3)()
    return n.nvmlInit_v2() or n.nvmlDeviceGetHandleByIndex_v2(0, c.byref(device)) or n.nvmlDeviceGetMemoryInfo(device, numbers) or \
        numbers[1] >> 20

def lock(mib):
    at, there = c.c_void_p(), c.c_uint64()
    code = d.cuMemHostAlloc(c.byref(at), c.c_size_t(mib << 20), 2)
    return keep(locked, code or d.cuMemHostGetDevicePointer_v2(c.byref(there), at, 0), at)

def unlock():
    return d.cuMemFreeHost(locked.pop()) or left() * 0

def copy(mib):
    bytes_ = c.create_string_buffer(mib << 20)
    return d.cuMemcpyHtoD_v2(held[-1], bytes_, c.c_size_t(mib << 20))

print(d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(context), 0), d.cuCtxSetCurrent(context), flush=True)
for line in sys.stdin:
    word, *numbers = line.split()
    print(globals()[word](*map(int, numbers)), flush=True)
"""


class TenantMemory(SystemTest):
    def setUp(self):
        super().setUp()
        self.tokens_file = pathlib.Path(self.folder, "tokens")
        self.token_files, self.programs = {}, []
        for name in ("ann", "bob"):
            done = run("token", "create", name, "--tokens-file", self.tokens_file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.token_files[name] = self.token_file(done.stdout.strip(), name=f"token-{name}")

    def serve_rows(self, rows):
        return self.serve("--tokens-file", self.tokens_file, config=CONFIG + rows)

    def reload(self, daemon, rows):
        (daemon.folder / "serve.toml").write_text(CONFIG + rows)
        done = run("reload", "--server", daemon.unix)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def begin_program(self, url, who=None):
        more = {"OUTBOARD_TOKEN_FILE": str(self.token_files[who])} if who else {}
        process = subprocess.Popen(["python3", "-c", PROGRAM], env=program_environment(url, **more), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        self.programs.append(process)
        self.assertEqual(process.stdout.readline(), "0 0 0\n")
        return process

    def end(self, process):
        process.stdin.close()
        super().end(process)

    def nothing_is_left(self, daemon):
        """As it says, when the programs have ended: a server that is to end waits for them."""
        for process in self.programs:
            process.stdin.close()
            process.wait(20)
        super().nothing_is_left(daemon)

    def does(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        self.assertNotEqual(answer, "", f"{line}: {process.poll()}")
        return answer

    def all_do(self, process, *lines):
        return [self.does(process, line) for line in lines]

    def test_two_sessions_of_one_identity_stay_within_its_limit_and_others_do_not_notice(self):
        daemon = self.serve_rows(ROWS)
        first, second = (self.begin_program(daemon.tcp, "ann") for _ in range(2))
        other = self.begin_program(daemon.tcp, "bob")
        for way in ("take", "managed", "pooled"):
            self.assertEqual(self.all_do(first, f"{way} 160"), ["0"], way)
            self.assertEqual(self.all_do(second, f"{way} 160", f"{way} 90", f"{way} 8"), [OUT_OF_MEMORY, "0", OUT_OF_MEMORY], way)
            for left in (self.does(first, "left"), self.does(second, "left"), self.does(second, "board")):
                self.assertLessEqual(int(left), LIMIT - 160 - 90, way)
            self.assertEqual(self.all_do(other, "take 512", "give"), ["0", "0"])
            self.assertGreater(int(self.does(other, "left")), LIMIT)
            self.assertGreater(int(self.does(other, "board")), LIMIT)
            self.assertEqual(self.all_do(first, "give") + self.all_do(second, "give"), ["0", "0"], way)
        self.assertEqual(self.all_do(second, f"take {LIMIT}", "give"), ["0", "0"])
        self.nothing_is_left(daemon)

    def test_many_that_allocate_at_once_stay_within_the_limit(self):
        daemon = self.serve_rows(ROWS)
        programs = [self.begin_program(daemon.tcp, "ann") for _ in range(4)]
        for _ in range(10):
            for process in programs:
                process.stdin.write("take 100\n")
                process.stdin.flush()
            codes = [process.stdout.readline().strip() for process in programs]
            self.assertEqual(sorted(codes), ["0", "0", OUT_OF_MEMORY, OUT_OF_MEMORY])
            for process, code in zip(programs, codes):
                if code == "0":
                    self.assertEqual(self.does(process, "give"), "0")
        self.nothing_is_left(daemon)

    def test_the_share_of_a_killed_session_is_there_at_once(self):
        daemon = self.serve_rows(ROWS)
        first, second = (self.begin_program(daemon.tcp, "ann") for _ in range(2))
        self.assertEqual(self.does(first, "take 200"), "0")
        self.assertEqual(self.does(second, "take 200"), OUT_OF_MEMORY)
        worker = next(s["worker"] for s in daemon.sessions() if s["memory_bytes"])
        os.kill(worker, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 1))
        self.assertEqual(self.does(second, "take 200"), "0")
        third = self.begin_program(daemon.tcp, "ann")
        self.assertEqual(self.all_do(third, "take 60", "take 50"), [OUT_OF_MEMORY, "0"])
        self.nothing_is_left(daemon)

    def test_a_reload_counts_for_running_sessions_and_takes_nothing_away(self):
        daemon = self.serve_rows("")
        first, second = (self.begin_program(daemon.tcp, "ann") for _ in range(2))
        self.assertEqual(self.all_do(first, "take 300"), ["0"])
        self.assertNotIn("device_memory", self.reload(daemon, ROWS))
        self.assertEqual(self.all_do(first, "take 8", "left", "copy 1"), [OUT_OF_MEMORY, "0", "0"])
        self.assertEqual(self.all_do(second, "take 8"), [OUT_OF_MEMORY])
        self.reload(daemon, ROWS.replace(str(LIMIT), "400"))
        self.assertEqual(self.all_do(second, "take 108", "take 80"), [OUT_OF_MEMORY, "0"])
        self.reload(daemon, "")
        self.assertEqual(self.all_do(second, "take 500"), ["0"])
        self.assertEqual(len(daemon.sessions()), 2)
        self.nothing_is_left(daemon)

    def test_memory_of_the_server_is_shared_by_an_identity_and_limited_for_each_session(self):
        daemon = self.serve_rows('[limits]\nhost_memory = "96MiB"\n[identity]\nhost_memory = "160MiB"\n')
        first, second = (self.begin_program(daemon.unix) for _ in range(2))
        self.assertEqual(self.all_do(first, "lock 97", "lock 90"), [OUT_OF_MEMORY, "0"])
        self.assertEqual(self.all_do(second, "lock 80", "lock 60"), [OUT_OF_MEMORY, "0"])
        held = [s["host_memory_bytes"] >> 20 for s in daemon.sessions()]
        self.assertEqual([90 <= held[0] <= 96, 60 <= held[1] <= 70], [True, True], held)
        self.assertEqual(self.all_do(first, "unlock") + self.all_do(second, "unlock"), ["0", "0"])
        self.assertEqual(self.does(second, "lock 80") + self.does(first, "lock 80"), "00")
        # Nothing is left, and copies find their way all the same.
        self.assertEqual(self.all_do(second, "take 64", "copy 64", "give"), ["0", "0", "0"])
        self.nothing_is_left(daemon)

    def test_lists_and_doctor_say_what_is_held_and_allowed(self):
        daemon = self.serve_rows(ROWS + 'host_memory = "1GiB"\n')
        first, second = (self.begin_program(daemon.tcp, "ann") for _ in range(2))
        other = self.begin_program(daemon.tcp, "bob")
        self.assertEqual(self.all_do(first, "take 64") + self.all_do(second, "take 32") + self.all_do(other, "take 512"), ["0"] * 3)
        self.assertEqual([s["memory_bytes"] >> 20 for s in daemon.sessions()], [64, 32, 512])
        asked = ["doctor", "--server", daemon.tcp, "--token-file", self.token_files["ann"]]
        memory = json.loads(run(*asked, "--json").stdout)["servers"][0]["answer"]["you"]["memory"]
        self.assertEqual((memory["device_bytes"], memory["device_limit"], memory["host_limit"]), (96 * MIB, LIMIT * MIB, 1024 * MIB))
        self.assertRegex(run(*asked).stdout, r"your sessions hold 96\S* MiB of at most 256\S* MiB of a device")
        self.nothing_is_left(daemon)

    def pages(self, daemon):
        """The files in which identities count, as their workers have them."""
        folder = pathlib.Path(f"/proc/{daemon.process.pid}/fd")
        return [folder / name for name in os.listdir(folder) if "outboard-memory" in os.readlink(folder / name)]

    def test_a_worker_that_writes_nonsense_harms_its_own_identity_only(self):
        daemon = self.serve_rows(ROWS)
        first, second = (self.begin_program(daemon.tcp, "ann") for _ in range(2))
        self.assertEqual(self.does(first, "take 32"), "0")
        (page,) = self.pages(daemon)
        other = self.begin_program(daemon.tcp, "bob")
        self.assertEqual(len(self.pages(daemon)), 2)
        size = page.stat().st_size
        for junk in (b"\x7f", bytes(range(1, 252))):
            with open(page, "r+b", buffering=0) as file:
                while file.tell() < size:
                    file.write((junk * (1 << 16))[:min(1 << 16, size - file.tell())])
            self.assertEqual(self.does(second, "take 32"), OUT_OF_MEMORY)
            self.assertEqual(self.does(second, "left"), "0")
            self.does(second, "board")
            self.assertEqual(self.all_do(other, "take 512", "copy 8", "give"), ["0", "0", "0"])
            self.assertGreater(int(self.does(other, "board")), LIMIT)
            self.assertEqual(len(daemon.sessions()), 3)
            self.assertEqual(daemon.doctor()["you"]["memory"]["device_bytes"], 0)
            run("doctor", "--server", daemon.tcp, "--token-file", self.token_files["ann"])
        self.reload(daemon, ROWS)
        for process in (first, second):
            process.kill()
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 1))
        again = self.begin_program(daemon.tcp, "ann")
        self.assertEqual(self.all_do(again, f"take {LIMIT}", "take 2"), ["0", OUT_OF_MEMORY])
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
