"""The audit file: a line for who did what to whom, and few for what strangers do."""
import json
import os
import pathlib
import signal
import socket
import unittest

from harness import ADMIN, REFUSAL, WELCOME, Client, DaemonTest, hello_payload, frame, HELLO, run, wait_until


class Audit(DaemonTest):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.folder, "audit.jsonl")
        self.tokens = pathlib.Path(self.folder, "tokens")

    def start(self, config="", *flags):
        return self.serve("--audit-file", self.file, "--tokens-file", self.tokens, *flags, config=config)

    def token(self, *arguments):
        return run("token", *arguments, "--tokens-file", self.tokens).stdout.strip().encode()

    def lines(self, event=None, file=None):
        """Every line is whole JSON, and has a time."""
        text = (file or self.file).read_bytes()
        self.assertTrue(text.endswith(b"\n"))
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        return [line for line in lines if event in (None, line["event"])]

    def one(self, event):
        self.assertTrue(wait_until(lambda: self.lines(event)), event)
        found = self.lines(event)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_a_session_has_a_line_at_its_beginning_and_at_its_end(self):
        ann = self.token("create", "ann")
        daemon = self.start('[identity.lab]\ntokens = ["ann"]\n')
        client = self.begin(daemon, daemon.tcp, token=ann, user="root", program="forged\n{}", host="h")
        began = self.one("session-began")
        self.assertEqual([began[k] for k in ("by", "identity", "api")], ["token ann", "lab", "CUDA"])
        port = client.socket.getsockname()[1]
        self.assertEqual(began["from"], f"tcp:127.0.0.1:{port}")
        # What nobody vouches for stands apart.
        self.assertEqual(began["claims"], {"host": "h", "process": os.getpid(), "program": "forged\n{}", "user": "root?"})
        self.assertEqual(began["worker"], daemon.sessions()[0]["worker"])
        client.close()
        ended = self.one("session-ended")
        for key in ("session", "by", "identity", "from", "claims"):
            self.assertEqual(ended[key], began[key])
        self.assertTrue(ended["reason"])
        self.assertGreater(ended["seconds"], 0)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)

    def test_tokens_and_what_ends_with_them(self):
        daemon = self.start()
        ann = self.token("create", "ann")
        self.assertEqual(self.one("token-made")["of"], "token ann")
        self.begin(daemon, daemon.tcp, token=ann)
        self.token("revoke", "ann")
        self.assertEqual(self.one("token-revoked")["of"], "token ann")
        self.assertEqual(self.one("session-ended")["reason"], "its token was revoked")

    def test_refusals_say_why_and_a_flood_of_them_is_counted(self):
        self.token("create", "ann")
        daemon = self.start()
        client = Client(daemon.tcp)
        self.addCleanup(client.close)
        self.assertEqual(client.say_hello(token=b"ob-" + b"0" * 64)[0], REFUSAL)
        refused = self.one("refused")
        self.assertEqual([refused[k] for k in ("by", "reason")], ["anyone", "the token is wrong"])
        host, _, port = daemon.tcp[4:].rpartition(":")
        for _ in range(400):
            link = socket.create_connection((host, int(port)))
            link.sendall(b"\n\x1b[2J{\"event\":\"token-made\"}" * 4)
            link.close()
        self.assertTrue(wait_until(lambda: self.lines("left-out")))
        self.assertTrue(wait_until(lambda: len(self.lines("refused")) +
                                   sum(line["count"] for line in self.lines("left-out")) == 401))
        self.assertLess(len(self.lines()), 80)
        self.assertEqual(self.lines("token-made"), [])

    def test_one_that_waited_and_was_refused(self):
        daemon = self.start("[limits]\nrunning = 1\n")
        self.begin(daemon)
        waiting = Client(daemon.unix)
        self.addCleanup(waiting.close)
        waiting.send(frame(HELLO, hello_payload(1, program="late")))
        self.assertTrue(wait_until(daemon.waiting))
        daemon.process.send_signal(signal.SIGTERM)
        refused = self.one("refused")
        self.assertEqual([refused["claims"]["program"], refused["reason"]], ["late", "the server is shutting down"])

    def test_what_administrators_do(self):
        ann = self.token("create", "ann")
        daemon = self.start()
        began = self.one("server-began")
        self.assertEqual([began["process"], began["device"]], [daemon.process.pid, "mock"])
        self.assertEqual(run("reload", "--server", daemon.unix).returncode, 0)
        me = f"user {os.geteuid()}"
        self.assertEqual(self.one("reload")["by"], me)
        denied = Client(daemon.tcp)
        self.addCleanup(denied.close)
        self.assertEqual(denied.say_hello(ADMIN, token=ann, question="reload")[0], REFUSAL)
        refused = self.one("refused")
        self.assertEqual(refused["by"], "token ann")
        self.assertIn('has not the right "administer"', refused["reason"])
        daemon.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: len(self.lines("reload")) == 2))
        self.assertEqual([self.lines("reload")[1][k] for k in ("by", "process")], [me, os.getpid()])
        daemon.stop()
        self.assertEqual([self.one("drain")[k] for k in ("by", "process")], [me, os.getpid()])
        self.assertEqual(self.lines()[-1]["event"], "server-ended")

    def test_doctor_says_where_it_is_to_administrators(self):
        ann = self.token("create", "ann")
        daemon = self.start()
        self.assertEqual(daemon.doctor()["audit"], {"on": True, "file": str(self.file)})
        self.assertIn(f"audit: {self.file}\n", run("doctor", "--server", daemon.unix).stdout)
        path = self.token_file(ann.decode(), name="ann")
        plain = run("doctor", "--server", daemon.tcp, "--token-file", path).stdout
        self.assertNotIn(str(self.file), plain)
        self.assertIn("audit: on", plain)

    def test_it_is_rotated_by_moving_it_and_follows_a_configuration_that_is_read_again(self):
        daemon = self.start()
        self.begin(daemon).close()
        self.one("session-ended")
        old = self.file.rename(self.file.with_suffix(".1"))
        self.begin(daemon).close()
        self.one("session-ended")
        self.assertEqual([line["event"] for line in self.lines(file=old)][-2:], ["session-began", "session-ended"])
        self.assertEqual([line["event"] for line in self.lines()], ["session-began", "session-ended"])

    def test_a_reload_takes_up_another_file_or_changes_nothing(self):
        other = pathlib.Path(self.folder, "other.jsonl")
        daemon = self.serve(config=f'audit_file = "{self.file}"\n')
        config = pathlib.Path(self.folder, "serve.toml")
        config.write_text(f'audit_file = "{self.folder}/missing/audit"\n')
        failed = run("reload", "--server", daemon.unix)
        self.assertEqual(failed.returncode, 6)
        self.assertIn("audit_file: ", failed.stderr)
        config.write_text(f'audit_file = "{other}"\n')
        self.assertEqual(run("reload", "--server", daemon.unix).returncode, 0)
        self.begin(daemon)
        self.assertTrue(wait_until(other.exists))
        self.assertEqual([line["event"] for line in self.lines(file=other)], ["session-began"])
        self.assertEqual([line["event"] for line in self.lines()], ["server-began", "reload", "reload"])

    def test_a_server_that_cannot_write_it_does_not_start(self):
        done = run("serve", "--listen", f"unix:{self.folder}/s", "--audit-file", "/dev/full", "--device", "mock")
        self.assertEqual(done.returncode, 1)
        self.assertIn("audit_file: /dev/full cannot be written: it is no regular file", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
