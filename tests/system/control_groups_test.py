"""Control groups: where the daemon has one to divide, each worker has its own, and a session that takes more of the
server's memory than its identity may have ends alone, with the reason. Needs root and control groups of version 2 that
limit memory (`in_guest_test.py control_groups` has them anywhere)."""
import errno
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from outboard_testing import OUTBOARD, SystemTest, clean_environment, run, wait_until

import inside

HOST = 64 << 20
LIMIT = HOST + (512 << 20)
CONFIG = f"""
[limits]
linger_seconds = 0
[cpu]
memory = "2GiB"
[worker]
cgroup = "require"
[identity.default]
host_memory = {HOST}
cpu_weight = 300
"""
# Reads sizes, and has memory of the device that is so large filled.
SCRIPT = """
import ctypes as c, sys
d = c.CDLL('libcuda.so.1')
x = c.c_void_p()
assert [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)] == [0, 0, 0]
print('ready', flush=True)
for line in sys.stdin:
    p, size = c.c_uint64(), c.c_size_t(int(line))
    code = d.cuMemAlloc_v2(c.byref(p), size) or d.cuMemsetD8_v2(p, 1, size) or d.cuCtxSynchronize()
    print(code, flush=True)
    if code: sys.exit(code)
"""
NOBODY = 41001


