"""TLS as tls_test.py has it: which clients a server lets in, by certificate, token and version of the protocol."""
import pathlib
import subprocess
import time
import unittest

from outboard_testing import ADMIN, BUILD, WELCOME, Client, program, run_program, wait_until
from tls_test import FINGERPRINT, GOOD, NO_SERVER, REFUSED, TlsTest, place


class Clients(TlsTest):
    """Who a server lets in."""

    @staticmethod
    def by_certificate(certificate, key):
        return {"OUTBOARD_TOKEN_FILE": None, "OUTBOARD_CLIENT_CERTIFICATE": str(certificate),
                "OUTBOARD_CLIENT_KEY": str(key)}

    def test_a_client_certificate_stands_for_a_token(self):
        lab, other = self.authority("lab"), self.authority("other")
        alice, alice_key = self.signed(lab, "alice", host="")
        mallory, mallory_key = self.signed(other, "mallory", host="")
        daemon = self.serve_tls(certificates=f'client_authority = "{lab}"\n')
        self.works(daemon.tcp)  # by the token; the server is known from now on
        hers = self.by_certificate(alice, alice_key)
        self.works(daemon.tcp, **hers)
        done = self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=None)
        self.refused(done, REFUSED, "asks for a token")
        done = self.ask(daemon.tcp, **self.by_certificate(mallory, mallory_key))
        self.assertIn(done.returncode, (NO_SERVER, REFUSED))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(wait_until(lambda: "not signed by the authority" in daemon.log()), daemon.log())
        session = self.start(program("two_way", 24, 400), daemon.tcp, **self.client(**hers))
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        self.assertIsNone(session.poll())

    def test_an_alternative_name_of_a_certificate_is_one_of_an_identity(self):
        lab = self.authority("lab")
        alice, key = self.signed(lab, "alice", host="", names="DNS:alice.lab,URI:spiffe://lab/alice")
        bob, bobs_key = self.signed(lab, "bob", host="", names="DNS:alice.lab.example")
        daemon = self.serve_tls(certificates=f'client_authority = "{lab}"\n', config='[identity.lab]\n'
                                'certificates = ["URI:spiffe://lab/alice"]\n[identity.default]\nrights = ["run"]\n')
        self.works(daemon.tcp)
        for certificate, its_key, table in ((alice, key, r" of \[identity\.lab\]"), (bob, bobs_key, "")):
            done = self.ask(daemon.tcp, verb="doctor", **self.by_certificate(certificate, its_key))
            self.assertRegex(done.stdout, rf"(?m)^    you: certificate O=lab,CN={certificate.stem}{table}; ")

    def test_without_tokens_a_certificate_is_needed(self):
        lab = self.authority("lab")
        alice, alice_key = self.signed(lab, "alice", host="")
        daemon = self.serve_tls(certificates=f'client_authority = "{lab}"\n', token=False)
        self.known.write_text(f"{daemon.tcp[4:]} {FINGERPRINT.search(daemon.log()).group()}\n")
        self.works(daemon.tcp, **self.by_certificate(alice, alice_key))
        done = self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=None)
        self.assertIn(done.returncode, (NO_SERVER, REFUSED))
        self.assertIn("client certificate", done.stderr)

    def test_named_tokens_come_encrypted_and_end_with_their_sessions(self):
        lab = self.authority("lab")
        names = pathlib.Path(self.folder, "names")
        daemon = self.serve_tls("--tokens-file", names, token=False, certificates=f'client_authority = "{lab}"\n')
        self.known.write_text(f"{daemon.tcp[4:]} {FINGERPRINT.search(daemon.log()).group()}\n")
        self.assertNotEqual(self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=None).returncode, GOOD)

        def token(*words):
            done = subprocess.run([BUILD / "bin/outboard", "token", *words, "--tokens-file", names],
                                  capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.strip()

        # With the first token nobody needs a certificate any more, and the gate learns that.
        ann = str(self.token_file(token("create", "ann"), name="ann"))
        self.assertTrue(wait_until(lambda: self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=ann).returncode == GOOD, 10))
        session = self.start(program("two_way", 24, 4000), daemon.tcp, **self.client(OUTBOARD_TOKEN_FILE=ann))
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        token("revoke", "ann")
        self.assertNotEqual(session.wait(20), 0)
        self.refused(self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=ann), REFUSED, "token is wrong")

    def test_a_client_without_tls_is_told(self):
        daemon = self.serve_tls()
        self.refused(self.ask(daemon.tcp, OUTBOARD_TLS="off"), REFUSED, "speaks TLS only", "OUTBOARD_TLS")

    def test_a_client_with_tls_at_a_server_without_is_told(self):
        daemon = self.serve_tls(mode="off")
        self.refused(self.ask(daemon.tcp), NO_SERVER, "does not speak TLS", "--tls off")

    def test_both_kinds_come_in_where_both_are_allowed(self):
        daemon = self.serve_tls(mode="allow")
        self.works(daemon.tcp)
        self.works(daemon.tcp, OUTBOARD_TLS="off")

    def test_within_one_machine_nothing_is_encrypted_unless_it_must_be(self):
        daemon = self.serve_tls(mode="auto")
        self.assertEqual(self.gates(daemon), [])
        self.works(daemon.tcp, OUTBOARD_TLS="auto")
        self.assertFalse(self.known.exists())
        # A client that does not know finds out that this server wants TLS.
        strict = self.serve_tls(mode="require", listen=["tcp:127.0.0.1:0"])
        self.works(strict.tcp, OUTBOARD_TLS="auto")
        self.assertTrue(self.known.exists())
        # The next one knows.
        began = time.monotonic()
        self.works(strict.tcp, OUTBOARD_TLS="auto")
        self.assertLess(time.monotonic() - began, 2)

    def test_a_listener_beyond_this_machine_has_tls_and_programs_of_this_machine_need_none(self):
        daemon = self.serve_tls(mode="auto", listen=["tcp:0.0.0.0:0"])
        self.assertEqual(len(self.gates(daemon)), 1)
        url = daemon.tcp.replace("0.0.0.0", "127.0.0.1")
        self.works(url, OUTBOARD_TLS="auto")
        self.assertFalse(self.known.exists())
        self.works(url)
        client = Client(url)
        self.addCleanup(client.close)
        self.assertEqual(client.say_hello(ADMIN, token=self.token.read_bytes().strip(), question="devices")[0], WELCOME)

    def test_old_versions_of_tls_are_refused(self):
        daemon = self.serve_tls()
        host, port = place(daemon.tcp)
        done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_2"], input="",
                              capture_output=True, text=True, timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(wait_until(lambda: "below 1.3" in daemon.log() or "TLS failed" in daemon.log()), daemon.log())

    def test_refusals_behind_the_hello_arrive(self):
        daemon = self.serve_tls(config="[limits]\nsessions = 1\n")
        first = self.start(program("two_way", 24, 400), daemon.tcp, **self.client())
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        done = run_program(program("vector_add"), daemon.tcp, **self.client())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("it refused", done.stderr)
        self.assertIsNone(first.poll())

    def test_a_program_waits_for_its_place(self):
        daemon = self.serve_tls(config="[limits]\nrunning = 1\n")
        first = self.start(program("two_way", 24, 400), daemon.tcp, **self.client())
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        second = self.start(program("vector_add"), daemon.tcp, **self.client())
        self.assertTrue(wait_until(lambda: "waits; " in daemon.log(), 20))
        first.kill()
        out, err = second.communicate(timeout=60)
        self.assertEqual(second.returncode, 0, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
