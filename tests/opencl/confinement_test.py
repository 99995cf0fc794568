"""A stranger's OpenCL program, which with a platform on processors is this machine's own code, reaches nothing of the
server beyond its session: no files, processes, networks or sessions of others. The same attacks, made with
worker.confine = "off", reach all of it: so they would here, too."""
import os
import pathlib
import signal
import subprocess
import unittest

from native_code_testing import EACCES, EPERM, HERE, MAKE, OFF, NativeCodeTest
from outboard_testing import CONFIG, KeepsCompiled, is_alive, processes_below, program, wait_until

SECRET = "#error confined-secret-word"  # which a compiler says when it reads it
REQUIRED = CONFIG + '[worker]\nconfine = "require"\n'
GETPID, READ, SOCKET, CONNECT, KILL, CHMOD, PTRACE, OPENAT, MKDIRAT, UNLINKAT, PRLIMIT = (
    39, 0, 41, 42, 62, 90, 101, 257, 258, 263, 302)
LOCAL, INTERNET, STREAM, DATAGRAM, ATTACH = 1, 2, 1, 2, 16

# A name by which the front-end knows no file of the client's machine, so the compiler is told it as it stands.
INCLUDES = '#define NAME(x) #x\n#include NAME({})\n__kernel void show(__global char* to) {{ }}\n'
# An assembler reads files by itself.
ASSEMBLES = r"""__kernel void show(__global char* to) {{
  const __global char* from;
  __asm__ volatile("leaq 1f(%%rip), %0\n\t.section .rodata\n1:\t.incbin \"{}\"\n\t.text" : "=r"(from));
  for (int i = 0; i < {}; ++i) to[i] = from[i];
}}
"""


