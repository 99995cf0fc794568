"""The daemon's helpers confine themselves before they read anything: what the kernel says of those that run, what the one
for NVML can no longer open while it answers, and what the log says. What each can still do by its work:
src/backend/confinement/confined_helpers_test.cc."""
import ctypes
import errno
import os
import pathlib
import signal
import socket
import subprocess
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tool"))
os.environ.setdefault("OUTBOARD_TEST_DEVICE", "cpu")
import inside  # noqa: E402
from harness import OUTBOARD, REFUSAL, WELCOME, HEADER, Client, DaemonTest, clean_environment, opcodes, processes_below, wait_until  # noqa: E402

NVML, CALL, REPLY = 3, 6, 7
OPCODES = opcodes("nvml")
OFF = '[worker]\nconfine = "off"\n'


def without_landlock(first=444, code=errno.ENOSYS):
    """In a child before it is replaced: it and all below it have a kernel without Landlock (system calls 444 to 446)."""
    libc = ctypes.CDLL(None, use_errno=True)
    refuse, allow = 0x50000 | code, 0x7FFF0000
    lines = [(0x20, 0, 0, 0), (0x35, 0, 2, first), (0x25, 1, 0, 446), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
    text = struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(program))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(text), 0, 0):  # no_new_privs, the filter
        raise OSError(ctypes.get_errno(), "no filter")


def with_broken_landlock():
    """The same with one whose last step fails: what it was asked for does not hold."""
    without_landlock(446, errno.E2BIG)


