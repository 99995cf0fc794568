"""Shared by the tests of the whole system: CUDA programs as client processes of a back-end that the test starts, and
what must not be left when they are gone. Daemon, handshake and process helpers are those of tests/tool.
Environment (see cmake/OutboardTests.cmake): OUTBOARD_BUILD, OUTBOARD_PRELOAD, OUTBOARD_TOOLKIT, OUTBOARD_TEST_DEVICE."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tool"))
os.environ.setdefault("OUTBOARD_TEST_DEVICE", "cpu")

from harness import (ADMIN, BUILD, GREETING, HEADER, HELLO, MAY_LOOK_INTO_SERVERS, OUTBOARD, REFUSAL,  # noqa: E402, F401
                     SESSION, WELCOME, Client, Daemon, DaemonTest, Token, clean_environment, descriptors_of, frame, greeting_payload, hello_payload, is_alive, opcodes,
                     processes_below, run, text, wait_until)

PROGRAMS = BUILD / "programs"
LIBRARY = BUILD / "lib" / "outboard"
PRELOAD = os.environ.get("OUTBOARD_PRELOAD", "")
TOOLKIT = os.environ.get("OUTBOARD_TOOLKIT", "")
SANITIZED = bool(PRELOAD)
GONE_WITHIN = 1.0

# Device memory that the cpu device shows; small, so that a test of hundreds of clients fits anywhere.
CONFIG = "[cpu]\nmemory = \"2GiB\"\n"
# A session ends with its connection, also over a network: for tests whose clients die, and for those that read and change
# what travels, because the records of connections that can be resumed are in their way.
AT_ONCE = "[limits]\nlinger_seconds = 0\n" + CONFIG
# It waits for a client that is away, whatever the default is.
RESUMED = "[limits]\nlinger_seconds = 60\n" + CONFIG


def argument(otherwise, convert=int):
    """The test's one argument (a number of clients, of seconds), taken off before unittest reads the rest."""
    return convert(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else otherwise


def program(name, *arguments):
    path = PROGRAMS / name
    if not path.exists():
        print(f"skipped: {path} is not built (no nvcc?)")
        sys.exit(77)
    return [str(path), *map(str, arguments)]


def program_environment(server=None, **more):
    """What a user sets who does not use `outboard run`: the library's folder and the server."""
    folders = [str(LIBRARY)] + ([f"{TOOLKIT}/lib64", f"{TOOLKIT}/lib"] if TOOLKIT else [])
    values = {"LD_LIBRARY_PATH": ":".join(folders), **more}
    if server:
        values["OUTBOARD_SERVER"] = server
    if PRELOAD:
        # CUDA's own run time leaks by design at exit.
        values.update(LD_PRELOAD=PRELOAD, ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""))
    return clean_environment(**values)


def start_program(command, server, stdin=subprocess.DEVNULL, **more):
    return subprocess.Popen(command, env=program_environment(server, **more), stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_program(command, server, timeout=60, **more):
    return subprocess.run(command, env=program_environment(server, **more), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout)


def run_command(command, *flags):
    """The words of `outboard run FLAGS -- COMMAND`; what the program alone must have in its environment goes with it."""
    given = program_environment()
    prefix = ["env"] + [f"{key}={given[key]}" for key in ("LD_PRELOAD", "ASAN_OPTIONS") if key in given and PRELOAD]
    return ["run", *flags, "--", *(prefix if len(prefix) > 1 else []), *command]


def through_run(command, *flags, timeout=120, environment=None):
    """`outboard run`, with what the program alone must have in its environment."""
    values = environment or clean_environment()
    if TOOLKIT:
        values = {**values, "LD_LIBRARY_PATH": f"{TOOLKIT}/lib64:{TOOLKIT}/lib"}
    return run(*run_command(command, *flags), timeout=timeout, environment=values)


def shared_memory():
    return set(os.listdir("/dev/shm"))


class Resources:
    """What a daemon holds at one moment, to be compared with a later one."""

    def __init__(self, daemon):
        self.descriptors, self.memory = daemon.descriptors(), daemon.memory()

    def __str__(self):
        return f"{self.descriptors} descriptors, {self.memory / 1e6:.1f} MB"


class SystemTest(DaemonTest):
    """A daemon on the cpu device unless OUTBOARD_TEST_DEVICE says otherwise, honest programs, and a check that nothing is left."""

    def setUp(self):
        super().setUp()
        self.shared_memory_before = shared_memory()

    config = CONFIG

    def serve(self, *flags, config=None, **options):
        return super().serve(*flags, config=config or self.config, device=options.pop("device", os.environ["OUTBOARD_TEST_DEVICE"]), **options)

    def start(self, command, server, **more):
        process = start_program(command, server, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def start_and_stop(self, server):
        """A program that has computed and stands still, with its session, until go_on() or a kill."""
        process = self.start(program("soak_calls", 100, 1), server, stdin=subprocess.PIPE)
        self.wait_for_line(process, "mark")
        return process

    @staticmethod
    def go_on(process):
        """It comes to its end, which passed() awaits."""
        process.stdin.write("\n")
        process.stdin.flush()

    def passed(self, process, timeout=120):
        """Waits for the program, which must say PASS, succeed and write nothing to stderr."""
        out, err = process.communicate(timeout=timeout)
        self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertIn("PASS", out.splitlines()[-1])

    def wait_for_line(self, process, word):
        """Reads the program's stdout up to a line with the word."""
        for line in process.stdout:
            if word in line:
                return line
        self.fail(f"the program ended without {word}: {process.stderr.read()}")

    def sessions_are_gone(self, daemon, seconds=5.0):
        self.assertTrue(wait_until(lambda: daemon.sessions() == [], seconds), daemon.sessions())

    def ends_by_loss(self, client, daemon):
        """The program hears that its session is lost, and the daemon serves on."""
        out, err = client.communicate(timeout=20)
        self.assertNotEqual(client.returncode, 0, out)
        self.assertIn("restart the program", err, out)
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def nothing_is_left(self, daemon):
        """Ends the daemon in order; then there is no process, no socket and no shared memory of it."""
        workers = daemon.workers()
        self.assertEqual(daemon.stop(), 0, daemon.log()[-2000:])
        self.assertTrue(wait_until(lambda: not [w for w in workers if is_alive(w)]))
        self.assertFalse(os.path.exists(daemon.unix[5:]), "the socket is left")
        self.assertEqual({n for n in shared_memory() - self.shared_memory_before if "outboard" in n.lower()}, set())


class KeepsCompiled:
    """Before SystemTest: the back-ends of a class have one cache of compiled kernels, so that PoCL compiles a kernel once
    for an identity and not once for each test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.compiled = tempfile.mkdtemp(prefix="outboard-test-")
        cls.addClassCleanup(shutil.rmtree, cls.compiled, ignore_errors=True)

    def serve(self, *flags, **options):
        options.setdefault("environment", clean_environment(CACHE_DIRECTORY=self.compiled))
        return super().serve(*flags, **options)
