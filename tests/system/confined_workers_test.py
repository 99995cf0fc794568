"""The worker of every session locks itself in before it reads a byte of its client's: what the kernel says of it, what
doctor and the log say, what is refused where it cannot be, and that programs share and cache as before. What it can then no
longer do: src/backend/confinement/confinement_test.cc."""
import os
import pathlib
import re
import socket
import subprocess
import unittest

from outboard_testing import CONFIG, OUTBOARD, SystemTest, clean_environment, program, run, run_program

OFF = CONFIG + '[worker]\nconfine = "off"\n'


def status_of(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


class ConfinedWorkers(SystemTest):
    def worker_of(self, daemon, user):
        """(status, working folder) of the worker behind one program."""
        process = self.start_and_stop(user)
        worker = daemon.sessions()[0]["worker"]
        found = status_of(worker), os.readlink(f"/proc/{worker}/cwd") if os.geteuid() == 0 else None
        self.go_on(process)
        self.passed(process)
        self.sessions_are_gone(daemon)
        return found

    def doctor(self, daemon):
        return run("doctor", "--server", daemon.unix).stdout

    def test_it_is_confined_cold_and_warm(self):
        daemon = self.serve()
        self.assertRegex(daemon.log(), r"workers are confined: Landlock \(version \d+\) locks files, seccomp system calls")
        self.assertRegex(self.doctor(daemon), r"(?m)^    workers: confined: Landlock ")
        for _ in range(2):  # the second is the warm one
            status, folder = self.worker_of(daemon, daemon.unix)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"], int(status["CapPrm"], 16), int(status["CapEff"], 16)),
                             ("1", "2", 0, 0))
            if os.geteuid() == 0:
                self.assertEqual(int(status["CapBnd"], 16), 0)
                self.assertRegex(folder, r"/outboard-sessions-[^/]*/\d+$")
                self.assertFalse(os.path.exists(folder) and daemon.sessions() == [] and not daemon.workers(), folder)
        self.nothing_is_left(daemon)

    def test_off_is_said(self):
        daemon = self.serve(config=OFF)
        self.assertIn('workers are not confined (worker.confine is "off")', daemon.log())
        self.assertRegex(self.doctor(daemon), r"(?m)^    workers: not confined$")
        status, _ = self.worker_of(daemon, daemon.unix)
        self.assertEqual(status["Seccomp"], status_of(os.getpid())["Seccomp"])
        self.nothing_is_left(daemon)

    def test_programs_share_as_before(self):
        """Memory and events between two workers, which cannot look into each other."""
        daemon = self.serve()
        done = run_program(program("ipc_handles"), daemon.unix)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.nothing_is_left(daemon)

    def test_what_the_operator_opens_is_shown(self):
        daemon = self.serve(config=CONFIG + f'[worker]\nreads = ["{self.folder}/libraries"]\nwrites = ["/var/tmp"]\n')
        said = self.doctor(daemon)
        self.assertRegex(said, rf"(?m)^      worker\.reads: {re.escape(self.folder)}/libraries$")
        self.assertRegex(said, r"(?m)^      worker\.writes: /var/tmp$")
        refused = run("serve", "--config", self.configuration('[worker]\nwrites = ["/"]\n'))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('none of them "/"', refused.stderr)

    def problem_of_worker(self, *flags, visible):
        """What a worker that the test starts itself says when its driver finds no device."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, there:
            command = [OUTBOARD, "worker", "--parent", str(os.getpid()), "--device", "cpu", "--confine", self.folder]
            worker = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{there.fileno()}', "sh", *command, *flags],
                                      pass_fds=[there.fileno()], env=clean_environment(CUDA_VISIBLE_DEVICES=visible))
            self.addCleanup(self.end, worker)
            here.settimeout(20)
            return here.recv(4096).decode(errors="replace")

    def test_a_driver_that_finds_no_device_is_said_to_be_confined_unless_its_list_names_none(self):
        hidden = self.problem_of_worker("--no-visible-device", visible="-1")
        self.assertIn("CUDA_VISIBLE_DEVICES names none", hidden)
        self.assertNotIn("worker.confine", hidden)
        # The same failure of a worker that is not told so: its driver may be locked out.
        locked_out = self.problem_of_worker(visible="-1")
        self.assertIn('worker.confine = "off" shows whether that is why', locked_out)

    def configuration(self, text):
        path = os.path.join(self.folder, "wrong.toml")
        pathlib.Path(path).write_text(text)
        return path


if __name__ == "__main__":
    unittest.main()
