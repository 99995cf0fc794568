"""Large copies over several connections: who opens them, who does not, and what strangers and broken ones can do."""
import pathlib
import socket
import struct
import subprocess
import unittest

from outboard_testing import AT_ONCE, BUILD, REFUSAL, SANITIZED, SESSION, WELCOME, Client, SystemTest, program, run_program, wait_until
from recording import Relay

DATA = 5
COPIES = ["two_way", 24, 400]
FEATURE = 2


class DataConnections(SystemTest):
    config = AT_ONCE  # clients are killed, and connections cut

    def threads_of(self, worker):
        """How many connections the worker serves beside the session's own."""
        names = []
        for task in pathlib.Path(f"/proc/{worker}/task").iterdir():
            try:
                names.append((task / "comm").read_text().strip())
            except OSError:
                pass
        return names.count("outboard-data")

    def worker_of(self, daemon, client):
        session = wait_until(lambda: next((s for s in daemon.sessions() if s["process"] == client.pid), None), 20)
        self.assertTrue(session, "the client got no session")
        return session["worker"]

    def most_connections(self, daemon, url, wanted, copies=COPIES, **environment):
        client = self.start(program(*copies), url, **environment)
        worker = self.worker_of(daemon, client)
        most = 0

        def look():
            nonlocal most
            try:
                most = max(most, self.threads_of(worker))
            except OSError:
                pass
            return most >= wanted > 0 or client.poll() is not None

        wait_until(look, 20 if wanted else 3)
        client.kill()
        client.wait()
        self.sessions_are_gone(daemon)
        return most

    def test_who_shares_no_memory_has_some(self):
        daemon = self.serve()
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 8, OUTBOARD_DATA_CONNECTIONS="4"), 8)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 2, OUTBOARD_DATA_CONNECTIONS="1"), 2)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 0, OUTBOARD_DATA_CONNECTIONS="0"), 0)
        self.assertEqual(self.most_connections(daemon, daemon.unix, 0), 0)
        # Copies that nobody waits for have theirs.
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 4, ["later_copies"], OUTBOARD_DATA_CONNECTIONS="4"), 4)
        self.nothing_is_left(daemon)

    def copied_over_a_line(self, daemon, gigabits, **environment):
        """What copies there and back took, by what was copied, over a line of that bandwidth."""
        host_and_port = daemon.tcp.removeprefix("tcp:")
        line = subprocess.Popen([BUILD / "bench/emulated_link", "relay", host_and_port, "0", str(gigabits)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            url = line.stdout.readline().strip()
            done = run_program(program("shrinking_copies", 24, 3), url, timeout=120, **environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            return {name: float(value) for name, value, _ in
                    (row.split("\t") for row in done.stdout.splitlines() if "\t" in row)}
        finally:
            line.stdin.close()
            line.wait(10)
            line.stdout.close()

    def test_a_slow_line_carries_what_shrinks_faster(self):
        daemon = self.serve()
        plain = self.copied_over_a_line(daemon, 0.5, OUTBOARD_COMPRESSION="0")
        packed = self.copied_over_a_line(daemon, 0.5)
        print(f"24 MiB there and back at 0.5 Gb/s, ms: {plain} as they are, {packed} packed where it pays")
        if not SANITIZED:  # there it takes longer to pack than the line saves, on a busy machine
            self.assertLess(packed["small_numbers"], plain["small_numbers"] * 0.8)
        self.assertLess(packed["random"], plain["random"] * 1.2)
        self.nothing_is_left(daemon)
        unpacked = self.copied_over_a_line(self.serve(config="compression = false\n" + AT_ONCE), 0.5)
        self.assertGreater(unpacked["small_numbers"], plain["small_numbers"] * 0.8)

    def test_a_server_may_have_none(self):
        daemon = self.serve(config="data_connections = 0\n" + AT_ONCE)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 0), 0)
        done = run_program(program("large_copies"), daemon.tcp)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.nothing_is_left(daemon)

    def test_one_that_breaks_ends_the_session(self):
        daemon = self.serve()
        listener = socket.create_server(("127.0.0.1", 0))
        relay = Relay(listener, "tcp:127.0.0.1:%d" % listener.getsockname()[1], daemon.tcp)
        self.addCleanup(relay.close)
        client = self.start(program(*COPIES), relay.url, OUTBOARD_DATA_CONNECTIONS="4")
        # Not while it dials: a program that gets none goes on without.
        worker = self.worker_of(daemon, client)
        self.assertTrue(wait_until(lambda: self.threads_of(worker) == 8, 20), len(relay.links))
        self.assertEqual(len(relay.links), 9)
        # All of one program's: one that nobody happens to use would not be missed.
        for number in range(1, 9):
            relay.cut(number)
        self.ends_by_loss(client, daemon)

    def test_strangers_get_nothing(self):
        daemon = self.serve()
        holder = Client(daemon.tcp)
        kind, payload = holder.say_hello(SESSION, features=FEATURE)
        self.assertEqual(kind, WELCOME)
        session = struct.unpack_from("<Q", payload, 10)[0]

        def ask(question, url=daemon.tcp):
            guest = Client(url)
            kind, payload = guest.say_hello(DATA, question=question)
            self.addCleanup(guest.close)
            return kind, payload

        for question in ("", "x", struct.pack("<Q", session + 1), struct.pack("<QB", session, 0)):
            kind, payload = ask(question)
            self.assertEqual(kind, REFUSAL, question)
        # Over a local socket one is somebody else than over tcp.
        self.assertEqual(ask(struct.pack("<Q", session), daemon.unix)[0], REFUSAL)
        kinds = [ask(struct.pack("<Q", session))[0] for _ in range(66)]
        self.assertEqual(kinds, [WELCOME] * 64 + [REFUSAL] * 2)
        done = run_program(program("large_copies"), daemon.tcp)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        holder.close()
        self.sessions_are_gone(daemon)


if __name__ == "__main__":
    unittest.main()
