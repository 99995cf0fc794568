"""Links that break under encrypted connections: what reconnect_test.py asks of plain ones, and that nobody takes a session out of
its protection. usage: encrypted_reconnect_test.py [--cuts N] [--seed N] [--hole SECONDS] [unittest's arguments]"""
import hashlib
import os
import pathlib
import socket
import ssl
import struct
import sys
import time
import unittest

import reconnect_test
from faulty_link import FaultyLink
from outboard_testing import CONFIG, HELLO, REFUSAL, WELCOME, Client, frame, hello_payload, is_alive, program, wait_until
from reconnect_test import RESUMED, resume_hello
from tls_test import TlsTest, place

DATA = 5
NOTHING = ("question", "there is no such session to resume")


class Encrypted(TlsTest):
    """A server that speaks TLS only, and asks for a token."""
    encrypted = True

    def serve(self, *flags, config=CONFIG, **options):
        return super().serve("--token-file", self.token, *flags, config='tls = "require"\n' + config, **options)


class EncryptedCuts(Encrypted, reconnect_test.Cuts):
    pass


class EncryptedEnds(Encrypted, reconnect_test.Ends):
    pass


class Runner:
    """Poses as `outboard run`, to which programs tell the secret of their session (src/frontend/run_report.hh)."""

    def __init__(self, test):
        self.name = f"outboard-test-{os.getpid()}-{time.monotonic_ns()}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0" + self.name)
        self.listener.listen()
        self.listener.settimeout(30)
        test.addCleanup(self.listener.close)
        self.test = test

    def report(self):
        """(session, secret) of the next session."""
        held, _ = self.listener.accept()
        self.test.addCleanup(held.close)
        held.settimeout(20)
        message = held.recv(8192)
        size = struct.unpack_from("<Q", message)[0]
        return struct.unpack_from("<Q", message, 8 + size)[0], message[16 + size:48 + size]


class TlsClient(Client):
    """Speaks TLS with the gate, and believes any server. It cannot make the inner connection."""

    def __init__(self, url):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.socket = context.wrap_socket(socket.create_connection(place(url), timeout=20))
        self.seal = None
        _, self.greeting = self.receive()


