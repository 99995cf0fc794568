"""Programs that do odd things to their own process: descriptors closed, roots and limits changed, privileges that the
user has not. What Outboard promises there beyond what a real driver does."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from outboard_testing import (AT_ONCE, CONFIG, LIBRARY, PRELOAD, SANITIZED, SystemTest, clean_environment, program, program_environment,
                             run_program, through_run)


class OddProcesses(SystemTest):
    config = AT_ONCE

    def does(self, how, urls, *arguments):
        for url in urls:
            with self.subTest(how=how, url=url):
                done = run_program(program("odd_process", how, *arguments), url)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("PASS", done.stdout)
                yield done

    def silently(self, how, *arguments):
        daemon = self.serve()
        # unix: with rings, as both ends choose by themselves.
        for done in self.does(how, (daemon.unix, daemon.tcp), *arguments):
            self.assertEqual(done.stderr, "")
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_descriptors_closed_before_the_first_call(self):
        self.silently("closed before")

    def test_low_numbers_are_the_programs(self):
        self.silently("low numbers")

    def test_sixteen_descriptors_are_enough(self):
        self.silently("few descriptors")

    def test_another_folder_root_and_user(self):
        self.silently("elsewhere", self.folder)

    def test_a_child_inherits_nothing_that_is_shared(self):
        self.silently("not inherited")

    def test_threads_of_ours_get_no_signals(self):
        self.silently("signals of threads")

    @unittest.skipIf(SANITIZED, "the interpreter leaks")
    def test_python_starts_children_in_every_way(self):
        script = pathlib.Path(__file__).resolve().parents[1] / "programs" / "multiprocessing_client.py"
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            done = run_program([sys.executable, "-B", str(script)], url)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertIn("PASS", done.stdout)
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_descriptors_closed_under_the_library(self):
        daemon = self.serve()
        for done in self.does("closed under us", (daemon.unix, daemon.tcp), self.folder):
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("every CUDA call returns an error from now on", done.stderr)
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_a_link_that_is_resumed_gets_another_descriptor(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 60\n" + CONFIG)
        for done in self.does("closed and resumed", (daemon.tcp,), self.folder):
            self.assertEqual(done.stderr, "")
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    @unittest.skipIf(SANITIZED, "a sanitizer needs the address space")
    def test_little_address_space_is_said_or_enough(self):
        daemon = self.serve()
        for done in self.does("little space", (daemon.unix, daemon.tcp)):
            self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.nothing_is_left(daemon)

    def test_each_process_has_a_trace_of_its_own(self):
        daemon = self.serve()
        command = " ".join(program("vector_add"))
        folder = pathlib.Path(self.folder, "traces")
        folder.mkdir()
        trace = folder / "trace"

        def traced(name, *words):
            done = through_run(words, "--server", daemon.unix, environment=clean_environment(OUTBOARD_TRACE=str(name)))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stderr

        for expected in (2, 3):  # the second run overwrites the first one's trace, and nothing else
            self.assertIn(f"there is a trace in {trace} already", traced(trace, "sh", "-c", f"{command} && {command}"))
            files = sorted(folder.iterdir())
            self.assertEqual(len(files), expected, files)
            for file in files:
                self.assertIn("\nlocal ", file.read_text(), file)
        self.assertEqual(traced(folder / "of.%p.txt", "sh", "-c", f"{command} && {command}"), "")
        self.assertEqual(len(list(folder.glob("of.[0-9]*.txt"))), 2)
        self.assertIn("cuInit(", traced("-", *program("vector_add")))
        self.assertFalse(pathlib.Path("-").exists())
        self.nothing_is_left(daemon)

    @unittest.skipIf(os.geteuid() != 0 or PRELOAD, "needs root, and no preloaded library")
    def test_a_setuid_program_gets_a_clear_refusal(self):
        daemon = self.serve()
        os.chmod(self.folder, 0o755)
        trace = os.path.join(self.folder, "trace")
        # The loader ignores LD_LIBRARY_PATH for such a program, which therefore names the library's file.
        copy = shutil.copy(program("dlopened")[0], os.path.join(self.folder, "privileged"))
        library = shutil.copy(LIBRARY / "libcuda.so.1", self.folder)
        os.chown(copy, 0, 0)
        os.chmod(copy, 0o4755)
        environment = {**program_environment(daemon.unix), "OUTBOARD_TRACE": trace, "OUTBOARD_LOG": "debug"}
        done = subprocess.run([copy, library], env=environment, capture_output=True, text=True, timeout=60,
                              user=65534, group=65534)
        if "privileges" not in done.stderr and os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("no setuid programs in this folder")
        self.assertEqual(done.stdout.splitlines()[0], "100", done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("this program runs with privileges that its user has not", done.stderr)
        self.assertFalse(os.path.exists(trace), "a file was written by a privileged program")
        self.assertEqual(daemon.sessions(), [])
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
