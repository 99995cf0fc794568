"""Identities of the configuration: who belongs to one, what it may do and use, and what changes while the server runs."""
import json
import os
import pathlib
import signal
import stat
import time
import unittest

from harness import (ADMIN, HELLO, REFUSAL, SESSION, WELCOME, Client, DaemonTest, Token, frame, hello_payload, is_alive, run,
                     wait_until)

USAGE, REFUSED, FULL, CONFIGURATION = 2, 4, 5, 6


class Tenants(DaemonTest):
    def setUp(self):
        super().setUp()
        self.tokens_file = pathlib.Path(self.folder, "tokens")
        self.audit_file = pathlib.Path(self.folder, "audit")
        self.tokens = {}
        for name in ("ann", "bob", "eve"):
            done = run("token", "create", name, "--tokens-file", self.tokens_file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.tokens[name] = done.stdout.strip().encode()

    def serve_tenants(self, config, **options):
        return self.serve("--tokens-file", self.tokens_file, config=f'audit_file = "{self.audit_file}"\n{config}', **options)

    def change(self, daemon, config):
        (daemon.folder / "serve.toml").write_text(f'audit_file = "{self.audit_file}"\n{config}')

    def session(self, daemon, who):
        return self.begin(daemon, daemon.tcp, token=self.tokens[who])

    def refused(self, daemon, who, purpose=SESSION, **fields):
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(purpose, token=self.tokens[who], **fields)
        self.assertEqual(kind, REFUSAL, payload)
        return client.refusal(payload)[1]

    def ask(self, daemon, who, question):
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(ADMIN, token=self.tokens[who], question=question)
        return kind == WELCOME, payload if kind == WELCOME else client.refusal(payload)[1]

    def command(self, daemon, who, *words):
        path = self.token_file(self.tokens[who].decode(), name=f"token-{who}")
        return run(*words, "--server", daemon.tcp, "--token-file", path)

    def audit(self):
        return [json.loads(line) for line in self.audit_file.read_text().splitlines()]

    def wait_in_queue(self, daemon, who):
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        lines = daemon.log().count("waits for a place")
        hello, _ = Token(self.tokens[who]).prove(hello_payload(SESSION), client.greeting)
        client.send(frame(HELLO, hello))
        self.assertTrue(wait_until(lambda: daemon.log().count("waits for a place") > lines))
        return client

    def test_a_row_names_who_belongs_to_it_and_its_members_are_one_tenant(self):
        daemon = self.serve_tenants('[identity.lab]\nmembers = ["token ann", "token bob"]\n')
        for who in ("ann", "bob", "eve"):
            self.session(daemon, who)
        self.assertEqual([(s["identity"], s["credential"]) for s in daemon.sessions()],
                         [("lab", "token ann"), ("lab", "token bob"), ("token eve", "token eve")])
        seen = json.loads(self.command(daemon, "ann", "sessions", "--json").stdout)
        self.assertEqual([s["identity"] for s in seen], ["lab", "lab"])
        seen = json.loads(self.command(daemon, "eve", "sessions", "--json").stdout)
        self.assertEqual([s["identity"] for s in seen], ["token eve"])

    def test_rights_decide_who_runs_lists_and_administers(self):
        daemon = self.serve_tenants('[identity.ann]\nrights = ["run", "list", "list-all"]\n[identity.bob]\nrights = ["list"]\n'
                                    '[identity.eve]\nrights = ["run"]\n')
        self.session(daemon, "ann")
        self.session(daemon, "eve")
        self.assertIn('identity.rights is without "run"', self.refused(daemon, "bob"))
        self.assertEqual(len(json.loads(self.command(daemon, "ann", "sessions", "--json").stdout)), 2)
        self.assertEqual(json.loads(self.command(daemon, "bob", "sessions", "--json").stdout), [])
        done = self.command(daemon, "eve", "sessions")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn('identity.rights is without "list"', done.stderr)
        for words in (("reload",), ("end", "1")):
            done = self.command(daemon, "ann", *words)
            self.assertEqual(done.returncode, REFUSED, done.stdout)
            self.assertIn('without "administer"', done.stderr)
        # Without the right to suspend, a checkpoint is refused before anything is looked for.
        checkpoint = 4
        self.assertIn('without "suspend"', self.refused(daemon, "eve", checkpoint, question="x"))
        self.assertEqual(len(daemon.sessions()), 2)

    def test_doctor_says_who_one_is_and_what_is_missing(self):
        daemon = self.serve_tenants('[identity.bob]\nrights = ["list"]\nweight = 300\n')
        done = self.command(daemon, "bob", "doctor")
        self.assertIn("you are token bob, identity bob; rights: list", done.stdout)
        self.assertIn('lets bob run no programs; ask its administrator for the right "run"', done.stdout)
        answer = json.loads(self.command(daemon, "bob", "doctor", "--json").stdout)["servers"][0]["answer"]
        self.assertEqual((answer["you"]["weight"], answer["you"]["identity"]), (300, "bob"))
        self.assertEqual(daemon.doctor()["you"]["rights"], "run, list, list-all, suspend, administer")

    def test_limits_of_one_identity_leave_the_others_alone(self):
        daemon = self.serve_tenants('[identity]\nrunning = 1\nwaiting = 1\n[identity.ann]\nrunning = 0\nsessions = 2\n')
        for _ in range(2):
            self.session(daemon, "ann")
        self.assertIn("ann has 2 sessions, which is what identity.sessions allows it", self.refused(daemon, "ann"))
        first = self.session(daemon, "bob")
        waiting = self.wait_in_queue(daemon, "bob")
        self.assertIn("1 session of token bob wait for a place, which is what identity.waiting allows",
                      self.refused(daemon, "bob"))
        self.session(daemon, "eve")
        done, answer = self.ask(daemon, "bob", "queue")
        self.assertTrue(done)
        self.assertIn(b"1 session of token bob at a time, and this program is number 1 of 1 in the queue", answer)
        first.close()
        self.assertEqual(waiting.receive()[0], WELCOME)

    def test_places_go_by_priority_and_weight(self):
        daemon = self.serve_tenants("[limits]\nrunning = 3\n[identity.ann]\nweight = 200\n[identity.eve]\npriority = 1\n")
        held = [self.session(daemon, "ann") for _ in range(3)]
        queue = [("ann", self.wait_in_queue(daemon, "ann")), ("ann", self.wait_in_queue(daemon, "ann")),
                 ("bob", self.wait_in_queue(daemon, "bob")), ("eve", self.wait_in_queue(daemon, "eve"))]
        waits = [s["identity"] for s in daemon.sessions() if s["state"] == "waiting"]
        self.assertEqual(waits, ["eve", "token bob", "ann", "ann"])
        served = []
        for _ in range(3):
            held.pop().close()
            before = len(served)

            def next_one():
                for place in queue:
                    place[1].socket.settimeout(0.02)
                    try:
                        kind, _ = place[1].receive()
                    except TimeoutError:
                        continue
                    self.assertEqual(kind, WELCOME)
                    served.append(place[0])
                    queue.remove(place)
                    return True
                return False
            self.assertTrue(wait_until(next_one, 10))
            self.assertEqual(len(served), before + 1)
        self.assertEqual(served, ["eve", "bob", "ann"])

    def test_a_reload_changes_identities_and_ends_no_session_that_may_stay(self):
        daemon = self.serve_tenants('[identity.ann]\nrights = ["run", "list", "administer"]\n')
        hers, his = self.session(daemon, "ann"), self.session(daemon, "bob")
        workers = {s["identity"]: s["worker"] for s in daemon.sessions()}
        self.change(daemon, '[limits]\nsessions = 3\nper_identity = 2\nkeepalive_seconds = 77\n[pool]\nmost = 3\n[identity.ann]\n'
                            'rights = ["run", "list", "administer"]\n[identity.bob]\nrights = ["list"]\n[identity.eve]\n')
        began = time.monotonic()
        done = self.command(daemon, "ann", "reload")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "the configuration is read again, with 3 rows of identities; these count from the next "
                                      "start on: limits.keepalive_seconds, pool.most\n")
        self.assertTrue(wait_until(lambda: not is_alive(workers["token bob"]), 5))
        self.assertLess(time.monotonic() - began, 1.0)
        self.assertEqual(his.receive(), (None, b""))
        hers.socket.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            hers.socket.recv(1)
        self.assertIn('without "run"', self.refused(daemon, "bob"))
        self.session(daemon, "eve")
        self.session(daemon, "ann")
        self.assertIn("limits.sessions allows 3", self.refused(daemon, "ann"))

    def test_a_wrong_configuration_changes_nothing(self):
        daemon = self.serve_tenants("[identity.ann]\nsessions = 1\n")
        self.session(daemon, "ann")
        for wrong, why in (("[identity.ann]\nsessions = -1\n", "identity.ann.sessions has a bad value"),
                           ("nonsense", "serve.toml:2"),
                           ('[identity.ann]\nmembers = ["user no-such-user"]\n', 'there is no user "no-such-user"'),
                           ('[identity.ann]\ndevices = ["7"]\n', 'identity.ann.devices: "7" names no device'),
                           ('[identity.x]\nmembers = ["token ann"]\n[identity.y]\nmembers = ["token ann"]\n', "already belongs")):
            self.change(daemon, wrong)
            done = run("reload", "--server", daemon.unix)
            self.assertEqual(done.returncode, REFUSED, wrong)
            self.assertIn(why, done.stderr)
        self.assertIn("identity.sessions allows it", self.refused(daemon, "ann"))

    def test_a_server_does_not_start_with_a_wrong_row(self):
        for wrong, status in (('[identity."a b"]\n', CONFIGURATION), ('[identity.a]\nmembers = ["group no-such-group"]\n', 1)):
            pathlib.Path(self.folder, "bad.toml").write_text(wrong)
            done = run("serve", "--config", f"{self.folder}/bad.toml", "--listen", f"unix:{self.folder}/s", "--device", "mock")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("identity", done.stderr)

    def test_sighup_reads_it_again_and_opens_a_rotated_audit_file(self):
        daemon = self.serve_tenants("")
        self.session(daemon, "ann")
        self.audit_file.rename(self.audit_file.with_suffix(".1"))
        self.change(daemon, "[identity.ann]\nsessions = 1\n")
        os.kill(daemon.process.pid, signal.SIGHUP)
        self.assertTrue(wait_until(lambda: "the configuration is read again" in daemon.log()))
        self.assertIn("identity.sessions allows it", self.refused(daemon, "ann"))
        self.assertEqual([line["did"] for line in self.audit()], ["reloaded the configuration", "was refused"])

    def test_end_ends_the_session_of_another_and_is_written_down(self):
        daemon = self.serve_tenants('[identity.ann]\nrights = ["run", "administer"]\n')
        his = self.session(daemon, "bob")
        number = daemon.sessions()[0]["id"]
        done = self.command(daemon, "ann", "end", "4711")
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn("there is no session 4711 here", done.stderr)
        self.assertEqual(run("end", "x", "--server", daemon.unix).returncode, USAGE)
        done = self.command(daemon, "ann", "end", str(number))
        self.assertEqual((done.returncode, done.stdout), (0, f"session {number} is ended\n"), done.stderr)
        self.assertEqual(his.receive(), (None, b""))
        self.assertTrue(wait_until(lambda: daemon.sessions() == []))
        self.assertIn("token ann ended it", daemon.log())
        wanted = [("token bob", "began a session"), ("token ann", "ended a session of others"), ("token bob", "ended a session")]
        self.assertEqual([(line["credential"], line["did"]) for line in self.audit()], wanted)
        self.assertEqual({line.get("session") for line in self.audit()}, {str(number)})

    def test_the_audit_file_is_for_its_owner_alone_and_a_flood_of_refusals_is_counted(self):
        daemon = self.serve_tenants("[identity.ann]\nrights = []\n")
        self.assertEqual(stat.S_IMODE(self.audit_file.stat().st_mode), 0o600)
        for _ in range(120):
            self.refused(daemon, "ann")
        lines = self.audit()
        self.assertLess(len(lines), 90)
        time.sleep(0.5)
        self.refused(daemon, "ann")
        lines = self.audit()
        self.assertEqual(len(lines) + sum(int(line["left_out"]) for line in lines), 121)
        self.audit_file.chmod(0o644)
        done = run("reload", "--server", daemon.unix)
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn("may be read by others", done.stderr)

    def test_a_revoked_credential_ends_alone_within_its_identity(self):
        daemon = self.serve_tenants('[identity.lab]\nmembers = ["token ann", "token bob"]\n')
        hers, his = self.session(daemon, "ann"), self.session(daemon, "bob")
        run("token", "revoke", "ann", "--tokens-file", self.tokens_file)
        self.assertEqual(hers.receive(), (None, b""))
        his.socket.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            his.socket.recv(1)
        self.assertIn({"credential": "token ann", "did": "was revoked"},
                      [{key: line[key] for key in ("credential", "did")} for line in self.audit()])

    def test_devices_are_those_of_the_identity(self):
        daemon = self.serve_tenants('[identity.ann]\ndevices = ["0"]\n')
        for who in ("ann", "bob"):
            self.assertEqual(len(json.loads(self.command(daemon, who, "devices", "--json").stdout)), 1)
        self.session(daemon, "ann")
        self.assertEqual(list(daemon.sessions()[0]["environment"]), ["CUDA_VISIBLE_DEVICES"])


if __name__ == "__main__":
    unittest.main()
