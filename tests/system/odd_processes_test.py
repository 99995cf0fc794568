"""Programs that do odd things to their own process: they close descriptors, change their root and limits, or have more
privileges than their user. Outboard promises more here than a real driver does."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from outboard_testing import LIBRARY, PRELOAD, SANITIZED, SystemTest, program, program_environment, run_program


class OddProcesses(SystemTest):
    def does(self, how, urls, *arguments):
        for url in urls:
            with self.subTest(how=how, url=url):
                done = run_program(program("odd_process", how, *arguments), url)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("PASS", done.stdout)
                yield done

    def silently(self, how, *arguments):
        daemon = self.serve()
        # unix: with rings, which both ends choose by default.
        for done in self.does(how, (daemon.unix, daemon.tcp), *arguments):
            self.assertEqual(done.stderr, "")
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_descriptors_closed_before_the_first_call(self):
        self.silently("closed before")

    def test_low_descriptors_stay_free(self):
        self.silently("low numbers")

    def test_sixteen_descriptors_are_enough(self):
        self.silently("few descriptors")

    def test_another_folder_root_and_user(self):
        self.silently("elsewhere", self.folder)

    def test_a_child_inherits_nothing_that_is_shared(self):
        self.silently("not inherited")

    def test_our_threads_get_no_signals(self):
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

    @unittest.skipIf(SANITIZED, "a sanitizer needs the address space")
    def test_little_address_space_suffices_or_is_reported(self):
        daemon = self.serve()
        for done in self.does("little space", (daemon.unix, daemon.tcp)):
            self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)
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
        self.assertIn("this program runs with more privileges than its user has", done.stderr)
        self.assertFalse(os.path.exists(trace), "a file was written by a privileged program")
        self.assertEqual(daemon.sessions(), [])
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
