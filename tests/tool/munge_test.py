"""MUNGE: clients over a network show which user they are. Each test has a munged of its own, with a key of its own."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from harness import (ADMIN, HELLO, OUTBOARD, REFUSAL, SESSION, WELCOME, Client, DaemonTest, clean_environment, frame, hello_payload,
                     hmac_of, text, wait_until)

MUNGED = shutil.which("munged") or shutil.which("munged", path="/usr/sbin")
REFUSED, BUSY = 4, 5
MUNGE = 1 << 13
ANN, BOB = 41001, 41002
CONFIG = f"""munge = true
munge_socket = "SOCKET"
allow_users = ["{ANN}"]
[identity.lab]
users = ["{ANN}"]
rights = ["run", "list-own"]
"""


class Munge(DaemonTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o711)
        self.socket = self.munged("service")

    def munged(self, name):
        """The socket of a new one."""
        place = pathlib.Path(self.folder, name)
        place.mkdir(mode=0o711)
        key = place / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{kind}-file={place / kind}" for kind in ("pid", "log", "seed")]
        process = subprocess.Popen([MUNGED, "--foreground", "--force", f"--key-file={key}", f"--socket={place / 'socket'}",
                                    *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.terminate)
        self.assertTrue(wait_until((place / "socket").exists), "munged did not start")
        return place / "socket"

    def serve_munge(self, config=CONFIG, *flags):
        return self.serve(*flags, config=config.replace("SOCKET", str(self.socket)))

    def ask(self, daemon, verb="doctor", user=None, socket=None, **variables):
        """The command, over the network, with a credential of this user."""
        given = {"OUTBOARD_MUNGE": "1", "OUTBOARD_MUNGE_SOCKET": str(socket or self.socket), **variables}
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        if user is not None and os.geteuid() != 0:
            self.skipTest("only root can be several users")
        return subprocess.run([OUTBOARD if user is None else self.command(), verb, "--server", daemon.tcp, "--json"], capture_output=True, text=True,
                              timeout=30, env=clean_environment(**given), **who)

    def command(self):
        """Where other users may run it, wherever it was built."""
        copy = pathlib.Path(self.folder, "outboard")
        if not copy.exists():
            shutil.copy(OUTBOARD, copy)
            copy.chmod(0o755)
        return copy

    def is_refused(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_names_a_user_whom_a_table_may_have(self):
        daemon = self.serve_munge()
        done = self.ask(daemon, user=ANN)
        self.assertIn(f'"person": "user {ANN}"', done.stdout, done.stderr)
        self.assertIn('"name": "lab"', done.stdout)
        self.assertIn('"rights": "run, list-own"', done.stdout)

    def test_lets_in_whom_allow_users_lets_in_and_not_root_for_being_root(self):
        daemon = self.serve_munge()
        self.is_refused(self.ask(daemon, "devices", user=BOB), REFUSED, f"user {BOB} may not use this server (allow_users)")
        if os.geteuid() == 0:
            self.is_refused(self.ask(daemon, "devices"), REFUSED, "user 0 may not use this server (allow_users)")

    def test_gives_root_no_more_than_its_table(self):
        daemon = self.serve_munge(CONFIG.replace("allow_users", 'allow_users = ["*"]\n# '))
        done = self.ask(daemon)
        self.assertIn(f'"person": "user {os.geteuid()}"', done.stdout, done.stderr)
        self.assertIn('"rights": "run, list-own, checkpoint-own"', done.stdout)

    def test_refuses_who_shows_nothing(self):
        daemon = self.serve_munge()
        self.is_refused(self.ask(daemon, "devices", OUTBOARD_MUNGE="0"), REFUSED, "OUTBOARD_MUNGE=1")
        kind, payload = self.connect(daemon).say_hello(ADMIN, question="devices")
        self.assertEqual(kind, REFUSAL)
        self.assertIn("asks for a MUNGE credential", payload[10:].decode())

    def test_refuses_a_credential_of_another_key(self):
        daemon = self.serve_munge()
        self.is_refused(self.ask(daemon, "devices", socket=self.munged("other")), REFUSED, "made with another key",
                        "/etc/munge/munge.key")

    def test_says_whose_munged_is_silent(self):
        daemon = self.serve_munge()
        self.is_refused(self.ask(daemon, "devices", socket="/nonexistent/socket"), REFUSED, "systemctl start munge")
        daemon.kill()
        os.unlink(daemon.unix[5:])
        deaf = self.serve(config=CONFIG.replace("SOCKET", "/nonexistent/socket"))
        self.is_refused(self.ask(deaf, "devices"), BUSY, "on the server, MUNGE does not answer", "munge_socket")

    def test_a_client_refuses_a_server_that_takes_none(self):
        daemon = self.serve()
        self.is_refused(self.ask(daemon, "devices"), REFUSED, "takes no MUNGE credentials", "OUTBOARD_MUNGE=0")

    def test_a_server_over_tls_must_be_known(self):
        daemon = self.serve_munge('tls = "require"\n' + CONFIG.replace("allow_users", 'allow_users = ["*"]\n# '))
        known = pathlib.Path(self.folder, "known")
        done = self.ask(daemon, "devices", OUTBOARD_KNOWN_SERVERS=str(known), OUTBOARD_TLS="require")
        self.is_refused(done, REFUSED, "it is not known", "add this line")
        known.write_text(done.stderr.strip().rpartition(": ")[2] + "\n")
        done = self.ask(daemon, "devices", OUTBOARD_KNOWN_SERVERS=str(known), OUTBOARD_TLS="require")
        self.assertEqual(done.returncode, 0, done.stderr)

    def credential(self, content):
        done = subprocess.run(["munge", "--socket", str(self.socket)], input=content, capture_output=True, check=True)
        return done.stdout.strip()

    def connect(self, daemon):
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        return client

    def shows(self, client, credential, hello):
        client.send(frame(HELLO, hello + text(credential)))
        return client.receive()

    def made_for(self, client, wanted=SESSION):
        """A hello without its credential, and what that must hold (docs/wire.md, written down a second time)."""
        hello = hello_payload(wanted, features=MUNGE)
        seen = hashlib.sha256(hashlib.sha256(client.greeting).digest() + hello).digest()
        return hello, seen, os.urandom(32)

    def test_a_credential_is_good_for_one_connection_and_once(self):
        daemon = self.serve_munge(CONFIG.replace("allow_users", 'allow_users = ["*"]\n# '))
        first, second = self.connect(daemon), self.connect(daemon)
        hello, seen, secret = self.made_for(first)
        credential = self.credential(seen + secret)
        kind, payload = self.shows(first, credential, hello)
        self.assertEqual(kind, WELCOME, payload)
        seal = hmac_of(secret, b"outboard munge" + seen)
        self.assertEqual(payload[-32:], hmac_of(seal, payload[:-32]), "the server has not read the credential")
        kind, payload = self.shows(second, credential, hello)
        self.assertEqual((kind, second.refusal(payload)[0]), (REFUSAL, "token"))
        self.assertIn("was used before", payload.decode(errors="replace"))
        third = self.connect(daemon)
        kind, payload = self.shows(third, self.credential(seen + secret), hello)
        self.assertIn("made for another connection", payload.decode(errors="replace"))

    def test_malformed_credentials_end_their_connection_alone(self):
        daemon = self.serve_munge()
        for bad in (b"", b"MUNGE:", b"MUNGE:AwQDAA==:", b"\0\xff" * 1000, b"x" * 4096):
            client = self.connect(daemon)
            kind, payload = self.shows(client, bad, self.made_for(client)[0])
            self.assertEqual((kind, client.refusal(payload)[0]), (REFUSAL, "token"), bad[:9])
        client = self.connect(daemon)
        kind, payload = self.shows(client, b"x" * 4097, self.made_for(client)[0])
        self.assertEqual((kind, client.refusal(payload)[0]), (REFUSAL, "malformed"))
        self.assertEqual(self.ask(daemon, user=ANN).stderr, "")


if __name__ == "__main__":
    if not MUNGED:
        print("skipped: munged is not installed (Debian: munge)")
        sys.exit(77)
    unittest.main()
