"""Named tokens: `outboard token` makes and ends them while the server runs, and each is an identity of its own."""
import json
import os
import pathlib
import struct
import time
import unittest

from harness import (ADMIN, HELLO, REFUSAL, SESSION, WELCOME, Client, DaemonTest, Token, clean_environment, frame, hello_payload,
                     is_alive, run, wait_until)

USAGE, REFUSED, CONFIGURATION = 2, 4, 6
NVML = 3


class Tokens(DaemonTest):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder, "tokens")

    def token(self, *arguments):
        return run("token", *arguments, "--tokens-file", self.file)

    def create(self, name, *flags):
        done = self.token("create", name, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("shown only now", done.stderr)
        return done.stdout.strip().encode()

    def serve_named(self, *flags, **options):
        return self.serve("--tokens-file", self.file, *flags, **options)

    def refusal_of(self, url, token):
        client = Client(url)
        kind, payload = client.say_hello(ADMIN, token=token, question="devices")
        self.assertEqual(kind, REFUSAL)
        return client.refusal(payload)

    def test_a_token_lets_in_and_has_its_name_in_no_answer_of_another(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named()
        for token in (ann, bob):
            self.begin(daemon, daemon.tcp, token=token)
        self.assertEqual(self.refusal_of(daemon.tcp, b"ob-" + b"0" * 64), ("token", "the token is wrong"))
        self.assertEqual(self.refusal_of(daemon.tcp, None)[0], "token")
        kept = self.file.read_text()
        for token in (ann, bob):
            self.assertNotIn(token.decode()[3:], kept)
        # The kernel vouches for the users of local sockets.
        self.begin(daemon, daemon.unix)

    def test_beside_a_shared_one_it_is_none_for_users_that_the_kernel_vouches_for(self):
        ann, shared = self.create("ann"), "a shared token, long enough"
        daemon = self.serve_named("--token-file", self.token_file(shared))
        self.begin(daemon, daemon.unix, token=shared.encode())
        self.begin(daemon, daemon.tcp, token=ann)
        self.assertEqual(self.refusal_of(daemon.unix, ann), ("token", "the token is wrong"))

    def test_the_command_takes_a_named_token_from_a_file(self):
        path = self.token_file(self.create("ann").decode())
        daemon = self.serve_named()
        done = run("devices", "--server", daemon.tcp, "--token-file", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("devices", "--server", daemon.tcp)
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn("--token-file", done.stderr)

    def test_a_running_server_learns_of_new_tokens(self):
        self.create("first")
        daemon = self.serve_named()
        ann = self.create("ann")
        self.assertTrue(wait_until(lambda: Client(daemon.tcp).say_hello(ADMIN, token=ann, question="devices")[0] == WELCOME))

    def test_a_revoked_token_ends_its_sessions_within_a_second_and_no_others(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named()
        hers = [self.begin(daemon, daemon.tcp, token=ann) for _ in range(3)]
        his = self.begin(daemon, daemon.tcp, token=bob)
        local = self.begin(daemon, daemon.unix)
        workers = {session["id"]: session["worker"] for session in daemon.sessions()}
        self.assertEqual(len(workers), 5)
        self.assertEqual(self.token("revoke", "ann").returncode, 0)
        began = time.monotonic()
        self.assertTrue(wait_until(lambda: sum(is_alive(worker) for worker in workers.values()) == 2, 5))
        self.assertLess(time.monotonic() - began, 1.0)
        for client in hers:
            self.assertEqual(client.receive(), (None, b""))
        self.assertEqual(self.refusal_of(daemon.tcp, ann), ("token", "the token is wrong"))
        self.begin(daemon, daemon.tcp, token=bob)
        for client in (his, local):
            client.socket.settimeout(0.2)
            with self.assertRaises(TimeoutError):
                client.socket.recv(1)
        self.assertIn("token ann was revoked", daemon.log())
        self.assertIn("its token was revoked", daemon.log())

    def test_waiting_sessions_of_a_revoked_token_are_refused(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named(config="[limits]\nrunning = 1\n")
        self.begin(daemon, daemon.tcp, token=bob)
        waiting = Client(daemon.tcp)
        hello, _ = Token(ann).prove(hello_payload(SESSION), waiting.greeting)
        waiting.send(frame(HELLO, hello))
        self.assertTrue(wait_until(lambda: " waits; " in daemon.log()))
        self.token("revoke", "ann")
        kind, payload = waiting.receive()
        self.assertEqual((kind, waiting.refusal(payload)), (REFUSAL, ("token", "its token was revoked")))

    def test_a_revoked_token_asks_nvml_nothing_more(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named()
        hers, his, gone = (Client(daemon.tcp) for _ in range(3))
        for client, token in ((hers, ann), (his, bob), (gone, ann)):
            self.assertEqual(client.say_hello(NVML, token=token)[0], WELCOME)
        descriptors = daemon.descriptors()
        gone.close()
        self.assertTrue(wait_until(lambda: daemon.descriptors() == descriptors - 1), "it is kept after its end")
        self.token("revoke", "ann")
        hers.socket.settimeout(1)
        self.assertEqual(hers.receive(), (None, b""))
        his.socket.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            his.socket.recv(1)

    def test_revoking_the_last_one_opens_no_door(self):
        ann = self.create("ann")
        daemon = self.serve_named()
        self.token("revoke", "ann")
        for _ in range(2):
            self.assertTrue(wait_until(lambda: Client(daemon.tcp).say_hello(ADMIN, token=ann, question="devices")[0] == REFUSAL))
            self.assertEqual(self.refusal_of(daemon.tcp, None)[0], "token")
            self.file.unlink(missing_ok=True)
            time.sleep(0.5)

    def test_an_expired_token_says_what_to_do(self):
        ann = self.create("ann", "--expires", "1s")
        daemon = self.serve_named()
        time.sleep(1.1)
        reason, message = self.refusal_of(daemon.tcp, ann)
        self.assertEqual(reason, "token")
        self.assertRegex(message, r'the token "ann" expired on \d{4}-\d\d-\d\d \d\d:\d\d UTC; ask .* for a new one')
        done = run("devices", "--server", daemon.tcp, "--token-file", self.token_file(ann.decode()))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (REFUSED, 1), done.stderr)
        self.assertIn("ask the server's administrator for a new one", done.stderr)
        self.assertEqual([(t["name"], t["state"]) for t in json.loads(self.token("list", "--json").stdout)], [("ann", "expired")])

    def test_an_identity_does_not_reach_anothers_session(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named()
        self.begin(daemon, daemon.tcp, token=ann)
        number = daemon.sessions()[0]["id"]
        # A data connection for a session of somebody else: it is as if there were none.
        question = struct.pack("<Q", number)
        for token, expected in ((bob, "there is no such session"), (ann, None)):
            client = Client(daemon.tcp)
            kind, payload = client.say_hello(5, token=token, question=question)
            if expected:
                self.assertEqual((kind, client.refusal(payload)[1]), (REFUSAL, expected))
            else:
                self.assertEqual(kind, WELCOME)

    def test_lists_show_a_client_what_is_its_own(self):
        ann, bob = self.create("ann"), self.create("bob")
        daemon = self.serve_named()
        self.begin(daemon, daemon.tcp, token=ann, program="hers")
        self.begin(daemon, daemon.tcp, token=bob, program="his")
        self.begin(daemon, daemon.unix, program="local")
        seen = {name: run("sessions", "--server", daemon.tcp, "--token-file", self.token_file(token.decode(), name=name), "--json")
                for name, token in (("ann", ann), ("bob", bob))}
        for name, program in (("ann", "hers"), ("bob", "his")):
            self.assertEqual([s["program"] for s in json.loads(seen[name].stdout)], [program])
        self.assertEqual({s["program"] for s in daemon.sessions()}, {"hers", "his", "local"})
        # A question that is worded as what the server calls another's answer gets none.
        for question in ("of one token bob sessions", "sessions of token bob"):
            client = Client(daemon.tcp)
            self.assertEqual(client.say_hello(ADMIN, token=ann, question=question)[0], REFUSAL)

    def test_other_hosts_are_let_in_with_named_tokens(self):
        self.create("ann")
        daemon = self.serve_named("--listen", "tcp:0.0.0.0:0")
        self.assertTrue(daemon.urls)

    def test_of_several_state_folders_the_first_counts(self):
        folder = pathlib.Path(self.folder) / "state"
        folder.mkdir()
        done = run("token", "create", "ann", environment=clean_environment(STATE_DIRECTORY=f"{folder}:{folder}2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((folder / "tokens").exists())

    def test_wrong_words(self):
        self.create("ann", "--expires", "30d")
        for words, status, text in ((("create", "ann"), 1, "already"), (("create", "a b"), 1, "no name for a token"),
                                    (("create", "x", "--expires", "soon"), USAGE, "30d"), (("revoke", "bob"), 1, "no token \"bob\""),
                                    (("create",), USAGE, "NAME"), (("list", "x"), USAGE, "no NAME"), (("end", "x"), USAGE, "revoke"),
                                    (("revoke", "ann", "--expires", "1d"), USAGE, "create"), ((), USAGE, "ACTION")):
            done = run("token", *words, *(("--tokens-file", self.file) if words else ()))
            self.assertEqual(done.returncode, status, words)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.file.write_text("something else\n")
        for words in (("create", "x"), ("list",), ("revoke", "ann")):
            self.assertNotEqual(self.token(*words).returncode, 0)
        done = run("serve", "--device", os.environ.get("OUTBOARD_TEST_DEVICE", "mock"), "--listen", f"unix:{self.folder}/s",
                   "--tokens-file", self.file)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a file of tokens", done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
