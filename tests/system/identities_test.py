"""What sessions share stays among those of one identity: a handle of a client of the Unix socket opens for another
client there, and for nobody who came by TCP; with a token or without. And it opens nothing at another back-end."""
import shutil
import subprocess
import tempfile
import unittest

from outboard_testing import CONFIG, Daemon, SystemTest, program, program_environment, run_program


class Identities(SystemTest):
    def offer(self, server):
        process = subprocess.Popen(program("ipc_offer"), env=program_environment(server), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process, process.stdout.readline().strip()

    def take(self, server, handle):
        done = run_program(program("ipc_offer", handle), server)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.strip()

    def still_well(self, process):
        process.stdin.close()
        self.assertIn("PASS", process.stdout.read())
        self.assertEqual(process.wait(timeout=30), 0)

    def test_handles_open_among_one_identity_only(self):
        daemon = self.serve()
        by_tcp = daemon.tcp
        process, handle = self.offer(daemon.unix)
        self.assertEqual(len(handle), 128)
        self.assertEqual(self.take(daemon.unix, handle), "code 0 word 4711")
        self.assertEqual(self.take(by_tcp, handle), "code 1 word 0")
        other, of_tcp = self.offer(by_tcp)
        self.assertEqual(self.take(by_tcp, of_tcp), "code 0 word 4711")
        self.assertEqual(self.take(daemon.unix, of_tcp), "code 1 word 0")
        self.still_well(process)
        self.still_well(other)
        self.sessions_are_gone(daemon)  # a session may end a moment after its program
        self.assertEqual(self.take(daemon.unix, handle), "code 1 word 0", "its session is over")
        self.nothing_is_left(daemon)

    def test_another_back_end_knows_no_such_handle(self):
        daemon = self.serve()
        folder = tempfile.mkdtemp(prefix="outboard-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        second = Daemon(folder, config=CONFIG, device="cpu")
        self.addCleanup(second.kill)
        process, handle = self.offer(daemon.unix)
        self.assertEqual(self.take(second.unix, handle), "code 1 word 0")
        self.assertEqual(self.take(daemon.unix, handle), "code 0 word 4711")
        self.still_well(process)


if __name__ == "__main__":
    unittest.main()
