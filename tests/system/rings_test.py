"""Which sessions share memory with their worker, and that those which cannot, or shall not, work as before."""
import pathlib
import unittest

from outboard_testing import AT_ONCE, MAY_LOOK_INTO_SERVERS, SystemTest, program, run, run_program, wait_until
from recording import Recorder


class Rings(SystemTest):
    config = AT_ONCE

    def has_rings(self, daemon, url, **environment):
        """Of a session that has computed, when a client that is to have rings has them: does its worker have the
        memory? The client must agree."""
        client = self.start(program("fill_and_hang", 1), url, **environment)
        self.wait_for_line(client, "FILLED")
        session = wait_until(lambda: next((s for s in daemon.sessions() if s["process"] == client.pid), None), 20)
        self.assertTrue(session, "the client got no session")
        worker, own = (pathlib.Path(f"/proc/{process}/maps") for process in (session["worker"], client.pid))
        found = "outboard-rings" in own.read_text()
        if MAY_LOOK_INTO_SERVERS:
            self.assertEqual("outboard-rings" in worker.read_text(), found)
        client.kill()
        client.wait()
        self.sessions_are_gone(daemon)
        return found

    def test_who_shares_a_host_shares_memory(self):
        daemon = self.serve()
        shm = "shm:" + daemon.unix[5:]
        self.assertTrue(self.has_rings(daemon, daemon.unix))
        self.assertTrue(self.has_rings(daemon, shm))
        self.assertFalse(self.has_rings(daemon, daemon.unix, OUTBOARD_RINGS="0"))
        self.assertFalse(self.has_rings(daemon, daemon.tcp))
        for url in (shm, daemon.unix):
            self.passed(self.start(program("vector_add"), url))
        self.assertEqual(run("devices", "--server", shm).returncode, 0)
        self.nothing_is_left(daemon)

    def test_a_server_may_have_none(self):
        daemon = self.serve(config="rings = false\n[cpu]\nmemory = \"2GiB\"\n")
        self.assertFalse(self.has_rings(daemon, daemon.unix))
        refused = run_program(program("vector_add"), "shm:" + daemon.unix[5:])
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("it shares no memory", refused.stderr)
        self.nothing_is_left(daemon)

    def test_a_server_may_listen_on_shm(self):
        where = f"{self.folder}/rings"
        daemon = self.serve(listen=[f"shm:{where}"])
        self.assertEqual(daemon.urls, [f"shm:{where}"])
        for url in (f"shm:{where}", f"unix:{where}"):
            self.assertTrue(self.has_rings(daemon, url))
        self.assertFalse(self.has_rings(daemon, f"unix:{where}", OUTBOARD_RINGS="0"))
        self.assertEqual(daemon.stop(), 0, daemon.log()[-2000:])

    def test_a_relay_is_noticed(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            relay = Recorder(self.folder, url)
            self.addCleanup(relay.close)
            self.assertFalse(self.has_rings(daemon, relay.url))
            self.passed(self.start(program("two_way", 16), relay.url))
            relay.close()
            pathlib.Path(relay.path).unlink()
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
