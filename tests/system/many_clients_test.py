"""Many clients at once on one back-end, each a process of its own that multiplies matrices and checks the product.
usage: many_clients_test.py [CLIENTS]; prints the time against their number, and against as many private back-ends."""
import os
import subprocess
import time
import unittest

from outboard_testing import (OUTBOARD, SANITIZED, Resources, SystemTest, argument, clean_environment, program,
                              program_environment, wait_until)

CLIENTS = argument(40)
SIZE = 64
# Of the same number of private back-ends; room for the noise of a machine that does other things too.
MOST = 1.1
NOISE = 0.5


class ManyClients(SystemTest):
    def together(self, count, *flags):
        """Seconds for `count` programs started at once, all of them right."""
        values = clean_environment(LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""))
        given = program_environment()
        prefix = [f"{key}={given[key]}" for key in ("LD_PRELOAD", "ASAN_OPTIONS") if SANITIZED]
        command = [OUTBOARD, "run", *flags, "--", *(["env", *prefix] if prefix else []), *program("matmul", SIZE)]
        began = time.monotonic()
        clients = [subprocess.Popen(command, env=values, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for _ in range(count)]
        for client in clients:
            self.addCleanup(self.end, client)
        for client in clients:
            self.passed(client, 600)
        return time.monotonic() - began

    def test_all_are_right_and_nothing_is_left(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        self.together(2, "--server", daemon.unix)
        self.assertTrue(wait_until(lambda: not daemon.workers()))
        before = Resources(daemon)
        # The times of fewer are for whoever reads them; a sanitized client takes a second of a core to start.
        fewer = () if SANITIZED else (8, 4, 2)
        counts = sorted({*(max(1, CLIENTS // part) for part in fewer), CLIENTS})
        for count in counts:
            for url in (daemon.unix, daemon.tcp):
                if count != CLIENTS and url == daemon.tcp:
                    continue
                seconds = self.together(count, "--server", url)
                print(f"{count} clients on one back-end over {url.split(':')[0]}: {seconds:.2f} s, "
                      f"{1e3 * seconds / count:.1f} ms each")
        self.assertTrue(wait_until(lambda: not daemon.workers(), 10), "workers are left")
        self.sessions_are_gone(daemon)
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= before.descriptors), "descriptors are left")
        self.assertEqual(daemon.doctor()["sessions"]["crashed"], 0)
        self.nothing_is_left(daemon)

    @unittest.skipIf(SANITIZED, "what is measured is measured without sanitizers")
    def test_one_back_end_costs_no_more_than_private_ones(self):
        daemon = self.serve()
        self.together(2, "--server", daemon.unix)
        shared = min(self.together(CLIENTS, "--server", daemon.unix) for _ in range(2))
        private = min(self.together(CLIENTS, "--device", "cpu") for _ in range(2))
        print(f"{CLIENTS} clients: {shared:.2f} s on one back-end, {private:.2f} s each on a private one, "
              f"ratio {shared / private:.2f}")
        self.assertLess(shared, private * MOST + NOISE)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