class Confinement(KeepsCompiled, NativeCodeTest):
    def setUp(self):
        super().setUp()
        # Where the daemon puts what it makes, so that what is left can be seen.
        self.scratch = os.path.join(self.folder, "scratch")
        os.mkdir(self.scratch)
        self.before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = self.scratch
        self.secret = pathlib.Path(self.folder, "secret")
        self.secret.write_text(SECRET)
        self.secret.chmod(0o644)

    def tearDown(self):
        if self.before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = self.before
        super().tearDown()

    def other_session(self, daemon):
        """(its program, its worker): it makes the calls that it is told."""
        process = self.native(daemon.unix, "calls")
        return process, wait_until(lambda: next((s["worker"] for s in daemon.sessions() if s["process"] == process.pid), None), 20)

    def folders(self):
        """The sessions' folders that are there now."""
        return [str(p) for p in pathlib.Path(self.scratch).glob("outboard-sessions-*/*")]

    def nothing_is_left(self, daemon):
        self.assertTrue(wait_until(lambda: self.folders() == [], 10), self.folders())
        super().nothing_is_left(daemon)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_a_compiler_reads_no_file_of_the_server(self):
        assembles = ASSEMBLES.format(self.secret, len(SECRET))
        daemon = self.serve(config=OFF)
        self.assertIn(SECRET, self.show(daemon.unix, assembles), "the attack does not work anyway")
        daemon.kill()
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            out = self.show(url, assembles)
            self.assertNotIn(SECRET, out)
        self.nothing_is_left(daemon)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to run a client that cannot read the file")
    def test_includes_mean_no_file_of_the_server(self):
        """Nor one that the client could not read itself."""
        self.secret.chmod(0o600)
        nobody = {"user": 65534, "group": 65534, "cwd": "/"}
        client = program("opencl_native_code")[0]
        if subprocess.run(["test", "-r", client], **nobody).returncode != 0:
            self.skipTest("another user cannot reach the programs of this build")
        include = INCLUDES.format(self.secret)
        daemon = self.serve(config=OFF)
        self.assertIn("confined-secret-word", self.show(daemon.tcp, include, **nobody), "the attack does not work anyway")
        daemon.kill()
        daemon = self.serve()
        for words in ((include,), (INCLUDES.format("secret"), f"-I{self.folder}")):
            out = self.show(daemon.tcp, *words, **nobody)
            self.assertTrue(out.startswith("not built\n"), out)
            self.assertNotIn("confined-secret-word", out)

    def attempts(self, daemon, worker):
        return {
            "read": (OPENAT, HERE, f'"{self.secret}"', 0),
            "write": (OPENAT, HERE, f'"{self.folder}/written"', MAKE, 0o600),
            "make_public": (CHMOD, f'"{self.secret}"', 0o666),
            "memory_of_the_daemon": (OPENAT, HERE, f'"/proc/{daemon.process.pid}/mem"', 2),
            "signal_daemon": (KILL, daemon.process.pid, 0),
            "signal_other": (KILL, worker, 0),
            "limit_daemon": (PRLIMIT, daemon.process.pid, 7, 0, "&"),
            "internet": (SOCKET, INTERNET, STREAM, 0),
            "datagrams": (SOCKET, LOCAL, DATAGRAM, 0),
        }

    def test_native_code_reaches_nothing(self):
        daemon = self.serve(config=OFF)
        _, worker = self.other_session(daemon)
        attempts = self.attempts(daemon, worker)
        free = self.results(daemon.unix, attempts)
        self.assertTrue(all(result >= 0 for result in free.values()), f"the attacks do not work anyway: {free}")
        self.secret.chmod(0o644)
        os.remove(os.path.join(self.folder, "written"))
        stolen = self.calls(daemon.unix, {"open": attempts["read"], "read": (READ, "=", "&", 100)})
        self.assertEqual(stolen["read"][1], SECRET)
        daemon.kill()

        daemon = self.serve(config=REQUIRED)
        other, worker = self.other_session(daemon)
        attempts = self.attempts(daemon, worker) | {
            "trace_daemon": (PTRACE, ATTACH, daemon.process.pid, 0, 0),
            "trace_other": (PTRACE, ATTACH, worker, 0, 0)}
        wanted = dict.fromkeys(attempts, EPERM) | dict.fromkeys(("read", "write", "memory_of_the_daemon"), EACCES)
        for url in (daemon.unix, daemon.tcp):
            self.assertEqual(self.results(url, attempts), wanted)
            found = self.results(url, {"socket": (SOCKET, LOCAL, STREAM, 0), "connect": (CONNECT, "=", "&", 16)})
            self.assertEqual((found["socket"] >= 0, found["connect"]), (True, EPERM))
        self.assertEqual(self.secret.stat().st_mode & 0o777, 0o644)
        self.assertNotIn("lacks", daemon.log())
        self.still_serves(daemon, other, worker)
        self.nothing_is_left(daemon)

    def still_serves(self, daemon, other, worker):
        out, err = other.communicate(f"pid {GETPID}\n", timeout=60)
        self.assertEqual((other.returncode, out.split(), err), (0, ["pid", str(worker)], ""))
        self.assertEqual(self.results(daemon.unix, {"pid": (GETPID,)}).keys(), {"pid"})
        self.sessions_are_gone(daemon)

    def test_what_remains_goes_though_everybody_is_told_to_end(self):
        """As a service manager does."""
        daemon = self.serve()
        process = self.native(daemon.unix, "stay")
        self.wait_for_line(process, "stays")
        for each in (daemon.process.pid, *processes_below(daemon.process.pid)):
            os.kill(each, signal.SIGTERM)
        process.communicate("\n", timeout=60)
        self.assertEqual(daemon.process.wait(20), 0)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_it_has_a_folder_of_its_own_that_goes_with_it(self):
        daemon = self.serve()
        found = self.results(daemon.unix, {
            "make": (MKDIRAT, HERE, '"closed"', 0),
            "folder": (MKDIRAT, HERE, '"a"', 0o700),
            "file": (OPENAT, HERE, '"a/b"', MAKE, 0),
            "way_out": (OPENAT, HERE, '"../x"', MAKE, 0o600),
            "remove": (UNLINKAT, HERE, '"a/b"', 0)})
        self.assertEqual((found["make"], found["folder"], found["way_out"], found["remove"]), (0, 0, EACCES, 0), found)
        self.assertGreaterEqual(found["file"], 0)
        self.nothing_is_left(daemon)

    def test_what_native_code_starts_ends_with_its_session(self):
        for how in ("close", "kill the client", "kill the worker", "kill the daemon"):
            with self.subTest(how=how):
                daemon = self.serve()
                process = self.native(daemon.unix, "stay")
                child = int(self.wait_for_line(process, "stays").split()[1])
                self.assertTrue(is_alive(child))
                self.assertEqual(len(self.folders()), 1)
                worker = daemon.sessions()[0]["worker"]
                if how == "close":
                    process.communicate("\n", timeout=60)
                elif how == "kill the client":
                    process.kill()
                elif how == "kill the worker":
                    os.kill(worker, 9)
                if how == "kill the daemon":
                    daemon.process.kill()
                    daemon.process.wait()
                self.assertTrue(wait_until(lambda: not is_alive(child), 5), "what it started is left")
                if how == "kill the daemon":
                    self.assertTrue(wait_until(lambda: os.listdir(self.scratch) == [], 10), os.listdir(self.scratch))
                else:
                    self.sessions_are_gone(daemon)
                    self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
