"""More clients than may run at once (`limits.running`): each gets its place in turn, and nobody waits in vain."""
import os
import subprocess
import threading
import unittest

from outboard_testing import SystemTest, program, run, wait_until


class Waiting(SystemTest):
    def of_sessions(self, daemon, what):
        return daemon.doctor()["sessions"][what]

    def has_no_place(self, daemon, why):
        """`outboard run` says so before it starts anything; doctor does, too."""
        done = run("run", "--server", daemon.unix, "--", "touch", f"{self.folder}/started")
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertRegex(done.stderr, f"^outboard: server {daemon.unix} {why}\n$")
        self.assertFalse(os.path.exists(f"{self.folder}/started"))
        self.assertRegex(run("doctor", "--server", daemon.unix).stdout,
                         f"wrong: server {daemon.unix} {why}( \\(see docs/[a-z.#/-]*\\))?\n")

    def test_each_runs_in_its_turn(self):
        daemon = self.serve(config="[limits]\nrunning = 2\n")
        most, over = [0], threading.Event()

        def watch():
            while not over.wait(0.01):
                most[0] = max(most[0], self.of_sessions(daemon, "running"))

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            for url in (daemon.unix, daemon.tcp):
                for client in [self.start(program("matmul", 64), url) for _ in range(8)]:
                    self.passed(client)
        finally:
            over.set()
            watching.join()
        self.assertIn(most[0], (1, 2))
        self.sessions_are_gone(daemon)

        def counts():
            sessions = daemon.doctor()["sessions"]
            return [sessions[what] for what in ("running", "waiting", "total", "crashed", "not_orderly")]

        self.assertTrue(wait_until(lambda: counts() == [0, 0, 16, 0, 0]), counts())
        self.nothing_is_left(daemon)

    def test_who_cannot_have_a_place_is_told_so(self):
        daemon = self.serve(config="[limits]\nrunning = 1\nsessions = 3\n")
        first = self.start(program("fill_and_hang", 16), daemon.unix)
        self.wait_for_line(first, "FILLED")
        waiting = [self.start(program("vector_add"), url) for url in (daemon.unix, daemon.tcp)]
        self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 2))
        self.assertEqual([(s["id"], s["program"], s["waits_behind"], s["api"]) for s in daemon.waiting()],
                         [(None, "vector_add", 0, "CUDA"), (None, "vector_add", 1, "CUDA")])
        self.assertRegex(run("sessions", "--server", daemon.unix).stdout,
                         r"(?s)STATE.*fill_and_hang.*running.*waiting, next.*waiting, 1 before it")
        late = self.start(program("vector_add"), daemon.tcp)
        self.assertIn("1 session runs and 2 wait; the limit of both is 3", late.communicate(timeout=60)[1])
        self.has_no_place(daemon, "is full: 1 of its sessions run and 2 wait, the limit of both is 3")
        waiting[0].kill()
        self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 1), "one that left is still waited for")
        for url in (daemon.unix, daemon.tcp):
            impatient = self.start(program("vector_add"), url, OUTBOARD_WAIT_SECONDS="1")
            self.assertIn("has begun no session for us within 1 s", impatient.communicate(timeout=60)[1])
            self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 1))
        self.assertEqual(self.of_sessions(daemon, "total"), 1)
        daemon.process.terminate()
        self.assertIn("shutting down", waiting[1].communicate(timeout=60)[1])
        self.has_no_place(daemon, "is shutting down")
        first.kill()
        self.assertEqual(daemon.process.wait(10), 0)

    def test_a_killed_session_makes_room(self):
        daemon = self.serve(config="[limits]\nrunning = 1\n")
        first = self.start(program("fill_and_hang", 16), daemon.unix)
        self.wait_for_line(first, "FILLED")
        second = self.start(program("vector_add"), daemon.unix)
        self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 1))
        self.assertRaises(subprocess.TimeoutExpired, second.wait, 0.3)
        first.kill()
        self.passed(second, 20)


if __name__ == "__main__":
    unittest.main()