def root_group():
    """Where groups of version 2 are mounted whose memory can be limited; nothing: nowhere."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        folder = pathlib.Path(fields.split()[4])
        if kind.startswith("cgroup2 ") and "memory" in (folder / "cgroup.controllers").read_text().split():
            return folder
    return None


class ControlGroups(SystemTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o711)
        root = root_group()
        (root / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        self.group = root / f"outboard-test-{os.getpid()}-{self._testMethodName}"
        self.group.mkdir()
        self.addCleanup(self.remove_groups)

    def remove_groups(self):
        for folder, *_ in os.walk(self.group, topdown=False):
            self.assertTrue(wait_until(lambda: self.removed(folder)), folder)

    @staticmethod
    def removed(folder):
        """What was in it may still be ending."""
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True

    def enter(self, user=0):
        (self.group / "cgroup.procs").write_text(str(os.getpid()))
        os.setuid(user)

    def serve_divided(self, config=CONFIG):
        return self.serve(config=config, preexec_fn=self.enter)

    def program(self, url):
        process = self.start([sys.executable, "-c", SCRIPT], url, stdin=subprocess.PIPE)
        self.wait_for_line(process, "ready")
        return process

    def fill(self, process, size):
        process.stdin.write(f"{size}\n")
        process.stdin.flush()

    def filled(self, process, size):
        self.fill(process, size)
        return process.stdout.readline().strip() == "0"

    def group_of(self, session):
        (group,) = [group for group in self.group.glob("worker-*")
                    if str(session["worker"]) in (group / "cgroup.procs").read_text().split()]
        return group

    def test_a_session_that_takes_too_much_ends_alone_and_with_the_reason(self):
        daemon = self.serve_divided()
        good, greedy = self.program(daemon.unix), self.program(daemon.unix)
        self.assertTrue(self.filled(good, 16 << 20))
        before, _ = sorted(daemon.sessions(), key=lambda session: session["id"])
        self.fill(greedy, 1 << 30)
        _, err = greedy.communicate(timeout=60)
        self.assertNotEqual(greedy.returncode, 0)
        self.assertIn("restart the program", err)
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 1), daemon.sessions())
        self.assertRegex(daemon.log(), f"session 2 ended after .* more of the server's own memory than the {LIMIT >> 20} MiB")
        self.assertTrue(self.filled(good, 16 << 20), "the other session goes on")
        (after,) = daemon.sessions()
        self.assertEqual((after["id"], after["worker"]), (before["id"], before["worker"]))
        good.stdin.close()
        self.assertEqual(good.wait(30), 0)
        self.sessions_are_gone(daemon)
        self.assertEqual(daemon.stop(), 0)
        self.assertTrue(wait_until(lambda: [group.name for group in self.group.iterdir() if group.is_dir()] == ["daemon"]))

    def test_each_worker_has_limits_which_lists_show_and_a_reload_changes(self):
        daemon = self.serve_divided()
        self.program(daemon.unix)
        (session,) = daemon.sessions()
        self.assertEqual(session["host_memory_limit"], LIMIT)
        self.assertGreater(session["host_memory_bytes"], 1 << 20)
        self.assertRegex(run("sessions", "--server", daemon.unix).stdout, r"HOST MEMORY.*\n.* MiB of 576 MiB")
        self.assertEqual(daemon.doctor()["cgroup"]["below"], "/" + self.group.name)
        self.assertIn(f"control groups: one for each worker, below /{self.group.name}", run("doctor", "--server", daemon.unix).stdout)
        group = self.group_of(session)
        values = {name: (group / name).read_text().strip() for name in ("pids.max", "memory.oom.group", "cpu.weight")}
        self.assertEqual(values, {"pids.max": "8192", "memory.oom.group": "1", "cpu.weight": "300"})
        pathlib.Path(self.folder, "serve.toml").write_text(re.sub("host_memory.*\ncpu_weight.*", "sessions = 3", CONFIG))
        daemon.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: (group / "memory.max").read_text() == "max\n"), (group / "memory.max").read_text())
        self.assertEqual((group / "cpu.weight").read_text(), "100\n")

    def test_a_worker_cannot_leave_its_group_nor_change_it(self):
        daemon = self.serve_divided()
        self.program(daemon.unix)
        (session,) = daemon.sessions()
        group = self.group_of(session)
        with inside.Inside(session["worker"]) as worker:
            for path in (group / "memory.max", group / "cgroup.procs", group.parent / "cgroup.procs", group.parent / "daemon" / "cgroup.procs"):
                self.assertEqual(worker.open(path, os.O_WRONLY), errno.EACCES, path)

    def test_a_daemon_without_rights_divides_what_was_given_to_it(self):
        for path in (self.group, *(self.group / name for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"))):
            os.chown(path, NOBODY, NOBODY)
        os.chown(self.folder, NOBODY, NOBODY)
        daemon = self.serve(config=CONFIG, preexec_fn=lambda: self.enter(NOBODY))
        # Its socket lies in a folder that anybody could have made: root would not talk to it.
        process = self.program(daemon.tcp)
        (session,) = daemon.ask("sessions", daemon.tcp)
        self.assertEqual(session["host_memory_limit"], LIMIT)
        process.kill()

    def test_a_killed_daemon_leaves_groups_that_the_next_removes(self):
        daemon = self.serve_divided()
        self.program(daemon.unix)
        daemon.kill()
        self.assertTrue(wait_until(lambda: not any(
            (group / "cgroup.procs").read_text() for group in self.group.iterdir() if group.is_dir())))
        self.assertTrue(list(self.group.glob("worker-*")))
        (self.group / "cgroup.subtree_control").write_text("-memory -pids -cpu")
        shutil.rmtree(self.folder + "/state", ignore_errors=True)
        self.serve_divided()
        self.assertEqual(list(self.group.glob("worker-*")), [])


class WithoutGroup(SystemTest):
    def test_the_server_does_not_start_if_it_must_have_one(self):
        path = pathlib.Path(self.folder, "serve.toml")
        path.write_text(CONFIG)
        # The group of this test is not the daemon's alone, whatever else it lacks.
        done = subprocess.run([OUTBOARD, "serve", "--device", "cpu", "--listen", f"unix:{self.folder}/socket", "--config", path],
                              capture_output=True, text=True, timeout=30, env=clean_environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('worker.cgroup is "require", but ', done.stderr)
        self.assertIn("Delegate=yes", done.stderr)

    def test_the_server_says_that_limits_have_no_effect(self):
        daemon = self.serve(config=CONFIG.replace('"require"', '"auto"'))
        self.assertIn("host_memory and cpu_weight of [identity.default] have no effect", daemon.log())
        self.assertIn("control groups: none: ", run("doctor", "--server", daemon.unix).stdout)
        self.assertNotIn("HOST MEMORY", run("sessions", "--server", daemon.unix).stdout)


if __name__ == "__main__":
    if os.geteuid() != 0 or not root_group():
        print("left out: what a group limits; it needs root and control groups of version 2 that limit memory", flush=True)
        unittest.main(argv=[sys.argv[0], "WithoutGroup"])
    unittest.main()
