"""Tables [identity.NAME]: what each identity may do and have, that none takes all, and that a configuration
which is read again counts for those who are there already."""
import contextlib
import json
import os
import pathlib
import re
import signal
import time
import unittest

from harness import (ADMIN, HELLO, REFUSAL, SESSION, WELCOME, Client, DaemonTest, Token, frame, hello_payload, is_alive,
                     run, wait_until)

REFUSED, CONFIGURATION = 4, 6
NVML, CHECKPOINT = 3, 4
ANN, BOB, LAB = 41001, 41002, 41500
FAIR = "while 1 of this server's 3 places are free no identity gets more"


class Identities(DaemonTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o711)
        self.tokens = pathlib.Path(self.folder, "tokens")

    def token(self, name):
        return run("token", "create", name, "--tokens-file", self.tokens).stdout.strip().encode()

    def serve_with(self, config, *flags):
        return self.serve("--tokens-file", self.tokens, *flags, config=config)

    @contextlib.contextmanager
    def user(self, number, groups=()):
        """What is connected meanwhile comes from this user, by the kernel's word."""
        if os.geteuid() != 0:
            self.skipTest("only root can be several users")
        os.setgroups(groups)
        os.seteuid(number)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setgroups([])

    def client_of(self, daemon, number, groups=()):
        with self.user(number, groups):
            client = Client(daemon.unix)
        self.addCleanup(client.close)
        return client

    def begins(self, client, **fields):
        kind, payload = client.say_hello(**fields)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def refusal_of(self, client, **fields):
        kind, payload = client.say_hello(**fields)
        self.assertEqual(kind, REFUSAL)
        return client.refusal(payload)

    def over_tcp(self, daemon):
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        return client

    def say(self, client, token=None, **fields):
        """Its hello, whose answer may come later."""
        hello = hello_payload(SESSION, **fields)
        if token:
            hello, client.seal = Token(token).prove(hello, client.greeting)
        client.send(frame(HELLO, hello))
        return client

    def rewrite(self, daemon, config, by_signal=True):
        pathlib.Path(self.folder, "serve.toml").write_text(config)
        if by_signal:
            daemon.process.send_signal(signal.SIGHUP)

    def ask(self, client, question, **fields):
        kind, payload = client.say_hello(ADMIN, question=question, **fields)
        self.assertEqual(kind, WELCOME, payload)
        # Before the answer stands its length, of whose bytes one may be a bracket.
        begin = re.search(rb'\{"|\[\{|\[\]', payload).start()
        return json.loads(payload[begin:-32])

    def lacks(self, right, client, **fields):
        reason, why = self.refusal_of(client, **fields)
        self.assertEqual(reason, "token")
        self.assertIn(f'has not the right "{right}"', why)