def status_of(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def filters_of(process):
    """How many filters refuse it system calls: a container's come first, and all that it starts have those, too."""
    return int(status_of(process)["Seccomp_filters"])


class ConfinedHelpers(DaemonTest):
    def client(self, daemon):
        client = Client(daemon.unix)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(NVML)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def devices(self, client):
        client.send(HEADER.pack(1, CALL, 0, OPCODES["nvmlDeviceGetCount_v2"], 0, 1, 0, 0) + b"\1")
        kind, payload = client.receive()
        self.assertEqual(kind, REPLY)
        return struct.unpack("<iII", payload)[2]

    def helper(self, daemon, flag):
        def find():
            for process in processes_below(daemon.process.pid):
                if flag in pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                    return process
            return None
        return wait_until(find)

    def is_confined(self, process, capabilities=0):
        """By the kernel's word, which each helper has as soon as it has confined itself."""
        self.assertTrue(wait_until(lambda: filters_of(process) > filters_of(os.getpid())), f"{process} has no filter")
        status = status_of(process)
        self.assertEqual((status["NoNewPrivs"], int(status["CapEff"], 16) & ~capabilities, int(status["CapPrm"], 16) & ~capabilities),
                         ("1", 0, 0))
        if os.geteuid() == 0:
            self.assertEqual(int(status["CapBnd"], 16), 0)
        limits = [line.split() for line in pathlib.Path(f"/proc/{process}/limits").read_text().splitlines()]
        self.assertEqual([line[4:6] for line in limits if line[:2] == ["Max", "core"]], [["0", "0"]])
        # What is not dumpable belongs to root in /proc.
        self.assertEqual(os.stat(f"/proc/{process}/environ").st_uid, 0)

    def test_the_helper_for_nvml_answers_and_opens_nothing_else(self):
        daemon = self.serve()
        client = self.client(daemon)
        self.assertEqual(self.devices(client), 1)
        helper = self.helper(daemon, b"--monitor")
        self.is_confined(helper)
        self.assertRegex(daemon.log(), r"the NVML helper is confined: Landlock \(version \d+\) locks files, seccomp system calls")
        if inside.POSSIBLE:
            secret = pathlib.Path(self.folder, "secret")
            secret.write_text("of somebody")
            with inside.Inside(helper) as one:
                opened = {path: inside.name_of(one.open(path)) for path in (
                    str(secret), "/etc/shadow", "/usr/bin/env", f"/proc/{daemon.process.pid}/stat", "/dev/null")}
                self.assertEqual(opened, {**dict.fromkeys(opened, "EACCES"), "/dev/null": 0})
                self.assertEqual(one.open(f"{self.folder}/new", os.O_CREAT | os.O_WRONLY), errno.EACCES)
                self.assertEqual(one.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0), -errno.EPERM)
                self.assertEqual(one.call("kill", daemon.process.pid, 0), -errno.EPERM)
        self.assertEqual(self.devices(client), 1, "it goes on")
        self.assertEqual(self.devices(self.client(daemon)), 1)
        self.assertEqual(self.helper(daemon, b"--monitor"), helper, "it has ended")

    @unittest.skipUnless(inside.POSSIBLE, "needs root, on x86-64")
    def test_off_is_said_and_opens_all(self):
        """Also: that the attempts above are ones."""
        daemon = self.serve(config=OFF)
        self.assertEqual(self.devices(self.client(daemon)), 1)
        self.assertIn('workers are not confined (worker.confine is "off"), nor are the daemon\'s helpers', daemon.log())
        helper = self.helper(daemon, b"--monitor")
        self.assertEqual(filters_of(helper), filters_of(os.getpid()))
        with inside.Inside(helper) as one:
            self.assertEqual(one.open(daemon.log_path), 0)
            self.assertGreaterEqual(opened := one.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0), 0)
            self.assertEqual((one.call("close", opened), one.call("kill", daemon.process.pid, 0)), (0, 0))

    def test_a_kernel_without_landlock_is_said_and_refused_where_all_is_required(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n", preexec_fn=without_landlock)
        self.assertEqual(self.devices(self.client(daemon)), 1)
        self.assertRegex(daemon.log(), "warn.*: the NVML helper is not wholly confined: this kernel lacks Landlock; Linux 5.19 and later have")
        self.assertEqual(filters_of(self.helper(daemon, b"--monitor")), filters_of(daemon.process.pid) + 1)
        daemon.stop()
        daemon = self.serve(config='[worker]\nconfine = "require"\n', preexec_fn=without_landlock)
        client = Client(daemon.unix)
        self.addCleanup(client.close)
        self.assertEqual(client.refusal(client.say_hello(NVML)[1]), (
            "device", 'the NVML helper cannot be confined here (worker.confine is "require"; "try" starts it): this kernel lacks Landlock'))
        self.assertIsNone(next((p for p in processes_below(daemon.process.pid) if "--monitor" in pathlib.Path(
            f"/proc/{p}/cmdline").read_text()), None))

    def test_a_helper_that_cannot_confine_itself_is_not_started_for_each_client(self):
        daemon = self.serve(preexec_fn=with_broken_landlock)
        for _ in range(5):
            client = Client(daemon.unix)
            self.addCleanup(client.close)
            kind, payload = client.say_hello(NVML)
            self.assertEqual(kind, REFUSAL, payload)
            reason, why = client.refusal(payload)
            self.assertEqual(reason, "device")
            self.assertIn("cannot confine itself, and the server's log says why", why)
        self.assertEqual(daemon.log().count("the NVML helper cannot be confined: "), 1, daemon.log())

    def test_a_remover_that_ends_is_followed_by_another(self):
        scratch = pathlib.Path(self.folder, "scratch")
        scratch.mkdir()
        daemon = self.serve(preexec_fn=with_broken_landlock, environment=clean_environment(TMPDIR=str(scratch)))
        self.assertTrue(wait_until(lambda: "the remover of sessions' folders has ended" in daemon.log()), daemon.log())
        for _ in range(3):  # their workers cannot confine themselves either
            client = Client(daemon.unix)
            self.addCleanup(client.close)
            self.assertEqual(client.say_hello()[0], REFUSAL)
        self.assertEqual(daemon.log().count("the remover of sessions' folders has ended"), 1, daemon.log())
        self.assertTrue(wait_until(lambda: list(scratch.glob("outboard-sessions-*/*")) == []), list(scratch.rglob("*")))
        daemon.stop()
        self.assertEqual(list(scratch.glob("outboard-sessions-*")), [])

    def test_what_removes_folders_is_confined_and_removes(self):
        daemon = self.serve()
        remover = self.helper(daemon, b"--remove-folders")
        self.is_confined(remover)
        above = pathlib.Path(pathlib.Path(f"/proc/{remover}/cmdline").read_bytes().split(b"--remove-folders\0")[1].split(b"\0")[0].decode())
        if inside.POSSIBLE:
            with inside.Inside(remover) as one:
                self.assertEqual(one.open(daemon.log_path), errno.EACCES)
                self.assertEqual(one.open(above, os.O_RDONLY | os.O_DIRECTORY), 0)
        (above / "left" / "over").mkdir(parents=True)
        (above / "left" / "over" / "file").write_text("x")
        (above / "left" / "over").chmod(0)
        daemon.process.send_signal(signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not above.exists()), list(above.rglob("*")) if above.exists() else "")

    def test_what_tells_a_driver_of_checkpoints_is_confined_but_for_files(self):
        """It looks into one worker, for which a root's needs the right to (CAP_SYS_PTRACE). It waits here for its question."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, there:
            command = [OUTBOARD, "worker", "--parent", str(os.getpid()), "--device", "cpu", "--checkpoint", str(os.getpid()),
                       "--confine-helper"]
            helper = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{there.fileno()}', "sh", *command],
                                      pass_fds=[there.fileno()], env=clean_environment())
            self.addCleanup(helper.wait)
            self.addCleanup(helper.kill)
            self.is_confined(helper.pid, capabilities=1 << 19 | 1 << 38)


if __name__ == "__main__":
    unittest.main()
