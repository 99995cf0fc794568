"""Nothing grows: very many calls of one session, very many sessions of one daemon. What daemon and worker hold after the
last tenth is what they held after the first.
usage: soak_test.py [CALLS [SESSIONS]]"""
import os
import pathlib
import subprocess
import sys
import time
import unittest

from outboard_testing import SANITIZED, SystemTest, argument, program, program_environment, wait_until

CALLS, SESSIONS = argument(200_000), argument(200)
ROOM = 1 << 20  # as promised
MARKS = 10


class Held:
    """What a process holds at one moment."""

    def __init__(self, process):
        root = pathlib.Path(f"/proc/{process}")
        self.memory = int((root / "statm").read_text().split()[1]) * 4096
        self.descriptors = len(os.listdir(root / "fd"))
        self.threads = len(os.listdir(root / "task"))

    def __str__(self):
        return f"{self.memory / 1e6:.2f} MB, {self.descriptors} descriptors, {self.threads} threads"


class Soak(SystemTest):
    def not_more(self, who, first, last):
        print(f"{who}: {first} after the first tenth, {last} after the last")
        if not SANITIZED:  # ASan keeps what was freed for a while, and counts what was allocated
            self.assertLessEqual(last.memory, first.memory + ROOM, who)
        self.assertLessEqual(last.descriptors, first.descriptors, who)
        self.assertLessEqual(last.threads, first.threads, who)

    def calls_over(self, url, daemon):
        client = subprocess.Popen(program("soak_calls", CALLS, MARKS), env=program_environment(url), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, client)
        began, marks = time.monotonic(), []
        for _ in range(MARKS):
            self.wait_for_line(client, "mark")
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

    def test_many_calls_of_one_session(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            self.calls_over(url, daemon)
        self.nothing_is_left(daemon)

    def test_many_sessions_of_one_daemon(self):
        daemon = self.serve()
        began, after_first = time.monotonic(), None
        for done in range(SESSIONS):
            self.passed(self.start(program("soak_calls", 20), daemon.tcp if done % 2 else daemon.unix))
            self.doCleanups_of_children()
            if done + 1 == max(SESSIONS // 10, 10):
                self.sessions_are_gone(daemon)
                after_first = self.settled(daemon)
        self.sessions_are_gone(daemon)
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
        time.sleep(0.2)
        return Held(daemon.process.pid)

    def doCleanups_of_children(self):
        """A clean-up entry for each of 10^5 children would itself be what grows."""
        self._cleanups = [c for c in self._cleanups if c[0] != self.end]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