class Attackers(TlsTest):
    def serve_all(self, *flags, mode="allow", **options):
        """Without a token, so that whoever comes has the identity of the session's owner."""
        daemon = self.serve_tls(*flags, mode=mode, token=False, config="[limits]\nlinger_seconds = 60\n", **options)
        done = self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=None)
        line = next(word for word in done.stderr.splitlines() if "add this line" in word).rpartition(": ")[2]
        self.known.write_text(line + "\n")
        return daemon

    def session_of(self, daemon, url=None, **more):
        """A program with an encrypted session, that session's number and its secret."""
        runner = Runner(self)
        process = self.start(program("interrupted", 100000, 0), url or daemon.tcp,
                             **self.client(OUTBOARD_TOKEN_FILE=None, OUTBOARD_RUN=runner.name, **more))
        session, secret = runner.report()
        self.assertTrue(wait_until(lambda: any(s["state"] == "running" for s in daemon.sessions()), 20))
        return process, session, secret

    def answer(self, client, payload):
        self.addCleanup(client.close)
        client.send(frame(HELLO, payload))
        kind, payload = client.receive()
        return kind, client.refusal(payload) if kind == REFUSAL else payload

    def test_no_plain_connection_joins_an_encrypted_session(self):
        daemon = self.serve_all()
        process, session, secret = self.session_of(daemon)
        for wish in (1, 2):
            client = Client(daemon.tcp)
            self.assertEqual(self.answer(client, resume_hello(client, session, secret, wish=wish)), (REFUSAL, NOTHING))
        self.assertEqual(self.answer(Client(daemon.tcp), hello_payload(DATA, question=struct.pack("<Q", session))),
                         (REFUSAL, ("question", "there is no such session")))
        self.assertIsNone(process.poll())
        self.assertEqual([s["state"] for s in daemon.sessions()], ["running"])

    def test_through_tls_only_the_secret_resumes(self):
        daemon = self.serve_all()
        process, session, secret = self.session_of(daemon)
        for bad in ({"secret": bytes(32)}, {"spoil": True}, {"challenge": bytes(32)}, {"session": session + 1},
                    {"secret": hashlib.sha256(secret).digest(), "wish": 2}):
            client = TlsClient(daemon.tcp)
            said = {"session": session, "secret": secret, **bad}
            self.assertEqual(self.answer(client, resume_hello(client, **said)), (REFUSAL, NOTHING))
        self.assertEqual([s["state"] for s in daemon.sessions()], ["running"])
        # The secret alone is not enough to go on: the worker's connection needs the key of this very one.
        thief = TlsClient(daemon.tcp)
        self.addCleanup(thief.close)
        thief.send(frame(HELLO, resume_hello(thief, session, secret)))
        thief.socket.settimeout(2)
        with self.assertRaises(TimeoutError):
            thief.socket.recv(1)
        # If so little had arrived that the thief's question was plausible, the program comes back behind it.
        self.assertTrue(wait_until(lambda: any(s["state"] == "running" for s in daemon.sessions()), 20))
        self.assertIsNone(process.poll())
        last = TlsClient(daemon.tcp)
        self.assertEqual(self.answer(last, resume_hello(last, session, secret, wish=2))[0], WELCOME)
        self.sessions_are_gone(daemon, 2.0)

    def test_overheard_hellos_resume_nothing(self):
        daemon = self.serve_all()
        _, session, secret = self.session_of(daemon)
        first = TlsClient(daemon.tcp)
        heard = resume_hello(first, session, secret)
        first.close()
        for client in (TlsClient(daemon.tcp), Client(daemon.tcp)):
            self.assertEqual(self.answer(client, heard), (REFUSAL, NOTHING))

    def impostor(self, daemon, link):
        """A server with the same tokens and another key takes over the link."""
        folder = pathlib.Path(self.folder, "impostor")
        folder.mkdir()
        other = self.server_in(folder, daemon)
        self.assertEqual(self.ask(other.tcp).returncode, 0)
        link.upstream = place(other.tcp)
        return other

    def server_in(self, folder, daemon):
        own, self.folder = self.folder, str(folder)
        try:
            return super().serve("--token-file", self.token, config=(
                'tls = "require"\n' + CONFIG + f'[certificates]\nown_key = "{folder}/key"\n'))
        finally:
            self.folder = own

    def served_behind_a_link(self, seconds, **more):
        daemon = self.serve_tls(config=f"[limits]\nlinger_seconds = {seconds}\n")
        link = FaultyLink(daemon.tcp, encrypted=True)
        self.addCleanup(link.close)
        process = self.start(program("interrupted", 100000, 0), link.url, **self.client(**more))
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        return daemon, link, process

    def test_a_server_with_another_key_gets_no_session_back(self):
        daemon, link, process = self.served_behind_a_link(60)
        other = self.impostor(daemon, link)
        link.reset_all()
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "interrupted", 5), daemon.sessions())
        time.sleep(1.5)
        self.assertEqual([s["state"] for s in daemon.sessions()], ["interrupted"])
        self.assertEqual(other.sessions(), [])
        link.upstream = place(daemon.tcp)
        link.reset_all()
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "running", 10), daemon.sessions())
        self.assertIsNone(process.poll())

    def test_the_first_key_counts_where_no_file_remembers_it(self):
        daemon, link, process = self.served_behind_a_link(3, OUTBOARD_KNOWN_SERVERS="/proc/no/file")
        self.impostor(daemon, link)
        link.reset_all()
        _, err = process.communicate(timeout=30)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("its key has changed", err)
        self.assertIn("when this program first reached it", err)

    def test_a_link_that_breaks_within_its_handshake_keeps_no_later_one_waiting(self):
        daemon, link, process = self.served_behind_a_link(60)
        link.inner_passes = False
        link.reset_all()
        self.assertTrue(wait_until(lambda: any(one.handshakes == 2 for one in link.links), 5), "nobody has dialled again")
        time.sleep(0.3)  # the worker has the connection
        link.inner_passes = True
        link.half_open("server")
        before = time.monotonic()
        self.assertTrue(wait_until(lambda: any(one.from_server >= link.welcomed and not one.swallows for one in link.links), 10))
        self.assertLess(time.monotonic() - before, 2)
        self.assertIsNone(process.poll())

    def test_a_new_gate_has_a_part_in_no_session(self):
        daemon, link, process = self.served_behind_a_link(60)
        (gate,) = self.gates(daemon)
        os.kill(gate, 9)
        self.assertTrue(wait_until(lambda: [g for g in self.gates(daemon) if g != gate and is_alive(g)], 10))
        link.reset_all()  # tickets of the old gate are of no use
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "running" and link.alive(), 15), daemon.sessions())
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *reconnect_test.REST], warnings="ignore")
