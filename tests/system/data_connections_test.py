"""Large copies over several connections: which sessions open them, which do not, and what strangers and broken connections
can do."""
import pathlib
import socket
import struct
import subprocess
import unittest

from outboard_testing import BUILD, CONFIG, REFUSAL, SESSION, WELCOME, Client, SystemTest, program, run_program, wait_until
from recording import Relay

DATA = 5
COPIES = ["two_way", 24, 400]
FEATURE = 2


class DataConnections(SystemTest):
    def threads_of(self, worker):
        """How many connections the worker serves in addition to the session's own."""
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

    def test_sessions_without_shared_memory_have_some(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 1\n" + CONFIG)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 8, OUTBOARD_DATA_CONNECTIONS="4"), 8)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 2, OUTBOARD_DATA_CONNECTIONS="1"), 2)
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 0, OUTBOARD_DATA_CONNECTIONS="0"), 0)
        self.assertEqual(self.most_connections(daemon, daemon.unix, 0), 0)
        # Copies without a wait have their own connections.
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 4, ["later_copies"], OUTBOARD_DATA_CONNECTIONS="4"), 4)
        self.nothing_is_left(daemon)

    def copied_over_a_link(self, daemon, gigabits, **environment):
        """The time of copies there and back over a link of that bandwidth, by what was copied."""
        host_and_port = daemon.tcp.removeprefix("tcp:")
        link = subprocess.Popen([BUILD / "bench/emulated_link", "relay", host_and_port, "0", str(gigabits)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            url = link.stdout.readline().strip()
            done = run_program(program("shrinking_copies", 24, 3), url, timeout=120, **environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            return {name: float(value) for name, value, _ in
                    (row.split("\t") for row in done.stdout.splitlines() if "\t" in row)}
        finally:
            link.stdin.close()
            link.wait(10)
            link.stdout.close()

    def test_a_slow_link_carries_compressible_bytes_faster(self):
        daemon = self.serve()
        plain = self.copied_over_a_link(daemon, 0.5, OUTBOARD_COMPRESSION="0")
        packed = self.copied_over_a_link(daemon, 0.5)
        print(f"24 MiB there and back at 0.5 Gb/s, ms: {plain} as they are, {packed} packed where it pays")
        self.assertLess(packed["small_numbers"], plain["small_numbers"] * 0.8)
        self.assertLess(packed["random"], plain["random"] * 1.2)
        self.nothing_is_left(daemon)
        unpacked = self.copied_over_a_link(self.serve(config="compression = false\n" + CONFIG), 0.5)
        self.assertGreater(unpacked["small_numbers"], plain["small_numbers"] * 0.8)

    def test_a_server_may_allow_none(self):
        daemon = self.serve(config="data_connections = 0\n[limits]\nlinger_seconds = 1\n[cpu]\nmemory = \"2GiB\"\n")
        self.assertEqual(self.most_connections(daemon, daemon.tcp, 0), 0)
        done = run_program(program("large_copies"), daemon.tcp)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.nothing_is_left(daemon)

    def test_a_broken_data_connection_ends_a_session_that_does_not_linger(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 0\n" + CONFIG)
        listener = socket.create_server(("127.0.0.1", 0))
        relay = Relay(listener, "tcp:127.0.0.1:%d" % listener.getsockname()[1], daemon.tcp)
        self.addCleanup(relay.close)
        client = self.start(program(*COPIES), relay.url, OUTBOARD_DATA_CONNECTIONS="4")
        # Not while it dials: a program that gets no data connections continues without them.
        worker = self.worker_of(daemon, client)
        self.assertTrue(wait_until(lambda: self.threads_of(worker) == 8, 20), len(relay.links))
        self.assertEqual(len(relay.links), 9)
        # Cuts all connections of one program: the loss of one that is not in use would not be noticed.
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
        # A client has one identity over a local socket and another over tcp.
        self.assertEqual(ask(struct.pack("<Q", session), daemon.unix)[0], REFUSAL)
        kinds = [ask(struct.pack("<Q", session))[0] for _ in range(66)]
        self.assertEqual(kinds, [WELCOME] * 64 + [REFUSAL] * 2)
        done = run_program(program("large_copies"), daemon.tcp)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        holder.close()
        self.sessions_are_gone(daemon)


if __name__ == "__main__":
    unittest.main()
