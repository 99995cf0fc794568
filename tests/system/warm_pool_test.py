"""What the command shows of a live back-end with real programs, and the warm pool: who gets a worker that waits."""
import json
import signal
import statistics
import sys
import time
import unittest

from outboard_testing import AT_ONCE, SANITIZED, SystemTest, program, run, run_program, wait_until

# A program that asks for the primary context's state and flags before and after it has made one.
FLAGS_SCRIPT = ("import ctypes as c, sys; d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); p = c.c_ulonglong();"
                "f = c.c_uint(); a = c.c_int(); wanted = int(sys.argv[1]);"
                "r = [d.cuInit(0), d.cuDevicePrimaryCtxGetState(0, c.byref(f), c.byref(a)), a.value, f.value];"
                "r += [d.cuDevicePrimaryCtxSetFlags_v2(0, wanted)] if wanted else [0];"
                "r += [d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x), d.cuCtxGetFlags(c.byref(f)), f.value];"
                "r += [d.cuMemAlloc_v2(c.byref(p), c.c_size_t(1 << 20)), d.cuMemsetD8_v2(p, 1, c.c_size_t(1 << 20)),"
                "d.cuCtxSynchronize()]; print(*r)")
BLOCKING_SYNC, YIELD = 4, 2
# Free memory asked twice as soon as there is a context: what each answer took, in seconds.
FREE_SCRIPT = ("import ctypes as c, time; d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); a = c.c_size_t(); b = c.c_size_t();"
               "r = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)]; t = [time.perf_counter()];\n"
               "for i in range(2): r += [d.cuMemGetInfo_v2(c.byref(a), c.byref(b))]; t += [time.perf_counter()]\n"
               "print(max(r), t[1] - t[0], t[2] - t[1])")