class Shares(Identities):
    def test_none_of_several_takes_all_places(self):
        ann, bob = self.token("ann"), self.token("bob")
        daemon = self.serve_with("[limits]\nsessions = 3\n")
        for _ in range(2):
            self.begins(self.over_tcp(daemon), token=ann)
        reason, why = self.refusal_of(self.over_tcp(daemon), token=ann)
        self.assertEqual(reason, "busy")
        self.assertIn("of token ann 2 sessions run and 0 wait, and " + FAIR, why)
        self.begins(self.over_tcp(daemon), token=bob)
        self.assertEqual(self.refusal_of(self.over_tcp(daemon), token=bob),
                         ("busy", "3 sessions run, which is the limit"))
        # `run` looks before it starts anything.
        path = self.token_file(ann.decode(), name="ann")
        done = run("run", "--server", daemon.tcp, "--token-file", path, "--", "touch", f"{self.folder}/started")
        self.assertEqual(done.returncode, 125)
        self.assertFalse(os.path.exists(f"{self.folder}/started"))

    def test_the_persons_of_a_table_have_its_places_together(self):
        ann = self.token("ann")
        daemon = self.serve_with(f'allow_users = ["*"]\n[identity.lab]\ntokens = ["ann"]\nusers = ["{ANN}"]\n'
                                 'sessions = 2\nwaiting = 1\n')
        first = self.begins(self.over_tcp(daemon), token=ann)
        self.begins(self.client_of(daemon, ANN))
        third = self.say(self.client_of(daemon, ANN), program="third")
        self.assertTrue(wait_until(daemon.waiting))
        self.assertEqual([(s["identity"], s["waits_for"], s["program"]) for s in daemon.waiting()],
                         [("lab", "its own", "third")])
        for client, token in ((self.over_tcp(daemon), ann), (self.client_of(daemon, ANN), None)):
            self.assertEqual(self.refusal_of(client, token=token),
                             ("busy", "of [identity.lab] 2 sessions run and 1 waits, and it may run 2 and have 1 wait: "
                                      "end one of them, or come again when one has ended"))
        told = self.ask(self.over_tcp(daemon), "doctor", token=ann)["identity"]
        self.assertEqual([told[k] for k in ("person", "name", "running", "waiting", "sessions_limit", "waiting_limit")],
                         ["token ann", "lab", 2, 1, 2, 1])
        self.assertIn("it may run 2", told["refusal"])
        # Whoever is in no table is not held up.
        self.begins(self.client_of(daemon, BOB))
        first.close()
        self.assertEqual(third.receive()[0], WELCOME)
        plain = run("sessions", "--server", daemon.unix).stdout
        self.assertRegex(plain, r"IDENTITY")
        self.assertRegex(plain, rf"\n\d+ +lab +.*\n(.*\n)*\d+ +user {BOB} ")

    def test_of_those_that_have_nothing_the_first_comes_first(self):
        ann, bob = self.token("ann"), self.token("bob")
        daemon = self.serve_with("[limits]\nrunning = 1\n")
        runs = self.begins(self.over_tcp(daemon), token=ann)
        waiting = [self.say(self.over_tcp(daemon), token) for token in (ann, ann, bob)]
        self.assertTrue(wait_until(lambda: len(daemon.waiting()) == 3))
        runs.close()
        # None has any now: the first that came.
        self.assertEqual(waiting[0].receive()[0], WELCOME)
        self.assertEqual(len(daemon.waiting()), 2)

    def test_the_seat_that_gets_free_is_for_who_has_less(self):
        ann, bob = self.token("ann"), self.token("bob")
        daemon = self.serve_with('[limits]\nrunning = 2\n[identity.ann]\ntokens = ["ann"]\nsessions = 2\n')
        runs = [self.begins(self.over_tcp(daemon), token=ann) for _ in range(2)]
        self.say(self.over_tcp(daemon), ann, program="hers")
        self.assertTrue(wait_until(lambda: len(daemon.waiting()) == 1))
        his = self.say(self.over_tcp(daemon), bob, program="his")
        self.assertTrue(wait_until(lambda: len(daemon.waiting()) == 2))
        runs[0].close()
        self.assertEqual(his.receive()[0], WELCOME)
        self.assertEqual([s["program"] for s in daemon.waiting()], ["hers"])

    def test_groups_are_the_kernels_word(self):
        daemon = self.serve_with(f'allow_users = ["*"]\n[identity.lab]\ngroups = ["{LAB}"]\nsessions = 1\nwaiting = 0\n'
                                 f'[identity.other]\ngroups = ["{LAB + 1}"]\n')
        self.begins(self.client_of(daemon, ANN, [7, LAB]))
        self.assertIn("[identity.lab]", self.refusal_of(self.client_of(daemon, BOB, [LAB]))[1])
        self.begins(self.client_of(daemon, BOB, [8]))
        reason, why = self.refusal_of(self.client_of(daemon, BOB, [LAB, LAB + 1]))
        self.assertEqual(reason, "token")
        self.assertIn("is in groups of [identity.lab] and of [identity.other]", why)

    def test_devices_of_an_identity(self):
        ann = self.token("ann")
        daemon = self.serve_with('[identity.ann]\ntokens = ["ann"]\ndevices = ["GPU-6d"]\n')
        (device,) = daemon.ask("devices")
        self.assertEqual(self.ask(self.over_tcp(daemon), "devices", token=ann), [device])
        for asked, given in (([], device["uuid"]), ([("CUDA_VISIBLE_DEVICES", "0")], device["uuid"]),
                             ([("CUDA_VISIBLE_DEVICES", "1")], "-1"), ([("CUDA_VISIBLE_DEVICES", "GPU-7")], "-1")):
            client = self.begins(self.over_tcp(daemon), token=ann, environment=asked)
            worker = daemon.sessions()[0]["worker"]
            if os.geteuid() == 0:
                words = pathlib.Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
                self.assertIn(b"CUDA_VISIBLE_DEVICES=" + given.encode(), words)
            self.assertEqual(daemon.sessions()[0]["environment"], {"CUDA_VISIBLE_DEVICES": given})
            client.close()
            self.assertTrue(wait_until(lambda: not daemon.sessions()))


