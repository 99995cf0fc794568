"""kill -9 of clients and of workers at random moments under load: the others finish right, the dead one's worker is gone
within a second, nothing is left. usage: kill_storm_test.py [KILLS]"""
import contextlib
import os
import random
import signal
import threading
import time
import unittest

from outboard_testing import (AT_ONCE, GONE_WITHIN, SANITIZED, Resources, SystemTest, argument, is_alive, program, start_program,
                              wait_until)

KILLS = argument(20)
HONEST = 3
SEED = 20260
# At its end a sanitized program looks for leaks: up to 3.4 s of 60 such ends while both cores had other work, 0.4 s without.
HUNG_AFTER = 15.0 if SANITIZED else 5.0


class Honest(threading.Thread):
    """Runs programs one after the other until told to stop; every one must be right."""

    def __init__(self, server):
        super().__init__()
        self.server, self.stopping, self.count, self.wrong = server, False, 0, []
        self.start()

    def run(self):
        commands = [program("matmul", 96, 3), program("streams"), program("vector_add", 50000)]
        while not self.stopping:
            process = start_program(commands[self.count % len(commands)], self.server)
            out, err = process.communicate()
            if process.returncode != 0 or err or "PASS" not in out:
                self.wrong.append((process.args, process.returncode, out, err))
            self.count += 1


class KillStorm(SystemTest):
    config = AT_ONCE

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)

    def victim(self, url):
        # Long enough to be killed anywhere: in its start, its copies, its launches.
        return self.start(program("matmul", 128, 100000), url)

    def session_of(self, daemon, process):
        return next((s for s in daemon.sessions() if s["process"] == process.pid), None)

    def kill_a_client(self, daemon, url):
        client = self.victim(url)
        time.sleep(self.random.uniform(0, 0.4))
        session = self.session_of(daemon, client)
        client.kill()
        client.wait()
        killed = time.monotonic()
        if session:
            self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), 5), "the worker of a dead client is left")
            self.slowest = max(self.slowest, time.monotonic() - killed)

    def kill_a_worker(self, daemon, url):
        client = self.victim(url)
        session = wait_until(lambda: self.session_of(daemon, client), 20)
        self.assertTrue(session, "the client got no session")
        time.sleep(self.random.uniform(0, 0.3))
        killed = self.kill_until_the_end(daemon, client, session["worker"])
        out, err = client.communicate(timeout=30)
        self.assertLess(time.monotonic() - killed, HUNG_AFTER, "the client hung after its worker was killed")
        self.assertNotEqual(client.returncode, 0, out)
        self.assertIn("FAIL", out)
        self.assertEqual(len(err.splitlines()), 1, err)
        # Before the welcome, while waiting, while sending: each time its stderr says why.
        self.assertRegex(err, "the server closed the connection|the connection to the server broke|"
                              "it refused: the worker ended: killed by signal 9|it closed the connection|the connection broke")

    def kill_until_the_end(self, daemon, client, worker):
        """A client that had no welcome yet begins again with another worker, which is killed, too. When the last one was."""
        while worker:
            with contextlib.suppress(ProcessLookupError):  # the client has ended meanwhile, and its worker too
                os.kill(worker, signal.SIGKILL)
            killed, dead = time.monotonic(), worker
            wait_until(lambda: client.poll() is not None or self.other_worker(daemon, client, dead), HUNG_AFTER)
            worker = None if client.poll() is not None else self.other_worker(daemon, client, dead)
        return killed

    def other_worker(self, daemon, client, worker):
        session = self.session_of(daemon, client)
        return session["worker"] if session and session["worker"] != worker else None

    def storm(self, daemon, kills):
        for i in range(kills):
            url = daemon.unix if self.random.random() < 0.5 else daemon.tcp
            if i % 2:
                self.kill_a_worker(daemon, url)
            else:
                self.kill_a_client(daemon, url)

    def settled(self, daemon):
        self.sessions_are_gone(daemon, 10)
        self.assertTrue(wait_until(lambda: not daemon.workers(), 10), "workers are left")
        return Resources(daemon)

    def test_the_others_finish_right_and_nothing_is_left(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n" + AT_ONCE)
        self.slowest = 0.0
        self.storm(daemon, 2)  # what is allocated once
        before = self.settled(daemon)
        honest = [Honest(url) for url in [daemon.unix, daemon.tcp, daemon.unix][:HONEST]]
        try:
            self.storm(daemon, KILLS)
        finally:
            for thread in honest:
                thread.stopping = True
            for thread in honest:
                thread.join()
        for thread in honest:
            self.assertEqual(thread.wrong, [])
            self.assertGreater(thread.count, 0)
        after = self.settled(daemon)
        print(f"{KILLS} kills, {sum(t.count for t in honest)} honest programs right; a dead client's worker is gone after "
              f"{1e3 * self.slowest:.0f} ms at most; before {before}, after {after}")
        self.assertLess(self.slowest, GONE_WITHIN)
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= before.descriptors), "descriptors are left")
        if not SANITIZED:  # ASan keeps what was freed for a while
            self.assertLess(after.memory, before.memory + (2 << 20))
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
