"""Processes and back-ends of OpenCL programs: forks, ends in the middle, the loader loaded again, CUDA beside it, killed
workers, clients and servers, several back-ends at once."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import (LIBRARY, SANITIZED, KeepsCompiled, SystemTest, is_alive, program, program_environment,  # noqa: E402
                             through_run, wait_until)

AT_ONCE = 3.0 if not SANITIZED else 10.0
GONE_WITHIN = 2.0


class Life(KeepsCompiled, SystemTest):
    """Clients have a token, without which nothing is kept over tcp:."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.token = pathlib.Path(cls.compiled, "token")
        cls.token.touch(mode=0o600)
        cls.token.write_text("0123456789abcdefghij\n")

    def serve(self, *flags, **options):
        return super().serve("--token-file", self.token, *flags, **options)

    def opencl(self, server, name, *words):
        environment = program_environment(server, OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"),
                                          OUTBOARD_TOKEN_FILE=str(self.token))
        process = subprocess.Popen(program(f"opencl_{name}", *words), env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        self.addCleanup(process.stdin.close)
        return process

    def two_backends(self):
        daemons, own = [], self.folder
        for name in ("first", "second"):
            self.folder = os.path.join(own, name)
            os.mkdir(self.folder)
            daemons.append(self.serve())
        self.folder = own
        return daemons

    def session_of(self, daemon, process):
        return wait_until(lambda: next((s for s in daemon.sessions() if s["process"] == process.pid), None), 20)

    def test_processes(self):
        daemon = self.serve()
        for what in ("fork_first", "fork_later", "reload", "both"):
            for url in (daemon.unix, daemon.tcp):
                with self.subTest(what=what, url=url):
                    self.passed(self.opencl(url, "life", what))
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_a_program_may_end_in_the_middle(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            process = self.opencl(url, "life", "leave")
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out, err), (0, "left\n", ""))
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_a_killed_client_leaves_nothing(self):
        daemon = self.serve()
        process = self.opencl(daemon.unix, "life", "wait")
        self.wait_for_line(process, "ready")
        session = self.session_of(daemon, process)
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN), "its worker is left")
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    @unittest.skipIf(SANITIZED, "the sanitizer takes the addresses in both processes")
    def test_memory_of_both_outlives_the_worker(self):
        """And with the client it goes: pages that both have are nobody's then."""
        daemon = self.serve()
        process = self.opencl(daemon.unix, "fine_memory", "wait")
        self.wait_for_line(process, "ready")
        session = self.session_of(daemon, process)
        os.kill(session["worker"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN))
        out, err = process.communicate("\n", timeout=30)
        self.assertEqual((process.returncode, out.splitlines()[-2:]), (0, ["more: 0", "PASS"]), err)
        process = self.opencl(daemon.unix, "fine_memory", "wait")
        self.wait_for_line(process, "ready")
        session = self.session_of(daemon, process)
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN), "its worker is left")
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_a_client_whose_worker_is_killed_is_told_and_others_go_on(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            other = self.opencl(url, "life", "reload")
            process = self.opencl(url, "life", "wait")
            self.wait_for_line(process, "ready")
            session = self.session_of(daemon, process)
            os.kill(session["worker"], signal.SIGKILL)
            self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN))
            since = time.monotonic()
            out, err = process.communicate("\n", timeout=30)
            self.assertLess(time.monotonic() - since, AT_ONCE)
            self.assertEqual((process.returncode, out.splitlines()[-1:]), (0, ["PASS"]), err)
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertRegex(err, r"^outboard: (the server closed the connection|the connection to the server broke).*"
                                  r"every OpenCL call to its devices returns an error from now on; restart the program$")
            self.passed(other)
            self.assertTrue(wait_until(lambda: "killed by signal 9" in daemon.log()))
        self.passed(self.opencl(daemon.unix, "life", "fork_first"))
        self.nothing_is_left(daemon)

    def test_every_loader_finds_the_platforms_of_a_run(self):
        """The loader of NVIDIA's toolkits puts files' names behind the folder's as it stands."""
        done = through_run(["sh", "-c", 'cat "${OCL_ICD_VENDORS}outboard.icd"'], "--device", "cpu")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(LIBRARY / "libOutboardOpenCL.so.1")), done.stderr)

    def test_several_backends(self):
        daemons = self.two_backends()
        for first, second in ((daemons[0].unix, daemons[1].tcp), (daemons[0].tcp, daemons[1].unix)):
            # One that is not there is passed over.
            self.passed(self.opencl(f"{first},unix:{self.folder}/nobody,{second}", "several"))
        for daemon in daemons:
            self.sessions_are_gone(daemon)
            self.nothing_is_left(daemon)

    def test_of_several_backends_one_may_die(self):
        dying, living = self.two_backends()
        process = self.opencl(f"{dying.unix},{living.unix}", "several", "lost")
        self.wait_for_line(process, "ready")
        session = self.session_of(dying, process)
        os.kill(session["worker"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), GONE_WITHIN))
        out, err = process.communicate("\n", timeout=30)
        self.assertEqual((process.returncode, out.splitlines()[-1:]), (0, ["PASS"]), err)
        self.assertIn(dying.unix, err)
        for daemon in (dying, living):
            self.sessions_are_gone(daemon)
            self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
