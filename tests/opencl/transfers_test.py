"""Which way the bytes of OpenCL's transfers go: over unix: and shm: the program and the worker share memory for them, so that
the connection carries few; over tcp: large ones have connections of their own, and the session's carries the rest."""
import os
import pathlib
import re
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from faulty_link import FaultyLink  # noqa: E402
from outboard_testing import AT_ONCE, CONFIG, LIBRARY, RESUMED, SystemTest, program, run_program, wait_until  # noqa: E402
from recording import Relay  # noqa: E402

MIB = 1 << 20
ROUNDS = 3
WRITTEN, READ, POLLED = (ROUNDS * each * MIB for each in (32, 32, 16))  # tests/opencl/transfers.cc: much()
ICD = {"OCL_ICD_VENDORS": str(LIBRARY / "libOutboardOpenCL.so.1")}


class Transfers(SystemTest):
    def moved(self, url):
        file = os.path.join(self.folder, "trace")
        done = run_program([*program("opencl_transfers"), "rows"], url, OUTBOARD_TRACE=file,
                           OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        with open(file, encoding="utf-8") as lines:
            sent, received = re.search(r"^sent (\d+) bytes, received (\d+) bytes$", lines.read(), re.MULTILINE).groups()
        print(f"over {url.split(':')[0]}: sent {sent} bytes, received {received}")
        return int(sent), int(received)

    def test_shared_memory_carries_most(self):
        daemon = self.serve()
        sent, received = self.moved(daemon.tcp)
        sent_beside, received_beside = self.moved(daemon.unix)
        # What is moved before that is worth it, and reads that nobody waits for, still travel: of 600 MB to the program
        # 258 to 373 did, the more the busier the machine was.
        self.assertLess(sent_beside, 0.3 * sent)
        self.assertLess(received_beside, 0.75 * received)

    def relay_to(self, daemon):
        listener = socket.create_server(("127.0.0.1", 0))
        relay = Relay(listener, "tcp:127.0.0.1:%d" % listener.getsockname()[1], daemon.tcp)
        self.addCleanup(relay.close)
        return relay

    def carried(self, daemon, **environment):
        """What each connection of a program that moves much carried, there and back; the first is the session's own."""
        relay = self.relay_to(daemon)
        done = run_program(program("opencl_transfers", "much", ROUNDS), relay.url, timeout=120, **ICD, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.nothing_is_left(daemon)
        return relay.carried

    def test_large_ones_have_connections_of_their_own(self):
        daemon = self.serve()
        own, *beside = self.carried(daemon, OUTBOARD_DATA_CONNECTIONS="3")
        there, back = (sum(way) for way in zip(*beside))
        print(f"the session's own {own}, {len(beside)} others {beside}")
        self.assertEqual(len(beside), 6)
        self.assertGreaterEqual(there, WRITTEN)
        self.assertGreaterEqual(back, READ)
        self.assertLess(own[0], 2 * MIB)
        # Reads that are not waited for come over the session's own.
        self.assertLess(own[1], POLLED + 2 * MIB)
        # Three for each direction: of those to the device whichever is free sends, the others take turns.
        self.assertEqual(sorted(back > MIB for _, back in beside), [False] * 3 + [True] * 3)
        self.assertEqual([way for way in beside if min(way) > MIB], [])

    def test_who_has_none_goes_without(self):
        for server, client in ((CONFIG, "0"), ("data_connections = 0\n" + CONFIG, "3")):
            carried = self.carried(self.serve(config=server), OUTBOARD_DATA_CONNECTIONS=client)
            self.assertEqual(len(carried), 1)
            self.assertGreater(carried[0][0], WRITTEN)
            self.assertGreater(carried[0][1], READ + POLLED)

    def test_they_may_not_be_had(self):
        """The program goes on without those that the server, or what stands between, refuses."""
        daemon = self.serve()
        relay = self.relay_to(daemon)
        passing = relay.pump

        def first_only(source, target, entry, carried, way):
            if carried is relay.carried[0]:
                return passing(source, target, entry, carried, way)
            source.close(), target.close()
        relay.pump = first_only
        done = run_program(program("opencl_transfers", "much", 2), relay.url, timeout=120, **ICD,
                           OUTBOARD_DATA_CONNECTIONS="3")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertGreater(len(relay.carried), 1)
        self.assertGreater(min(relay.carried[0]), 2 * 32 * MIB)
        self.nothing_is_left(daemon)

    def test_those_that_break_come_back(self):
        """Each in turn, in the middle of what it carries, and the program finds all bytes where they belong."""
        daemon = self.serve(config=RESUMED)
        link = FaultyLink(daemon.tcp)
        self.addCleanup(link.close)
        client = self.start(program("opencl_transfers", "much", 3), link.url, OUTBOARD_DATA_CONNECTIONS="3", **ICD)
        cuts = 0
        while client.poll() is None:
            cuts += link.reset_busiest(8 * MIB)
            time.sleep(0.01)
        out, err = client.communicate(timeout=60)
        print(f"{cuts} cuts, {len(link.backs)} came back")
        self.assertEqual((client.returncode, err), (0, ""), out)
        self.assertGreater(cuts, 5)
        self.sessions_are_gone(daemon, 2)
        self.nothing_is_left(daemon)

    def test_one_that_breaks_ends_the_session(self):
        daemon = self.serve(config=AT_ONCE)  # else it would come back
        relay = self.relay_to(daemon)
        client = self.start(program("opencl_transfers", "much", 100000), relay.url, OUTBOARD_DATA_CONNECTIONS="3", **ICD)
        self.assertTrue(wait_until(lambda: len(relay.carried) == 7 and sum(map(sum, relay.carried[1:])) > 200 * MIB, 60),
                        relay.carried)
        for number in range(1, 7):
            relay.cut(number)
        self.ends_by_loss(client, daemon)


if __name__ == "__main__":
    unittest.main()
