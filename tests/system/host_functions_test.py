"""A client that dies while a host function of its own holds a stream: the worker is gone within a second."""
import signal
import time
import unittest

from outboard_testing import AT_ONCE, GONE_WITHIN, SystemTest, is_alive, program, wait_until


class HostFunctions(SystemTest):
    config = AT_ONCE

    def test_a_dead_client_releases_its_stream(self):
        daemon = self.serve()
        for how in (signal.SIGKILL, signal.SIGTERM):
            for url in (daemon.unix, daemon.tcp):
                client = self.start(program("host_functions", "hold"), url)
                self.wait_for_line(client, "held")
                worker = next(s for s in daemon.sessions() if s["process"] == client.pid)["worker"]
                client.send_signal(how)
                client.wait()
                killed = time.monotonic()
                self.assertTrue(wait_until(lambda w=worker: not is_alive(w), 5))
                self.assertLess(time.monotonic() - killed, GONE_WITHIN)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
