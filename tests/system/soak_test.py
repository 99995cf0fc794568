"""Nothing grows: very many calls of one session, very many sessions of one daemon. What daemon and worker hold after the
last tenth is what they held after the first, and so is the GPU's memory where OUTBOARD_TEST_DEVICE=vendor.
usage: soak_test.py [CALLS [SESSIONS [LAUNCHES [CLIENTS]]]] [-k NAME]
  LAUNCHES  of each round of calls, most of which are posts then; CLIENTS  at a time"""
import collections
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from measuring import Nvml  # noqa: E402

from outboard_testing import SANITIZED, SystemTest, argument, descriptors_of, program, program_environment, wait_until

CALLS, SESSIONS, LAUNCHES = argument(200_000), argument(200), argument(4)
AT_ONCE = argument(max(1, (os.cpu_count() or 1) // 2))
ROOM = 1 << 20  # as promised
MARKS = 10
GPU = Nvml() if os.environ["OUTBOARD_TEST_DEVICE"] == "vendor" else None


class Held:
    """What a process holds at one moment."""

    def __init__(self, process):
        root = pathlib.Path(f"/proc/{process}")
        # Its own: rings and page-locked memory that both sides share have a fixed size and fill up as they are used.
        resident, shared = map(int, (root / "statm").read_text().split()[1:3])
        self.memory = (resident - shared) * 4096
        self.descriptors = descriptors_of(process)
        self.threads = len(os.listdir(root / "task"))
        self.device_memory = GPU.used() if GPU else 0  # of everybody: nobody else may use the GPU

    def __str__(self):
        device = f", {self.device_memory / 1e6:.2f} MB of the GPU" if GPU else ""
        return f"{self.memory / 1e6:.2f} MB, {self.descriptors} descriptors, {self.threads} threads{device}"


class Soak(SystemTest):
    def not_more(self, who, first, last):
        print(f"{who}: {first} after the first tenth, {last} after the last")
        if not SANITIZED:  # ASan keeps what was freed for a while, and counts what was allocated
            self.assertLessEqual(last.memory, first.memory + ROOM, who)
        self.assertLessEqual(last.descriptors, first.descriptors, who)
        self.assertLessEqual(last.threads, first.threads, who)
        self.assertLessEqual(last.device_memory, first.device_memory + ROOM, who)

    def calls_over(self, url, daemon):
        client = subprocess.Popen(program("soak_calls", CALLS, MARKS, LAUNCHES), env=program_environment(url), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, client)
        began, marks = time.monotonic(), []
        for number in range(MARKS):
            self.wait_for_line(client, "mark")
            if number in (0, MARKS - 1):  # what is compared
                session = next(s for s in daemon.sessions() if s["process"] == client.pid)
                marks.append({"client": Held(client.pid), "worker": Held(session["worker"]),
                              "daemon": self.settled(daemon, 1)})
            client.stdin.write("\n")
            client.stdin.flush()
        client.stdin.close()
        client.stdin = None
        self.passed(client)
        print(f"{CALLS} calls over {url.split(':')[0]}: {time.monotonic() - began:.1f} s")
        for who in marks[0]:
            self.not_more(who, marks[0][who], marks[-1][who])

    def test_many_calls_over_unix(self):
        daemon = self.serve()
        self.calls_over(daemon.unix, daemon)
        self.nothing_is_left(daemon)

    def test_many_calls_over_tcp(self):
        daemon = self.serve()
        self.calls_over(daemon.tcp, daemon)
        self.nothing_is_left(daemon)

    def sessions(self, daemon, count):
        """So many one after the other, AT_ONCE at a time, alternating between the transports."""
        running = collections.deque()
        for n in range(count):
            if len(running) == AT_ONCE:
                self.passed(running.popleft())
            running.append(self.start(program("soak_calls", 20), daemon.tcp if n % 2 else daemon.unix))
            self.forget_children()
        while running:
            self.passed(running.popleft())
        self.forget_children()
        self.sessions_are_gone(daemon)

    def test_many_sessions_of_one_daemon(self):
        daemon = self.serve()
        began, tenth = time.monotonic(), max(SESSIONS // 10, 10)
        self.sessions(daemon, tenth)
        after_first = self.settled(daemon)
        print(f"{tenth} sessions: {time.monotonic() - began:.1f} s", flush=True)
        self.sessions(daemon, SESSIONS - tenth)
        seconds = time.monotonic() - began
        print(f"{SESSIONS} sessions: {seconds:.1f} s, {1e3 * seconds / SESSIONS:.1f} ms each")
        self.not_more("daemon", after_first, self.settled(daemon))
        self.assertEqual(daemon.doctor()["sessions"]["crashed"], 0)
        self.nothing_is_left(daemon)

    def settled(self, daemon, sessions=0):
        """With nothing beside the sessions but warm workers that are ready (none, after idle minutes), and nobody asking."""
        def idle():
            warm = daemon.doctor()["pool"]["warm"]
            return all(w["ready"] for w in warm) and len(daemon.workers()) == len(warm) + sessions
        self.assertTrue(wait_until(idle, 20), daemon.workers())
        looks = []
        for _ in range(3):  # a connection that asked may not be closed yet
            time.sleep(0.2)
            looks.append(Held(daemon.process.pid))
        return min(looks, key=lambda held: held.descriptors)

    def forget_children(self):
        """A clean-up entry for each of 10^5 children would itself be what grows: those that still run keep theirs."""
        self._cleanups = [c for c in self._cleanups if c[0] != self.end or c[1][0].poll() is None]


if __name__ == "__main__":
    unittest.main(warnings="ignore")