class Rights(Identities):
    def test_each_may_do_what_its_table_says(self):
        tokens = {name: self.token(name) for name in ("ann", "bob", "eve")}
        daemon = self.serve_with('[identity.ann]\ntokens = ["ann"]\nrights = ["run", "list-all"]\n'
                                 '[identity.bob]\ntokens = ["bob"]\nrights = ["run"]\n'
                                 '[identity.default]\nrights = []\n')
        for name in ("ann", "bob"):
            self.begins(self.over_tcp(daemon), token=tokens[name], program=name)
        for wanted in (SESSION, NVML):
            reason, why = self.refusal_of(self.over_tcp(daemon), wanted=wanted, token=tokens["eve"])
            self.assertEqual(reason, "token")
            self.assertIn('token eve has not the right "run" here, but: none', why)
        seen = self.ask(self.over_tcp(daemon), "sessions", token=tokens["ann"])
        self.assertEqual({s["program"] for s in seen}, {"ann", "bob"})
        self.lacks("checkpoint-own", self.over_tcp(daemon), wanted=CHECKPOINT, token=tokens["bob"])
        for name in ("bob", "eve"):
            for right, question in (("list-own", "sessions"), ("administer", "reload")):
                self.lacks(right, self.over_tcp(daemon), wanted=ADMIN, question=question, token=tokens[name])
        told = self.ask(self.over_tcp(daemon), "doctor", token=tokens["eve"])["identity"]
        self.assertEqual(told["refusal"], why, "as it is told when it comes")
        # The server's own user and root may do everything.
        self.assertEqual({s["program"] for s in daemon.sessions()}, {"ann", "bob"})
        path = self.token_file(tokens["bob"].decode(), name="bob")
        done = run("sessions", "--server", daemon.tcp, "--token-file", path)
        self.assertEqual(done.returncode, REFUSED, done.stderr)

    def test_users_of_a_shared_server_see_their_own_sessions(self):
        daemon = self.serve_with(f'allow_users = ["{ANN}", "{BOB}"]\n')
        self.begins(self.client_of(daemon, ANN), program="hers")
        self.begins(self.client_of(daemon, BOB), program="his")
        for number, program in ((ANN, "hers"), (BOB, "his")):
            self.assertEqual([s["program"] for s in self.ask(self.client_of(daemon, number), "sessions")], [program])
        self.assertEqual({s["program"] for s in daemon.sessions()}, {"hers", "his"})
        self.lacks("administer", self.client_of(daemon, ANN), wanted=ADMIN, question="reload")

    def test_wrong_tables_stop_the_start_and_name_their_line(self):
        two = '[identity.a]\nusers = ["root"]\n[identity.b]\nusers = ["{}"]\n'
        for text, status, said in ((two.format("root"), CONFIGURATION, ":3: user"),
                                   (two.format("0"), 1, ":3: [identity.b]"),
                                   ('[identity.a]\nusers = ["no-such-user"]\n', 1, 'there is no user "no-such-user"'),
                                   ('[identity.a]\ntokens = ["x"]\nseats = 1\n', CONFIGURATION, ":3: unknown key"),
                                   ('[identity.a]\ntokens = ["x"]\ndevices = ["77"]\n', 1, '"77" names no device')):
            path = pathlib.Path(self.folder, "bad.toml")
            path.write_text(text)
            done = run("serve", "--device", "mock", "--listen", f"unix:{self.folder}/s", "--config", path)
            self.assertEqual(done.returncode, status, (text, done.stderr))
            self.assertIn(said, done.stderr)


