"""What a server's processes keep from others of its user, and that a client looks who serves a Unix socket. Needs root:
the processes are other users'."""
import os
import pathlib
import subprocess
import unittest

from harness import OUTBOARD, DaemonTest, clean_environment, run

SERVICE = 40003  # nobody's number


def as_user(user, *arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=30, user=user, group=user, extra_groups=[],
                          env=clean_environment(), **options)


def may_run_here(user):
    """Whether that user can reach what was built."""
    return os.geteuid() == 0 and as_user(user, "test", "-x", OUTBOARD).returncode == 0


@unittest.skipUnless(may_run_here(SERVICE), "only root, and only where others reach the build")
class Guarded(DaemonTest):
    def served_by(self, user):
        os.chown(self.folder, user, user)
        return self.serve(config="[pool]\nper_key = 0\n", user=user, group=user, extra_groups=[])

    def test_no_other_process_of_its_user_reads_a_servers_memory_and_no_core_file_is_left(self):
        daemon = self.served_by(SERVICE)
        client = self.begin(daemon)
        worker = daemon.workers()[0]
        opened = 'for file; do (: < "$file") 2> /dev/null && echo "$file"; done; true'
        for process in (daemon.process.pid, worker):
            proc = pathlib.Path(f"/proc/{process}")
            tried = as_user(SERVICE, "sh", "-c", opened, "sh", proc / "mem", proc / "environ", proc / "maps", proc / "status")
            self.assertEqual(tried.stdout.split(), [str(proc / "status")], tried.stderr)
            limits = [line.split() for line in (proc / "limits").read_text().splitlines()]
            self.assertEqual([line[4:6] for line in limits if line[:2] == ["Max", "core"]], [["0", "0"]], process)
        own = int(pathlib.Path("/proc/self/oom_score_adj").read_text())
        scores = [int(pathlib.Path(f"/proc/{process}/oom_score_adj").read_text()) for process in (daemon.process.pid, worker)]
        self.assertEqual(scores, [own, 500], "the kernel ends workers first")
        client.close()

    def test_a_client_speaks_to_no_squatter(self):
        daemon = self.served_by(SERVICE)
        url = f"unix:{self.folder}/socket"
        # Root asks, and anybody can make files in /tmp.
        refused = run("devices", "--server", url)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"the server there runs as user {SERVICE}, who is neither root nor this user, and anybody may make "
                      "files in /tmp; let it listen in a folder of its own", refused.stderr)
        mine = as_user(SERVICE, OUTBOARD, "devices", "--server", url)
        self.assertEqual((mine.returncode, mine.stderr), (0, ""))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
