"""Life and death of clients, workers and servers: what ends with whom, who is told, who goes on."""
import os
import re
import signal
import subprocess
import time
import unittest

from outboard_testing import (GONE_WITHIN, OUTBOARD, SANITIZED, SystemTest, clean_environment, is_alive, program,
                              run_program, through_run, wait_until)

AT_ONCE = 3.0 if not SANITIZED else 10.0
# Runs for minutes if nobody ends it; waits for the device at the end of its launches.
LONG = ["matmul", 256, 200000]


class ProcessLife(SystemTest):
    def session_of(self, daemon, process):
        return wait_until(lambda: next((s for s in daemon.sessions() if s["process"] == process.pid), None), 20)

    def computing(self, daemon, url):
        """A client that is well into its work, and its session."""
        client = self.start(program(*LONG), url)
        session = self.session_of(daemon, client)
        self.assertTrue(session, "the client got no session")
        time.sleep(0.5)
        self.assertIsNone(client.poll())
        return client, session

    def is_told(self, client, since):
        """The client of a lost server: an error at once, one line that says why and what to do."""
        out, err = client.communicate(timeout=30)
        self.assertLess(time.monotonic() - since, AT_ONCE)
        self.assertEqual(client.returncode, 1, out)
        self.assertRegex(out, r"FAIL .* gave 46")
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertRegex(err, r"^outboard: (the server closed the connection|the connection to the server broke).*"
                              r"every CUDA call returns an error from now on; restart the program$")

    def test_a_client_whose_worker_is_killed_is_told(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            client, session = self.computing(daemon, url)
            os.kill(session["worker"], signal.SIGKILL)
            self.is_told(client, time.monotonic())
            self.assertTrue(wait_until(lambda: "killed by signal 9" in daemon.log()))
        self.passed(self.start(program("vector_add"), daemon.unix))
        self.nothing_is_left(daemon)

    def test_a_client_whose_server_is_killed_is_told(self):
        for scheme in ("unix", "tcp"):
            daemon = self.serve()
            client, session = self.computing(daemon, daemon.unix if scheme == "unix" else daemon.tcp)
            daemon.process.kill()
            since = time.monotonic()
            self.is_told(client, since)
            daemon.process.wait()
            self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN), "its worker is left")

    def test_a_client_that_took_no_leave_is_not_counted_as_orderly(self):
        daemon = self.serve()
        self.passed(self.start(program("vector_add"), daemon.unix))
        self.sessions_are_gone(daemon)
        self.assertEqual(daemon.doctor()["sessions"]["not_orderly"], 0)
        killed = self.start(program("fill_and_hang", 1), daemon.unix)
        self.wait_for_line(killed, "FILLED")
        killed.kill()
        self.sessions_are_gone(daemon)
        self.assertEqual(daemon.doctor()["sessions"]["not_orderly"], 1)
        self.assertEqual(daemon.log().count(": the client closed it; "), 1)
        self.assertIn("the client left without a goodbye: it was killed, or ended by _exit; ", daemon.log())
        self.nothing_is_left(daemon)

    def test_a_frozen_client_harms_nobody(self):
        daemon = self.serve()
        frozen, session = self.computing(daemon, daemon.unix)
        frozen.send_signal(signal.SIGSTOP)
        self.passed(self.start(program("vector_add"), daemon.unix))
        frozen.kill()
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN))
        self.nothing_is_left(daemon)

    def test_a_server_that_is_started_again_serves(self):
        daemon = self.serve()
        client, _ = self.computing(daemon, daemon.unix)
        daemon.process.kill()
        daemon.process.wait()
        # Its socket file is still there; the next server takes its place.
        self.assertTrue(os.path.exists(daemon.unix[5:]))
        again = self.serve()
        self.is_told(client, time.monotonic())
        self.passed(self.start(program("vector_add"), again.unix))
        self.nothing_is_left(again)

    def test_sigterm_lets_programs_finish_and_takes_no_new_ones(self):
        daemon = self.serve()
        client = self.start_and_stop(daemon.unix)
        daemon.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: "stopping: waiting up to" in daemon.log()))
        late = run_program(program("vector_add"), daemon.unix)
        self.assertEqual(late.returncode, 1)
        self.assertRegex(late.stderr, "^outboard: server .* it refused: the server is shutting down\n$")
        self.assertIsNone(client.poll())
        self.go_on(client)
        self.passed(client)
        self.assertEqual(daemon.process.wait(10), 0)
        self.assertFalse(os.path.exists(daemon.unix[5:]))

    def test_a_second_sigterm_ends_it_at_once(self):
        daemon = self.serve()
        client, session = self.computing(daemon, daemon.tcp)
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(daemon.process.poll())
        daemon.process.send_signal(signal.SIGTERM)
        since = time.monotonic()
        self.assertEqual(daemon.process.wait(5), 0)
        self.is_told(client, since)
        self.assertFalse(is_alive(session["worker"]))

    def test_a_killed_outboard_run_leaves_nothing(self):
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        command = [OUTBOARD, "run", "--device", "cpu", "--", *program(*LONG)]
        process = subprocess.Popen(command, env=clean_environment(TMPDIR=temporary), stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: len(self.ours(temporary)) >= 2, 20), "no back-end and no worker")
        time.sleep(0.3)
        process.kill()
        self.assertTrue(wait_until(lambda: not self.ours(temporary), 5), "processes are left")
        self.assertTrue(wait_until(lambda: not os.listdir(temporary), 5), os.listdir(temporary))

    @staticmethod
    def ours(temporary):
        """Live processes with this TMPDIR in their environment, without `outboard run` itself."""
        mark, found = f"TMPDIR={temporary}".encode(), []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if entry.isdigit() and mark in file.read().split(b"\0") and is_alive(int(entry)):
                        found.append(int(entry))
            except OSError:
                continue
        return found

    def test_the_programs_status_is_runs_status(self):
        daemon = self.serve()
        for where in (["--device", "cpu"], ["--server", daemon.unix]):
            done = through_run(program("vector_add"), *where)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^\d+ sums computed on .*\nPASS vector_add\n$")
            done = through_run(["sh", "-c", program("vector_add")[0] + "; exit 3"], *where)
            self.assertEqual((done.returncode, done.stderr), (3, ""))
            # ASan answers a fault by itself, in a way of its own.
            for number in (signal.SIGKILL, signal.SIGTERM, *([] if SANITIZED else [signal.SIGSEGV])):
                done = through_run(["sh", "-c", f"kill -{int(number)} $$"], *where)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (128 + number, "", ""))

    def test_programs_of_many_threads_and_forks(self):
        """The hard ones of tests/programs, all at once on one back-end."""
        daemon = self.serve()
        names = ["post_join", "stream_handoff", "fork_child", "two_way", "threads_ptds"]
        clients = [self.start(program(name, *([8] if name == "two_way" else [])), url)
                   for name in names for url in (daemon.unix, daemon.tcp)]
        for client in clients:
            self.passed(client)
        self.sessions_are_gone(daemon)
        self.assertFalse(re.search("crashed|killed by signal (?!15|9)", daemon.log()), daemon.log())
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