class ReadAgain(Identities):
    def test_a_person_that_may_no_longer_run_is_ended_within_a_second_and_no_other(self):
        ann, bob = self.token("ann"), self.token("bob")
        daemon = self.serve_with("[limits]\nrunning = 2\n")
        hers, his = self.begins(self.over_tcp(daemon), token=ann), self.begins(self.over_tcp(daemon), token=bob)
        waits = self.say(self.over_tcp(daemon), ann)
        asks = self.begins(self.over_tcp(daemon), wanted=NVML, token=ann)
        self.assertTrue(wait_until(daemon.waiting))
        workers = {s["identity"]: s["worker"] for s in daemon.sessions()}
        began = time.monotonic()
        self.rewrite(daemon, '[limits]\nrunning = 2\n[identity.ann]\ntokens = ["ann"]\nrights = ["list-own"]\n')
        self.assertTrue(wait_until(lambda: not is_alive(workers["token ann"]), 5))
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(asks.receive(), (None, b""))
        kind, payload = waits.receive()
        self.assertEqual(kind, REFUSAL)
        self.assertIn('has not the right "run"', waits.refusal(payload)[1])
        self.assertTrue(is_alive(workers["token bob"]))
        self.assertTrue(wait_until(lambda: ' s: token ann has not the right "run"' in daemon.log()))
        self.assertEqual(self.refusal_of(self.over_tcp(daemon), token=ann)[0], "token")
        hers.close()
        his.close()

    def test_a_bad_file_changes_nothing_and_says_why(self):
        ann = self.token("ann")
        good = '[identity.ann]\ntokens = ["ann"]\nsessions = 1\nwaiting = 0\n'
        daemon = self.serve_with(good)
        self.begins(self.over_tcp(daemon), token=ann)
        for bad, said in (("[identity.ann]\nsessons = 1\n", ":2: unknown key"), ("[identity\n", ":1:"),
                          ('[identity.ann]\nusers = ["no-such-user"]\n', "there is no user"),
                          ('[identity.ann]\ntokens = ["ann"]\ndevices = ["9"]\n', "names no device"),
                          ('allow_users = ["no-such-user"]\n', "there is no user")):
            self.rewrite(daemon, bad, by_signal=False)
            done = run("reload", "--server", daemon.unix)
            self.assertEqual(done.returncode, CONFIGURATION, done.stderr)
            self.assertIn("stays as it was", done.stderr)
            self.assertIn(said, done.stderr)
            self.assertIn("[identity.ann]", self.refusal_of(self.over_tcp(daemon), token=ann)[1])
        self.assertEqual(len(daemon.sessions()), 1)
        os.unlink(f"{self.folder}/serve.toml")
        self.assertEqual(run("reload", "--server", daemon.unix).returncode, CONFIGURATION)

    def test_limits_and_tables_count_from_now_on_and_the_rest_is_named(self):
        ann = self.token("ann")
        daemon = self.serve_with('[identity.ann]\ntokens = ["ann"]\nsessions = 1\nwaiting = 1\n')
        self.begins(self.over_tcp(daemon), token=ann)
        waits = self.say(self.over_tcp(daemon), ann)
        self.assertTrue(wait_until(daemon.waiting))
        self.rewrite(daemon, '[identity.ann]\ntokens = ["ann"]\nsessions = 2\n[pool]\nmost = 3\n'
                     '[limits]\nsessions = 5\n', by_signal=False)
        done = run("reload", "--server", daemon.unix)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("from its next start on count: pool.most\n", done.stdout)
        self.assertEqual(waits.receive()[0], WELCOME)
        self.assertEqual(daemon.doctor()["sessions"]["limit"], 5)

    def test_users_that_are_allowed_no_more_are_ended_and_new_ones_come_in(self):
        daemon = self.serve_with(f'allow_users = ["{ANN}"]\n')
        self.begins(self.client_of(daemon, ANN))
        slow = self.client_of(daemon, ANN)
        own = self.begins(Client(daemon.unix))
        worker = next(s["worker"] for s in daemon.sessions() if s["identity"] == f"user {ANN}")
        self.rewrite(daemon, f'allow_users = ["{BOB}"]\n')
        self.assertTrue(wait_until(lambda: not is_alive(worker), 1))
        self.assertIn("may no longer", self.refusal_of(slow)[1])
        self.begins(self.client_of(daemon, BOB))
        with self.user(ANN):
            self.assertEqual(Client(daemon.unix, greet=False).receive()[0], REFUSAL)
        self.assertEqual({s["identity"] for s in daemon.sessions()}, {"user 0", f"user {BOB}"})
        # With nobody left to let in the socket is its owner's again.
        self.rewrite(daemon, "")
        self.assertTrue(wait_until(lambda: os.stat(daemon.unix[5:]).st_mode & 0o777 == 0o600))
        with self.user(BOB), self.assertRaises(PermissionError):
            Client(daemon.unix)
        own.close()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
