"""A profile has what the device did and what the program asked, on one clock: counts, order, names, what a killed or a
second process leaves, and what is said where nothing can be recorded."""
import collections
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

from outboard_testing import LIBRARY, PROGRAMS, SystemTest, is_alive, program, run_program, through_run, wait_until

# Fills memory, says so, and ends when it gets SIGUSR1.
FILLS = """if True:
    import ctypes, signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    def must(code):
        assert code == 0, code
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
    must(cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(4096)))
    print("filled", flush=True)
    signal.sigwait({signal.SIGUSR1})
"""
# What tests/programs/profiler.cu launches, whether its own profiler looks or not.
IN_PROFILER = {"increment": 1 + 3 + 2 + 3 + 1 + 2000 + 1 + 100, "twice": 3, "nothing": 2, "busy": 3 * 36}
KERNELS = {"add(int*)": 12 + 5 * 3, "void twice<int>(int*)": 3}


class Profile(SystemTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "profile.json"

    def events(self, path=None):
        return json.loads((path or self.file).read_text())

    def profiled(self, url, **more):
        done = run_program(program("profiled"), url, OUTBOARD_PROFILE=str(self.file), **more)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "PASS"), done.stderr)
        return done

    def check(self, events):
        kernels = [e for e in events if e.get("cat") == "kernel"]
        self.assertEqual(collections.Counter(e["name"] for e in kernels), KERNELS)
        # The legacy stream and two of the program's; in each one after the other.
        streams = collections.defaultdict(list)
        for e in kernels:
            streams[e["pid"], e["tid"]].append(e)
        self.assertEqual(len(streams), 3)
        for rows in streams.values():
            for before, after in zip(rows, rows[1:]):
                # To 1 us: what is later than the last look at the clocks has no drift, which shows at the next one.
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 1)
        fills = [e for e in events if e.get("cat") == "gpu_memset"]
        self.assertEqual([e["args"]["bytes"] for e in fills], [16384])
        copied = [e for e in events if e.get("cat") == "gpu_memcpy" and "DtoH" in e["name"]]
        self.assertEqual(sum(e["args"]["bytes"] for e in copied), 2 * 16384)

    def check_calls(self, events):
        """All work names the call that it was done for, and an arrow comes from there."""
        calls = {e["args"]["correlation"]: e["name"] for e in events if e.get("cat") == "driver" and "correlation" in e["args"]}
        work = [e for e in events if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
        of_kernels = collections.Counter(calls[e["args"]["correlation"]].split("_")[0] for e in work if e["cat"] == "kernel")
        self.assertEqual(sum(of_kernels.values()), 30)
        self.assertEqual(of_kernels["cuGraphLaunch"], 5 * 3)
        self.assertTrue(all(calls[e["args"]["correlation"]].startswith("cuMem") for e in work if e["cat"] != "kernel"))
        arrows = {e["id"] for e in events if e["ph"] == "s"}
        self.assertEqual({e["id"] for e in events if e["ph"] == "f"} - arrows, set())

    def check_order(self, events, error_us):
        """A kernel begins after its launch was asked for and ends before the wait that returned for it."""
        calls = sorted((e for e in events if e.get("cat") == "driver"), key=lambda e: e["ts"])
        launches = [e for e in calls if e["name"].startswith("cuLaunchKernel")][:12]
        waits = [e for e in calls if e["name"].startswith("cuStreamSynchronize")][:12]
        first = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])[:12]
        for launch, kernel, wait in zip(launches, first, waits, strict=True):
            self.assertGreaterEqual(kernel["ts"] + error_us, launch["ts"])
            self.assertLessEqual(kernel["ts"] + kernel["dur"] - error_us, wait["ts"] + wait["dur"])

    def test_over_each_transport(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            self.profiled(url)
            events = self.events()
            self.check(events)
            self.check_calls(events)
            # How far the clocks may be apart stands in the device's title.
            titles = [e["args"]["name"] for e in events if e["name"] == "process_name" and "device" in e["args"]["name"]]
            self.check_order(events, 1 + int(titles[-1].split("agree to ")[1].split(" us")[0]))
            self.assertTrue(any(e["ph"] == "C" and e["args"]["sent"] > 0 for e in events))
        self.nothing_is_left(daemon)

    @unittest.skipUnless((PROGRAMS / "profiler").exists(), "built without CUPTI")
    def test_beside_a_profiler_in_the_program(self):
        """Both see every record: the program checks its own, and all that it launched is in the file."""
        daemon = self.serve()
        done = run_program(program("profiler"), daemon.unix, OUTBOARD_PROFILE=str(self.file))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ["PASS profiler"]), done.stdout + done.stderr)
        kernels = collections.Counter(e["name"].split("(")[0] for e in self.events() if e.get("cat") == "kernel")
        self.assertEqual(kernels, IN_PROFILER)
        self.nothing_is_left(daemon)

    def test_by_run_with_a_summary(self):
        done = through_run(program("profiled"), "--device", "cpu", "--profile", self.file, "--profile-summary")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(self.events())
        self.assertRegex(done.stderr, r"\n +[\d.]+ +[\d.]+ +27 .* add\(int\*\)\n")
        self.assertRegex(done.stderr, r"\n +[\d.]+ +[\d.]+ +3 .* void twice<int>\(int\*\)\n")
        self.assertRegex(done.stderr, r"\n +[\d.]+ +[\d.]+ +1 .* memset \(device\)\n")
        self.assertRegex(done.stderr, r"device 0: at work for [\d.]+ ms, [\d.]+ % of it")
        self.assertRegex(done.stderr, r"calls: \d+ answered here, \d+ sent without waiting, \d+ waited for: [\d.]+ ms")

    def test_a_killed_program_leaves_what_was_written(self):
        daemon = self.serve()
        client = self.start(program("profiled", "stay"), daemon.unix, OUTBOARD_PROFILE=str(self.file))
        self.wait_for_line(client, "PASS")
        self.assertTrue(wait_until(lambda: '"memset' in self.file.read_text() and "cuGraphLaunch" in self.file.read_text()))
        client.send_signal(signal.SIGKILL)
        client.wait()
        self.check(json.loads(self.file.read_text().rstrip(",\n") + "]"))
        self.sessions_are_gone(daemon)

    def test_a_hung_server_does_not_hold_up_the_end(self):
        daemon = self.serve()
        both = [(self.file, daemon.unix), (self.file.with_name("other.json"), daemon.tcp)]
        clients = [self.start([sys.executable, "-c", FILLS], url, OUTBOARD_PROFILE=str(file), OUTBOARD_PROFILE_SUMMARY="1")
                   for file, url in both]
        for client, (file, _) in zip(clients, both):
            self.wait_for_line(client, "filled")
            self.assertTrue(wait_until(lambda: '"gpu_memset"' in file.read_text()))
        for worker in daemon.workers():
            self.addCleanup(lambda worker=worker: is_alive(worker) and os.kill(worker, signal.SIGKILL))
            os.kill(worker, signal.SIGSTOP)
        for client in clients:
            client.send_signal(signal.SIGUSR1)
        for client, (file, _) in zip(clients, both):
            out, err = client.communicate(timeout=10)
            self.assertEqual(client.returncode, 0, err)
            said = "the profile lacks what the device did last: the server has not told it within"
            self.assertEqual(err.count(said), 1, err)
            self.assertRegex(err, r" 1 .* memset \(device\)\n")
            events = self.events(file)
            self.assertEqual([e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memset"], [4096])
            self.assertTrue(any(said in e["name"] for e in events))

    def test_two_processes_write_two_files(self):
        both = ["sh", "-c", f"{program('profiled')[0]} && {program('profiled')[0]}"]
        done = through_run(both, "--device", "cpu", "--profile", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(self.file.parent.glob("profile.json*"))
        self.assertEqual(len(files), 2, files)
        for one in files:
            self.check(self.events(one))

    def check_annotations(self, events):
        """tests/programs/annotated.cu says what it has annotated."""
        ranges = [e for e in events if e.get("cat") == "nvtx" and e["ph"] == "X"]
        by_name = {e["name"]: e for e in ranges}
        self.assertEqual(collections.Counter(e["name"] for e in ranges),
                         {"before CUDA": 1, "äußerer — 😀": 1, "step": 3, "goes on": 1, "worker": 1, "never ended by its thread": 1})
        # Each step lies in the outer range, and the calls that it made lie in it, in the same row.
        outer, steps = by_name["äußerer — 😀"], [e for e in ranges if e["name"] == "step"]
        self.assertEqual([e["args"]["payload"] for e in steps], [0, 1, 2])
        launches = [e for e in events if e.get("cat") == "driver" and e["name"].startswith("cuLaunchKernel")]
        def inside(one, other):
            return (one["tid"] == other["tid"] and other["ts"] <= one["ts"] and
                    one["ts"] + one["dur"] <= other["ts"] + other["dur"] + 0.001)
        for step in steps:
            self.assertTrue(inside(step, outer))
            self.assertEqual(len([e for e in launches if inside(e, step)]), 1)
        self.assertEqual(len([e for e in launches if inside(e, by_name["worker"])]), 1)
        self.assertNotEqual(by_name["worker"]["tid"], outer["tid"])
        self.assertTrue(by_name["never ended by its thread"]["args"]["open"])
        first = min(e["ts"] for e in events if e.get("cat") == "driver")
        self.assertTrue(0 <= by_name["before CUDA"]["ts"] < first)
        # What a row cannot hold has one of its own, from its begin to its end.
        started, ended = ({e["id"]: e for e in events if e.get("cat") == "nvtx" and e["ph"] == phase} for phase in "be")
        self.assertEqual({e["name"] for e in started.values()}, {"assemble", "across threads", "open to the end"})
        self.assertTrue(all(started[i]["ts"] <= ended[i]["ts"] for i in started))
        arguments = {e["name"]: e["args"] for e in started.values()}
        self.assertEqual(arguments["assemble"], {"domain": "solver", "category": "assembly", "color": "#20a0e0", "payload": 0.25})
        self.assertTrue(arguments["open to the end"]["open"])
        marks = {e["name"]: e["args"] for e in events if e.get("cat") == "nvtx" and e["ph"] == "i"}
        self.assertEqual(marks, {'first "mark"': {}, "residual": {"domain": "solver", "payload": -5}})
        # Names: of the thread, of the device, and of the streams that had work.
        names = {e["args"]["name"]: e for e in events if e["name"] == "thread_name"}
        self.assertEqual(names["the main one"]["tid"], outer["tid"])
        self.assertEqual({n.split(": ")[1] for n in names if ": " in n}, {"side →", "as a resource"})
        self.assertTrue(any("device 0 (workhorse)" in e["args"]["name"] for e in events if e["name"] == "process_name"))

    @unittest.skipUnless((PROGRAMS / "annotated").exists(), "the toolkit has no NVTX")
    def test_ranges_of_the_program_by_run(self):
        done = through_run(program("annotated"), "--device", "cpu", "--profile", self.file, "--profile-summary")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "PASS annotated"), done.stderr)
        self.check_annotations(self.events())
        self.assertRegex(done.stderr, r"range of the program \(NVTX\)\n")
        self.assertRegex(done.stderr, r"\n +[\d.]+ +[\d.]+ +3 .* step\n")
        self.assertRegex(done.stderr, r"\n +[\d.]+ +[\d.]+ +1 .* solver: assemble\n")

    @unittest.skipUnless((PROGRAMS / "annotated").exists(), "the toolkit has no NVTX")
    def test_ranges_of_the_program_without_run(self):
        daemon = self.serve()
        done = run_program(program("annotated"), daemon.unix, OUTBOARD_PROFILE=str(self.file),
                           NVTX_INJECTION64_PATH=str(LIBRARY / "libcupti.so.13"))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "PASS annotated"), done.stderr)
        self.check_annotations(self.events())
        # A configuration file asks for it.
        configuration = self.file.with_name("outboard")
        configuration.mkdir()
        file = self.file.with_name("configured.json")
        (configuration / "outboard.toml").write_text(f'profile = "{file}"\n')
        done = run_program(program("annotated"), daemon.unix, XDG_CONFIG_HOME=str(self.file.parent),
                           NVTX_INJECTION64_PATH=str(LIBRARY / "libcupti.so.13"))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "PASS annotated"), done.stderr)
        self.check_annotations(self.events(file))
        # Without a profile, and without a tool at all.
        for more in ({"NVTX_INJECTION64_PATH": str(LIBRARY / "libcupti.so.13")}, {}):
            done = run_program(program("annotated"), daemon.unix, **more)
            self.assertEqual((done.returncode, done.stdout.splitlines()[-1], done.stderr), (0, "PASS annotated", ""))

    def test_two_sessions_see_their_own_work(self):
        daemon = self.serve()
        other = self.file.with_name("other.json")
        clients = [self.start(program("profiled"), daemon.tcp, OUTBOARD_PROFILE=str(f)) for f in (self.file, other)]
        for client in clients:
            self.passed(client)
        for one in (self.file, other):
            self.check(self.events(one))

    def test_a_device_that_cannot_tell(self):
        daemon = self.serve(device="mock")
        ask = [sys.executable, "-c", "import ctypes; d, c = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(); "
               "print(d.cuInit(0), d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0))"]
        done = run_program(ask, daemon.unix, OUTBOARD_PROFILE=str(self.file))
        self.assertEqual((done.returncode, done.stdout), (0, "0 0\n"), done.stderr)
        self.assertIn("the profile has the program's calls alone: the server's device tells nothing of its work", done.stderr)
        self.assertIn("cuDevicePrimaryCtxRetain", [e["name"] for e in self.events()])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