class Shown(SystemTest):
    config = AT_ONCE

    def test_sessions_devices_and_doctor(self):
        daemon = self.serve()
        listed = json.loads(run("sessions", "--server", daemon.unix, "--json").stdout)
        self.assertEqual(listed, [])
        clients = [self.start(program("matmul", 256, 100000), url) for url in (daemon.unix, daemon.tcp)]
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 2, 20))
        for url in (daemon.unix, daemon.tcp):
            done = run("sessions", "--server", url, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            listed = json.loads(done.stdout)
            self.assertEqual({s["process"] for s in listed}, {c.pid for c in clients})
            self.assertEqual(len({s["id"] for s in listed}), 2)
            self.assertEqual({s["program"] for s in listed}, {"matmul"})
        plain = run("sessions", "--server", daemon.unix).stdout
        self.assertEqual(plain.count("matmul"), 2)
        devices = json.loads(run("devices", "--server", daemon.unix, "--json").stdout)
        self.assertEqual([(d["ordinal"], d["kind"]) for d in devices], [(0, "cpu")])
        done = run("doctor", "--server", daemon.unix, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        found = json.loads(done.stdout)
        self.assertEqual(found["wrong"], [])
        self.assertTrue(found["front_end"]["found"])
        answer = found["servers"][0]["answer"]
        self.assertEqual((answer["sessions"]["running"], answer["device"]["kind"]), (2, "cpu"))
        self.assertEqual(answer["device"]["driver_version"] // 1000, 13)
        self.assertIn("nothing is wrong", run("doctor", "--server", daemon.tcp).stdout)
        for client in clients:
            client.send_signal(signal.SIGKILL)
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_doctor_names_what_is_wrong(self):
        missing = f"unix:{self.folder}/none"
        done = run("doctor", "--server", missing, "--json")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn(missing, json.loads(done.stdout)["wrong"][0])


class WarmPool(SystemTest):
    config = AT_ONCE

    def warm(self, daemon, count=1):
        self.assertTrue(wait_until(lambda: sum(w["ready"] for w in daemon.doctor()["pool"]["warm"]) >= count, 20))

    def counts(self, daemon):
        pool = daemon.doctor()["pool"]
        return pool["hits"], pool["misses"]

    def counted(self, daemon, expected, about=None):
        """An answer may be some milliseconds old, on a busy machine some dozen."""
        self.assertTrue(wait_until(lambda: self.counts(daemon) == expected, 3), (self.counts(daemon), expected, about))

    def timed(self, url, **more):
        began = time.monotonic()
        done = run_program(program("vector_add", 1000), url, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return 1e3 * (time.monotonic() - began)

    def test_first_and_later_and_no_pool(self):
        daemon, rounds = self.serve(), 8
        missed, hit = [self.timed(daemon.unix)], []
        self.counted(daemon, (0, 1))
        for _ in range(rounds):
            self.warm(daemon)
            hit.append(self.timed(daemon.unix))
        self.counted(daemon, (rounds, 1))
        daemon.stop()
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        off = [self.timed(daemon.unix) for _ in range(rounds)]
        self.counted(daemon, (0, rounds))
        self.assertEqual(daemon.doctor()["pool"]["warm"], [])
        print(f"vector_add as a whole: first {missed[0]:.0f} ms, pool hit {statistics.median(hit):.0f} ms, "
              f"pool off {statistics.median(off):.0f} ms")
        if not SANITIZED:
            self.assertLess(min(hit), statistics.median(off) * 1.2 + 5)
        self.nothing_is_left(daemon)

    def test_sessions_that_come_fast_find_several_and_so_does_the_next_one(self):
        daemon = self.serve(config="[pool]\nburst = 3\n")
        burst = [self.start(program("vector_add", 1000), daemon.unix) for _ in range(8)]
        for client in burst:
            out, err = client.communicate(timeout=60)
            self.assertEqual((client.returncode, err), (0, ""), out)
        self.warm(daemon, 3)
        self.assertEqual(len(daemon.doctor()["pool"]["warm"]), 3)
        self.assertTrue(wait_until(lambda: sum(self.counts(daemon)) == 8, 3), self.counts(daemon))
        hits, misses = self.counts(daemon)
        for _ in range(3):  # at once, one after the other
            self.timed(daemon.unix)
        self.counted(daemon, (hits + 3, misses))
        self.nothing_is_left(daemon)

    def test_another_driver_environment_gets_a_cold_worker(self):
        daemon = self.serve()
        self.timed(daemon.unix)
        expected = [0, 1]
        for more, warm in (({}, True), ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, False), ({"CUDA_VISIBLE_DEVICES": "0"}, False),
                           ({"CUDA_MODULE_LOADING": "EAGER"}, False), ({"OMP_NUM_THREADS": "2"}, True)):
            self.warm(daemon)
            self.timed(daemon.unix, **more)
            expected[0 if warm else 1] += 1
            self.counted(daemon, tuple(expected), more)
        # Asked again, each kind has its own that waits.
        self.assertTrue(wait_until(lambda: any("CUDA_DEVICE_MAX_CONNECTIONS" in w["environment"]
                                               for w in daemon.doctor()["pool"]["warm"] if w["ready"]), 20))
        self.timed(daemon.unix, CUDA_DEVICE_MAX_CONNECTIONS="1")
        self.counted(daemon, (expected[0] + 1, expected[1]))
        self.nothing_is_left(daemon)

    def test_free_memory_is_told_when_warm_workers_have_started(self):
        """The one that takes the place of this session's worker makes a context; no program sees free memory move for that."""
        daemon = self.serve()
        waited = at_once = False
        self.timed(daemon.unix)
        for _ in range(10):
            self.warm(daemon)
            done = run_program([sys.executable, "-c", FREE_SCRIPT], daemon.unix)
            self.assertEqual(done.stderr, "")
            code, first, second = done.stdout.split()
            self.assertEqual(code, "0")
            self.assertLess(float(first), 10)
            waited |= float(first) > 0.01
            at_once |= float(second) < 0.01
        self.assertTrue(waited and at_once)
        self.nothing_is_left(daemon)

    def test_other_context_flags_are_the_programs_own(self):
        """The context that waited is given up for one with the flags that the program asks for; it cannot tell."""
        daemon = self.serve()
        for flags in (0, BLOCKING_SYNC, 0, YIELD):
            done = run_program([sys.executable, "-c", FLAGS_SCRIPT, str(flags)], daemon.unix)
            self.assertEqual(done.stderr, "")
            self.assertEqual(done.stdout.split(), ["0", "0", "0", "0", "0", "0", "0", "0", str(flags), "0", "0", "0"])
            self.warm(daemon)
        self.counted(daemon, (3, 1))
        self.nothing_is_left(daemon)

    def test_a_device_that_the_program_does_not_want_to_see(self):
        daemon = self.serve()
        uuid = daemon.ask("devices")[0]["uuid"]
        script = ("import ctypes as c; d = c.CDLL('libcuda.so.1'); n = c.c_int(-1);"
                  "print(d.cuInit(0), d.cuDeviceGetCount(c.byref(n)), n.value)")
        for visible, answer in (("-1", "100"), ("", "100"), ("1", "100"), ("GPU-ffffffffff", "100"), ("1,0", "100"),
                                (f" {uuid}", "100"), ("0,0", "101"), (f"{uuid},{uuid[:12]}", "101"), ("0,1,0", "0 0 1"),
                                ("0", "0 0 1"), ("0,1", "0 0 1"), ("0x1", "0 0 1"), (f"{uuid},0", "0 0 1"), (uuid.upper(), "0 0 1"), (uuid, "0 0 1"), (uuid[:12], "0 0 1")):
            done = run_program([sys.executable, "-c", script], daemon.unix, CUDA_VISIBLE_DEVICES=visible)
            self.assertTrue(done.stdout.startswith(answer), (visible, done.stdout, done.stderr))
            # It is the program's list, and no setting of the server's would open more to it.
            self.assertNotIn("worker.confine", done.stderr, visible)
            self.assertEqual("CUDA_VISIBLE_DEVICES" in done.stderr, answer != "0 0 1", (visible, done.stderr))
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
