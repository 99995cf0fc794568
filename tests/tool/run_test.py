"""`outboard run`: the program's own status, signals and streams; its environment changes, nobody else's does; nothing is
left when it ends, however it ends."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from harness import (DEVICE, MAY_LOOK_INTO_SERVERS, OUTBOARD, DaemonTest, clean_environment, is_alive,
                     processes_below, run, wait_until)


class Run(DaemonTest):
    def setUp(self):
        super().setUp()
        self.library = pathlib.Path(self.folder, "lib")
        self.library.mkdir()
        (self.library / "libcuda.so.1").touch()
        self.temporary = pathlib.Path(self.folder, "tmp")
        self.temporary.mkdir()
        self.environment = clean_environment(TMPDIR=str(self.temporary), LD_LIBRARY_PATH="/old")

    def flags(self, *flags):
        device = [] if "--server" in flags else ["--device", DEVICE]
        return ["run", "--library", str(self.library), *device, *flags]

    def outboard_run(self, *command, flags=()):
        return run(*self.flags(*flags), "--", *command, environment=self.environment)

    def start(self, *command):
        process = subprocess.Popen([OUTBOARD, *self.flags(), "--", *command], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def nothing_is_left(self):
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_status_and_streams_are_the_programs_own(self):
        for status in (0, 1, 7, 255):
            done = self.outboard_run("sh", "-c", f"cat; echo out; echo err >&2; exit {status}")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "out\n", "err\n"))
            self.nothing_is_left()

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a GPU")
    def test_it_says_that_the_cpu_computes_where_nobody_asked_for_that(self):
        for flags, said in (([], "kernels run on the cpu device, slowly"), (["--device", "cpu"], "")):
            done = run("run", "--library", self.library, *flags, "--", "true", environment=self.environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1 if said else 0, done.stderr)

    def test_a_signal_gives_128_and_its_number(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            done = self.outboard_run("sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number, done.stderr)
            self.nothing_is_left()

    def test_dashes_are_not_needed_and_the_programs_flags_are_its_own(self):
        done = run(*self.flags(), "echo", "--help", "--", "--device", environment=self.environment)
        self.assertEqual((done.returncode, done.stdout), (0, "--help -- --device\n"))

    def test_a_program_that_is_not_there_or_no_program(self):
        done = self.outboard_run("/nonexistent/program")
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertIn("/nonexistent/program: command not found", done.stderr)
        self.environment["PATH"] = self.folder
        for name, hint in (("nvidia-smi", "apt install --no-install-recommends nvidia-smi"), ("no-such-program", "")):
            done = self.outboard_run(name)
            self.assertEqual((done.returncode, done.stdout), (127, ""))
            self.assertRegex(done.stderr, f"^outboard: {name}: command not found{'; .*' if hint else ''}{hint}\n$")
        done = self.outboard_run(self.folder)
        self.assertEqual(done.returncode, 126)
        self.nothing_is_left()

    def test_the_environment_changes_for_the_program_only(self):
        done = self.outboard_run("sh", "-c", "echo $LD_LIBRARY_PATH; echo $OUTBOARD_SERVER; echo $PPID; sleep 0.3")
        path, server, _ = done.stdout.splitlines()
        self.assertEqual(path, f"{self.library}:/old")
        self.assertRegex(server, f"^unix:{self.temporary}/outboard-[^/]*/socket$")
        process = self.start("sh", "-c", "echo started; exec sleep 30")
        process.stdout.readline()
        backend = next(p for p in processes_below(process.pid) if b"serve" in self.command_line(p))
        if MAY_LOOK_INTO_SERVERS:
            its = pathlib.Path(f"/proc/{backend}/environ").read_bytes().split(b"\0")
            self.assertIn(b"LD_LIBRARY_PATH=/old", its)
            self.assertFalse([line for line in its if line.startswith(b"OUTBOARD_SERVER")])
        process.terminate()
        process.wait()
        self.nothing_is_left()

    def command_line(self, process):
        try:
            return pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return b""

    def test_the_private_folder_is_private(self):
        done = self.outboard_run("sh", "-c", "stat -c %a $(dirname ${OUTBOARD_SERVER#unix:}) ${OUTBOARD_SERVER#unix:}")
        self.assertEqual(done.stdout.split(), ["700", "600"])

    def test_variables_of_the_driver_do_not_restrict_the_private_back_end(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = "0"
        done = self.outboard_run(OUTBOARD, "devices", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"ordinal": 0', done.stdout)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            process = self.start("sh", "-c", f"trap 'exit 42' {int(number)}; echo ready; while :; do sleep 0.02; done")
            process.stdout.readline()
            process.send_signal(number)
            self.assertEqual(process.wait(10), 42)
            self.nothing_is_left()

    def test_a_killed_run_leaves_nothing(self):
        process = self.start("sh", "-c", "echo ready; sleep 60 & exec sleep 60")
        process.stdout.readline()
        below = processes_below(process.pid)
        # The program's own background child is nobody's but its own.
        ours = [p for p in below if b"outboard" in self.command_line(p)]
        process.kill()
        process.wait()
        self.assertTrue(ours)
        self.assertTrue(wait_until(lambda: not any(is_alive(p) for p in ours)))
        self.assertTrue(wait_until(lambda: not list(self.temporary.iterdir())), list(self.temporary.iterdir()))
        for p in below:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_with_a_server_there_is_no_private_back_end(self):
        daemon = self.serve()
        done = self.outboard_run("sh", "-c", "echo $OUTBOARD_SERVER", flags=["--server", f"{daemon.unix},{daemon.tcp}"])
        self.assertEqual(done.stdout, f"{daemon.unix},{daemon.tcp}\n", done.stderr)
        self.nothing_is_left()

    def test_a_back_end_that_cannot_start(self):
        done = run("run", "--library", self.library, "--device", DEVICE, "--config", self.config_with_a_missing_plugin(), "--",
                   "touch", f"{self.folder}/started", environment=self.environment)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertFalse(pathlib.Path(self.folder, "started").exists())
        self.nothing_is_left()

    def config_with_a_missing_plugin(self):
        path = pathlib.Path(self.folder, "o.toml")
        path.write_text('[transport.none]\nlibrary = "/nonexistent.so"\n')
        return path

    def test_what_a_file_sets_counts_before_the_users_own(self):
        """Also where it is the default, or where the file says nothing: --config FILE stands for both files."""
        own = pathlib.Path(self.folder, "outboard")
        own.mkdir()
        (own / "outboard.toml").write_text("wait_seconds = 7\ncompression = false\nsync = true\n")
        self.environment["XDG_CONFIG_HOME"] = self.folder
        file = pathlib.Path(self.folder, "o.toml")
        file.write_text("wait_seconds = 120\ncompression = true\n")
        shown = ["sh", "-c", f"unset OUTBOARD_SERVER; exec {OUTBOARD} settings --json"]
        for flags, expected in ((["--config", str(file)], ["120", "1", "0"]), ([], ["7", "0", "1"])):
            done = self.outboard_run(*shown, flags=flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            values = {each["key"]: each["value"] for each in json.loads(done.stdout)}
            self.assertEqual([values[key] for key in ("wait_seconds", "compression", "sync")], expected)

    def test_descriptors_and_streams_of_the_program_are_untouched(self):
        done = self.outboard_run("sh", "-c", "ls /proc/self/fd | wc -l")
        bare = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], capture_output=True, text=True)
        self.assertEqual(done.stdout, bare.stdout)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
