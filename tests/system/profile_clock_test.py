"""The error of the clocks that a profile states: a few microseconds on one host, half of a round trip over a link, and no
kernel is farther from its true time than that. A kernel reads its server's clock (%globaltimer of the cpu device), and a
server in a time namespace of its own has another clock than the program, by a known difference."""
import asyncio
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

from outboard_testing import BUILD, SystemTest, run_program

ROUNDS = 12
# Each round prints the program's clock before and after a launch and after the wait, and the server's in the kernel.
PROGRAM = """if True:
    import ctypes, sys, time
    code = b'''.version 7.0
    .target sm_75
    .address_size 64
    .visible .entry look(.param .u64 to) {
      .reg .u64 %r<4>;
      ld.param.u64 %r1, [to];
      mov.u64 %r2, %globaltimer;
      st.global.u64 [%r1], %r2;
      ret;
    }
    '''
    cuda, context, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, seen = ctypes.c_uint64(), ctypes.c_uint64()
    def must(code):
        assert code == 0, code
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuModuleLoadData(ctypes.byref(module), code))
    must(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"look"))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(8)))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    for i in range(int(sys.argv[1])):
        before = time.monotonic_ns()
        must(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None))
        after = time.monotonic_ns()
        must(cuda.cuCtxSynchronize())
        must(cuda.cuMemcpyDtoH_v2(ctypes.byref(seen), memory, ctypes.c_size_t(8)))
        print(before, after, seen.value, flush=True)
        time.sleep(0.03)
"""
NEW_TIME, SHIFT = 0x80, 100000  # CLONE_NEWTIME; seconds


def other_clock():
    """In a process that is about to become a server: it and its children have a monotonic clock of their own."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_TIME) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    pathlib.Path("/proc/self/timens_offsets").write_text(f"monotonic {SHIFT} 0\n")


def may_have_another_clock():
    try:
        return subprocess.run(["true"], preexec_fn=other_clock).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


class OneWayDelay:
    """A relay that holds up what the server says, and nothing of what the client says: half of the round trip, by which a
    client places the server's clock, is then all off."""

    def __init__(self, server, seconds):
        self.host, _, self.port = server.removeprefix("tcp:").rpartition(":")
        self.seconds, self.loop, ready = seconds, asyncio.new_event_loop(), threading.Event()

        async def begin():
            listener = await asyncio.start_server(self.relay, "127.0.0.1", 0)
            self.url = "tcp:127.0.0.1:%d" % listener.sockets[0].getsockname()[1]
            ready.set()

        self.loop.create_task(begin())
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        ready.wait()

    async def relay(self, from_client, to_client):
        from_server, to_server = await asyncio.open_connection(self.host, int(self.port))
        await asyncio.gather(self.pass_on(from_client, to_server, 0), self.pass_on(from_server, to_client, self.seconds))

    async def pass_on(self, source, sink, seconds):
        while data := await source.read(1 << 16):
            self.loop.call_later(seconds, sink.write, data) if seconds else sink.write(data)
        self.loop.call_later(2 * seconds, sink.close)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class ProfileClock(SystemTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "profile.json"

    def recorded(self, url, shift=0):
        """(the error that the profile states, the largest one that it has), microseconds."""
        done = run_program([sys.executable, "-c", PROGRAM, str(ROUNDS)], url, OUTBOARD_PROFILE=str(self.file))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        events = json.loads(self.file.read_text())
        titles = [e["args"]["name"] for e in events if e["name"] == "process_name" and "device" in e["args"]["name"]]
        stated = int(titles[-1].split("agree to ")[1].split(" us")[0])
        launches = sorted((e for e in events if e["name"].startswith("cuLaunchKernel")), key=lambda e: e["ts"])
        kernels = {e["args"]["correlation"]: e for e in events if e.get("cat") == "kernel"}
        self.assertEqual((len(launches), len(kernels)), (ROUNDS, ROUNDS))
        clocks = [[*map(int, line.split())] for line in done.stdout.splitlines()]
        # Where the file's times begin on the program's clock: each call lies between the two times around it.
        least = max(before / 1000 - e["ts"] for e, (before, _, _) in zip(launches, clocks))
        most = min(after / 1000 - e["ts"] - e["dur"] for e, (_, after, _) in zip(launches, clocks))
        self.assertLessEqual(least, most + 0.01)
        worst = 0
        for e, (_, _, seen) in zip(launches, clocks):
            kernel = kernels[e["args"]["correlation"]]
            true = seen / 1000 - shift * 1e6
            worst = max(worst, kernel["ts"] + least - true, true - kernel["ts"] - kernel["dur"] - most)
        return stated, worst

    def test_on_one_host_they_agree_to_5_us(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            stated, error = self.recorded(url)
            print(f"{url.partition(':')[0]}: {stated} us stated, {error:.1f} us off at most")
            self.assertLessEqual(stated, 5)
            self.assertLessEqual(error, stated + 0.1)
        self.nothing_is_left(daemon)

    @unittest.skipUnless(may_have_another_clock(), "no time namespaces for this user")
    def test_of_two_clocks_half_of_a_round_trip_is_stated_and_kept(self):
        daemon = self.serve(preexec_fn=other_clock)
        relay = BUILD / "bench/emulated_link"
        for trip in (0, 4000, 20000) if relay.exists() else (0,):
            if trip == 0:
                stated, error = self.recorded(daemon.tcp, SHIFT)
            else:
                link = subprocess.Popen([relay, "relay", daemon.tcp.removeprefix("tcp:"), str(trip), "10"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                try:
                    stated, error = self.recorded(link.stdout.readline().strip(), SHIFT)
                finally:
                    link.stdin.close()
                    link.wait(10)
                    link.stdout.close()
            print(f"a round trip of {trip} us: {stated} us stated, {error:.1f} us off at most")
            # A machine that has other work adds to the trip what the quickest of a few questions takes longer.
            self.assertTrue(trip / 2 <= stated <= trip / 2 + 1000, stated)
            self.assertLessEqual(error, stated)
        self.nothing_is_left(daemon)

    @unittest.skipUnless(may_have_another_clock(), "no time namespaces for this user")
    def test_a_link_that_is_slow_one_way_is_within_what_is_stated(self):
        daemon = self.serve(preexec_fn=other_clock)
        line = OneWayDelay(daemon.tcp, 0.008)
        try:
            stated, error = self.recorded(line.url, SHIFT)
        finally:
            line.close()
        print(f"8000 us from the server, none to it: {stated} us stated, {error:.1f} us off at most")
        self.assertTrue(4000 <= stated <= 6000, stated)
        self.assertTrue(3000 <= error <= stated, error)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
