"""More clients than may run at once (`limits.running`): each gets its place in turn, and none waits in vain."""
import subprocess
import threading
import unittest

from outboard_testing import SystemTest, program, wait_until


class Waiting(SystemTest):
    def of_sessions(self, daemon, what):
        return daemon.doctor()["sessions"][what]

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
        sessions = daemon.doctor()["sessions"]
        self.assertEqual([sessions[what] for what in ("running", "waiting", "total", "crashed", "not_orderly")],
                         [0, 0, 16, 0, 0])
        self.nothing_is_left(daemon)

    def test_a_client_without_a_place_is_refused_with_a_reason(self):
        daemon = self.serve(config="[limits]\nrunning = 1\nsessions = 3\n")
        first = self.start(program("fill_and_hang", 16), daemon.unix)
        self.wait_for_line(first, "FILLED")
        waiting = [self.start(program("vector_add"), url) for url in (daemon.unix, daemon.tcp)]
        self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 2))
        refused = self.start(program("vector_add"), daemon.tcp).communicate(timeout=60)[1]
        self.assertIn("1 session runs and 2 wait, and limits.sessions allows 3 of both together", refused)
        waiting[0].kill()
        self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 1), "one that left is still waited for")
        for url in (daemon.unix, daemon.tcp):
            impatient = self.start(program("vector_add"), url, OUTBOARD_WAIT_SECONDS="1")
            self.assertIn("it is busy: it gave this program no session within 1 s", impatient.communicate(timeout=60)[1])
            self.assertTrue(wait_until(lambda: self.of_sessions(daemon, "waiting") == 1))
        self.assertEqual(self.of_sessions(daemon, "total"), 1)
        daemon.process.terminate()
        self.assertIn("shutting down", waiting[1].communicate(timeout=60)[1])
        first.kill()
        self.assertEqual(daemon.process.wait(10), 0)

    def test_a_program_that_waits_for_long_says_so_once(self):
        daemon = self.serve(config="[limits]\nrunning = 1\n")
        first = self.start(program("fill_and_hang", 16), daemon.unix)
        self.wait_for_line(first, "FILLED")
        for url in (daemon.unix, daemon.tcp):
            said = self.start(program("vector_add"), url, OUTBOARD_WAIT_SECONDS="4").communicate(timeout=60)[1]
            lines = [line for line in said.splitlines() if "is busy: it runs 1 session at a time" in line]
            self.assertEqual(len(lines), 1, said)
            self.assertIn("this program is number 1 of 1 in the queue; waiting for up to 4 s", lines[0])
        first.kill()

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
