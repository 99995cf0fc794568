"""Links between client and server that break: programs notice a pause and nothing else, everything is carried out once, and
what is left over ends in time. usage: reconnect_test.py [--cuts N] [--seed N] [--hole SECONDS] [unittest's arguments]"""
import argparse
import collections
import hashlib
import hmac
import json
import os
import pathlib
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
import unittest

from faulty_link import SAID_HELLO, FaultyLink
from outboard_testing import (CONFIG, HELLO, OUTBOARD, REFUSAL, RESUMED, SESSION, WELCOME, Client, SystemTest, Token, clean_environment,
                              frame, hello_payload, is_alive, program, run_command, run_program, start_program, wait_until)

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--cuts", type=int, default=24)
OPTIONS.add_argument("--seed", type=int, default=7)
OPTIONS.add_argument("--hole", type=float, default=6.5, help="how long a black hole lasts, in seconds")
ARGUMENTS, REST = OPTIONS.parse_known_args()

RESUME, FEATURE = 7, 4096
NEWS, FAREWELL = 2, 3
TERMS = 36
OWN_STREAM = bytes(32)
# How often each kind of cut happens among so many; the last ones take seconds each.
KINDS = {"reset": 40, "reset_one": 20, "close": 12, "move": 12, "restart": 8, "half_open_client": 4, "half_open_server": 2, "hole": 2}


def challenge_of(greeting):
    return greeting[21:53]


def resume_hello(client, session, secret, stream=OWN_STREAM, arrived=0, wish=1, challenge=None, spoil=False):
    """A hello that resumes; the client's own challenge lies behind token and proof."""
    hello = hello_payload(RESUME, question=bytes(81))
    own = hello[59:91]
    said = struct.pack("<QB", session, wish) + stream + struct.pack("<Q", arrived)
    name = b"outboard resume"
    message = struct.pack("<Q", len(name)) + name + (challenge or challenge_of(client.greeting)) + own + said
    proof = bytearray(hmac.new(secret, message, hashlib.sha256).digest())
    if spoil:
        proof[0] ^= 1
    return hello_payload_with(hello, said + bytes(proof))


def hello_payload_with(hello, question):
    """The same hello with another question of the same length."""
    at = hello.index(struct.pack("<Q", 81) + bytes(81))
    return hello[:at + 8] + question + hello[at + 8 + 81:]


# Reads sizes and answers each with the code of its allocation.
TAKER = ("import ctypes as c, sys\n"
         "d, x, p = c.CDLL('libcuda.so.1'), c.c_void_p(), c.c_uint64()\n"
         "assert [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)] == [0, 0, 0]\n"
         "for line in sys.stdin: print(d.cuMemAlloc_v2(c.byref(p), c.c_size_t(int(line))), flush=True)\n")


def take(process, size):
    """What the TAKER answers."""
    process.stdin.write(f"{size}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


class Resumable:
    """A session of our own that can be resumed, as far as its welcome."""

    def __init__(self, test, url, **fields):
        self.client = Client(url)
        test.addCleanup(self.client.close)
        kind, payload = self.client.say_hello(SESSION, features=FEATURE, **fields)
        test.assertEqual(kind, WELCOME, payload)
        self.session = struct.unpack_from("<Q", payload, 10)[0]
        terms = self.client.read(TERMS)
        self.secret, self.linger = terms[:32], struct.unpack("<I", terms[32:])[0] / 1000

    def news(self):
        """Makes the worker regard the session as begun."""
        self.client.send(struct.pack("<QII", 0, 0, NEWS))


def ask(test, url, make):
    """The answer to a hello that `make` makes for this connection."""
    client = Client(url)
    test.addCleanup(client.close)
    client.send(frame(HELLO, make(client)))
    return client, *client.receive()


class Links(SystemTest):
    """Clients behind a link, whatever protects it."""
    encrypted = False

    def client(self, **more):
        """The variables of a client."""
        return more

    def link_to(self, daemon, *seed):
        link = FaultyLink(daemon.tcp, *seed, encrypted=self.encrypted)
        self.addCleanup(link.close)
        return link


class Cuts(Links):
    def setUp(self):
        super().setUp()
        self.random = random.Random(ARGUMENTS.seed)

    def cut(self, link, kind):
        if kind == "reset":
            link.reset_all()
        elif kind == "reset_one":
            return link.reset_one(own=self.random.random() < 0.3)
        elif kind == "close":
            link.close_all()
        elif kind == "move":
            link.move(f"127.0.0.{self.random.randrange(1, 250)}")
        elif kind == "restart":
            link.restart(self.random.uniform(0.05, 0.4))
        elif kind == "hole":
            link.black_hole(ARGUMENTS.hole)
        else:
            link.half_open(kind.removeprefix("half_open_"))
            # Nothing but silence says so on the other side.
            wait_until(lambda: link.alive() > 0, 15)
        return True

    def kinds(self, count):
        """Each kind at least once where there are enough, else as often as the table says."""
        some = list(KINDS) if count >= len(KINDS) else []
        weighted = self.random.choices(list(KINDS), list(KINDS.values()), k=count - len(some))
        mixed = some + weighted
        self.random.shuffle(mixed)
        return mixed

    @staticmethod
    def begun(daemon, process):
        """A start that breaks begins again a few times only, and one that nobody answers waits as long as one in a queue. The
        session of the program before may still be there."""
        return any(s["memory_bytes"] for s in daemon.sessions() if s["process"] == process.pid)

    def run_through_cuts(self, daemon, link, command, kinds, done, **environment):
        """Runs the program again and again until all cuts have happened to it."""
        runs = 0
        while kinds:
            process = start_program(command, link.url, **environment)
            runs += 1
            try:
                while kinds and process.poll() is None:
                    time.sleep(self.random.uniform(0.02, 0.25))
                    ready = process.poll() is None and link.alive() and self.begun(daemon, process)
                    if ready and self.cut(link, kinds[-1]):
                        done[kinds.pop()] += 1
                out, err = process.communicate(timeout=120)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            self.assertEqual((process.returncode, err), (0, ""), f"{out}\nafter {dict(done)}: {daemon.log()[-3000:]}")
            self.assertIn("PASS", out)
        return runs

    def test_a_program_notices_a_pause_and_nothing_else(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n" + RESUMED)
        link = self.link_to(daemon, ARGUMENTS.seed)
        done, runs, began = collections.Counter(), 0, time.monotonic()
        commands = [program("interrupted", 600, 4), program("interrupted", 3000, 0), program("two_way", 8, 60),
                    program("interrupted", 300, 16)]
        all_kinds = self.kinds(ARGUMENTS.cuts)
        share = max(1, (len(all_kinds) + len(commands) - 1) // len(commands))
        for at, command in enumerate(commands):
            kinds = all_kinds[at * share:(at + 1) * share]
            runs += self.run_through_cuts(daemon, link, command, kinds, done, **self.client(OUTBOARD_DATA_CONNECTIONS="2"))
        # A start that broke is waited for 20 s, and a program that ended while its link was silent for as long as one that is away.
        self.sessions_are_gone(daemon, 70)
        backs = sorted(link.backs)
        print(f"{sum(done.values())} cuts {dict(done)} in {runs} runs, {time.monotonic() - began:.0f} s; back after the link: "
              f"median {1e3 * statistics.median(backs):.1f} ms, 99 of 100 within {1e3 * backs[int(len(backs) * 0.99)]:.1f} ms, "
              f"at most {1e3 * backs[-1]:.1f} ms ({len(backs)} measured)")
        self.nothing_is_left(daemon)

    def test_a_start_whose_link_breaks_begins_again(self):
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        command = program("vector_add", 64)
        # Before the greeting, within it, behind it, within the welcome and the terms.
        for place in (0, 1, 60, 100, 120, 140, 160, 200):
            link.early_cuts = [place]
            done = run_program(command, link.url, **self.client())
            self.assertEqual((done.returncode, done.stderr, link.early_cuts), (0, "", []), place)
        link.early_cuts = [60] * 4
        done = run_program(command, link.url, **self.client())
        self.assertEqual((done.returncode, done.stderr, link.early_cuts), (0, "", []))
        link.early_cuts = [60] * 5
        done = run_program(command, link.url, **self.client())
        # The last one may already break while it is made.
        self.assertRegex(done.stderr, f"outboard: no (Outboard )?server at {link.url}: the (connection broke|host reset the connection)\n")
        self.assertEqual(link.early_cuts, [])
        self.sessions_are_gone(daemon, 20)
        self.nothing_is_left(daemon)

    def test_an_idle_program_comes_back(self):
        audit = pathlib.Path(self.folder, "audit.jsonl")
        daemon = self.serve("--audit-file", audit, config=RESUMED)
        link = self.link_to(daemon)
        client = self.start(program("interrupted", 100000, 0), link.url, **self.client())
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        os.kill(client.pid, signal.SIGSTOP)
        link.move("127.0.0.9")
        state = wait_until(lambda: daemon.sessions()[0]["state"] == "interrupted", 5)
        self.assertTrue(state, daemon.sessions())
        listed = daemon.sessions()[0]
        self.assertTrue(0 < listed["ends_in_seconds"] <= 60, listed)
        text = subprocess.run([OUTBOARD, "sessions", "--server", daemon.unix, *map(str, daemon.token)], capture_output=True, text=True,
                              env=clean_environment()).stdout
        self.assertRegex(text, r"interrupted, \d+ s left")
        os.kill(client.pid, signal.SIGCONT)
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "running", 5), daemon.sessions())
        self.assertIsNone(daemon.sessions()[0]["ends_in_seconds"])
        moved = [line for line in map(json.loads, audit.read_text().splitlines()) if line["event"] == "session-moved"]
        self.assertEqual([[re.sub(r":\d+$", "", line[key]) for key in ("from", "to")] for line in moved],
                         [["tcp:127.0.0.1", "tcp:127.0.0.9"]])
        self.assertEqual(moved[0]["session"], daemon.sessions()[0]["id"])


class Late(Links):
    """A client asks twice when the server does not answer soon. What belongs to the older question comes when the stream has
    gone on since."""

    def interrupted_twice(self, hold):
        """The link of a busy program breaks; `hold` stops one connection at which its client waits patiently, the next one
        serves, breaks too, and only then does the older one go on."""
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        process = self.start(program("interrupted", 400, 0), link.url, **self.client())
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        link.greets = False
        link.reset_all()

        def waiting():
            with link.lock:
                return [one for one in link.links if len(one.open) == 2 and one.born < time.monotonic() - 0.7]
        self.assertTrue(wait_until(waiting, 10), "no client is patient")
        older = waiting()[0]
        hold(older)
        link.greets = True
        self.assertTrue(wait_until(lambda: link.links[-1].from_client > 20000, 10), "the program does not go on")
        with link.lock:
            link.greets = False
            link.links[-1].close(link.links[-1].client, reset=True)
        time.sleep(0.1)
        self.assertIn(older.client, older.open)
        older.release()
        time.sleep(0.3)
        with link.lock:
            link.greets = True
            for one in link.links:
                one.release()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""), f"{out}\n{daemon.log()[-2000:]}")
        self.assertIn("PASS", out)
        self.nothing_is_left(daemon)

    def test_the_answer_comes_late(self):
        def behind_the_greeting(one):
            one.release(one_piece=True)
            self.assertTrue(wait_until(lambda: one.held and one.from_client > SAID_HELLO, 5), one.from_client)
            time.sleep(0.2)  # the server has answered
        self.interrupted_twice(behind_the_greeting)

    def test_the_question_comes_late(self):
        def behind_the_greeting(one):
            one.hold(one.client)
            self.assertTrue(wait_until(lambda: one.from_server > 0, 5))
        self.interrupted_twice(behind_the_greeting)


class Ends(Links):
    def client_behind_a_link(self, daemon, *flags):
        link = self.link_to(daemon)
        client = self.start(program("interrupted", 100000, 0), link.url, **self.client())
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        return link, client

    def test_a_session_whose_client_stays_away_ends(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 2\n" + CONFIG)
        link, client = self.client_behind_a_link(daemon)
        worker = daemon.sessions()[0]["worker"]
        threading.Thread(target=link.black_hole, args=(9,), daemon=True).start()
        out, err = client.communicate(timeout=20)
        self.assertNotEqual(client.returncode, 0, out)
        self.assertRegex(err, "interrupted for longer than 2 s .limits.linger_seconds")
        self.assertIn("restart the program", err)
        link.reset_all()  # the server learns of the loss only now: to TCP the relay was there all the time
        self.assertTrue(wait_until(lambda: not is_alive(worker), 10), "the worker is left")
        self.sessions_are_gone(daemon, 5)
        self.nothing_is_left(daemon)

    def test_nothing_is_left_after_linger_seconds(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 2\n" + CONFIG)
        link, client = self.client_behind_a_link(daemon)
        worker, before = daemon.sessions()[0]["worker"], time.monotonic()
        client.kill()
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "interrupted", 2), daemon.sessions())
        self.assertTrue(wait_until(lambda: not is_alive(worker), 10), "the worker is left")
        self.assertTrue(1.5 < time.monotonic() - before < 4, time.monotonic() - before)
        self.sessions_are_gone(daemon)
        self.assertIn("did not come back within 2 s", daemon.log())
        self.nothing_is_left(daemon)

    def test_without_lingering_all_is_as_before(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 0\n" + CONFIG)
        link, client = self.client_behind_a_link(daemon)
        link.reset_all()
        self.ends_by_loss(client, daemon)

    def test_a_lost_worker_is_no_lost_link(self):
        daemon = self.serve(config=RESUMED)
        link, client = self.client_behind_a_link(daemon)
        before = time.monotonic()
        os.kill(daemon.sessions()[0]["worker"], signal.SIGKILL)
        out, err = client.communicate(timeout=10)
        self.assertIn("the server closed the connection", err)
        self.assertLess(time.monotonic() - before, 3)
        self.sessions_are_gone(daemon)

    def test_a_program_that_ends_in_order_does_not_linger(self):
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        for _ in range(5):
            done = run_program(program("interrupted", 40, 1), link.url, **self.client())
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.sessions_are_gone(daemon, 1.0)

    def test_a_goodbye_arrives_though_its_link_breaks(self):
        """Else the session would wait for its client as for one that is away."""
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        client = self.start([sys.executable, "-c", TAKER], link.url, stdin=subprocess.PIPE, **self.client())
        self.assertEqual(take(client, 1 << 20), 0)
        with link.lock:
            for one in link.links:
                one.hold(one.client)
        time.sleep(0.1)  # for the relay to hold them
        client.stdin.close()
        time.sleep(0.3)  # it has said goodbye, and nothing of that has passed
        self.assertIsNone(client.poll())
        link.reset_all()
        self.assertEqual((client.wait(5), client.stderr.read()), (0, ""))
        self.sessions_are_gone(daemon, 1.0)
        self.nothing_is_left(daemon)

    def test_run_reports_its_programs_death(self):
        daemon = self.serve(config=RESUMED)
        # The search for leaks stumbles over the ended threads of a library that was loaded on demand (TLS).
        runner = subprocess.Popen([OUTBOARD, *run_command(program("interrupted", 100000, 0), "--server", daemon.tcp)],
                                  env=clean_environment(ASAN_OPTIONS="detect_leaks=0", **self.client()), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(runner.wait)
        self.assertTrue(wait_until(lambda: any(s["state"] == "running" for s in daemon.sessions()), 20))
        session = daemon.sessions()[0]
        os.kill(session["process"], signal.SIGKILL)
        before = time.monotonic()
        self.assertTrue(wait_until(lambda: not is_alive(session["worker"]), 5))
        self.assertLess(time.monotonic() - before, 1.0)
        out, err = runner.communicate(timeout=10)
        self.assertEqual(runner.returncode, 128 + signal.SIGKILL, out + err)
        self.sessions_are_gone(daemon)
        self.assertIn("its program has ended", daemon.log())

    def test_run_reports_many_deaths_at_once(self):
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        many = ["sh", "-c", 'for i in 1 2 3 4 5 6 7 8 9 10; do "$@" & done; wait', "sh", *program("interrupted", 100000, 0)]
        runner = subprocess.Popen([OUTBOARD, *run_command(many, "--server", link.url)], env={**clean_environment(), **self.client()},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(runner.wait)
        self.addCleanup(lambda: runner.poll() is None and os.killpg(runner.pid, signal.SIGKILL))
        self.assertTrue(wait_until(lambda: sum(bool(s["memory_bytes"]) for s in daemon.sessions()) == 10, 60), daemon.sessions())
        link.lateness = 0.25
        sessions, before = daemon.sessions(), time.monotonic()
        for session in sessions:
            os.kill(session["process"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not any(is_alive(s["worker"]) for s in sessions), 10))
        self.assertLess(time.monotonic() - before, 1.0)
        self.sessions_are_gone(daemon)
        self.assertEqual(daemon.log().count("its program has ended"), 10)

    def test_links_come_back_to_a_server_that_drains(self):
        daemon = self.serve(config=RESUMED)
        link = self.link_to(daemon)
        client = self.start(program("interrupted", 3000, 0), link.url, **self.client())
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        daemon.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: "waiting up to" in daemon.log(), 5))
        backs = len(link.backs)
        link.reset_all()
        self.assertTrue(wait_until(lambda: len(link.backs) > backs, 5), "the link does not come back")
        late = run_program(program("vector_add", 64), daemon.tcp, **self.client())
        self.assertIn("the server is shutting down", late.stderr)
        out, err = client.communicate(timeout=60)
        self.assertEqual((client.returncode, err), (0, ""), out)
        self.assertEqual(daemon.process.wait(10), 0)

    def test_an_absent_client_gives_way(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 60\nrunning = 1\n[pool]\nper_key = 0\n" + CONFIG)
        link, client = self.client_behind_a_link(daemon)
        client.kill()
        before = time.monotonic()
        done = run_program(program("vector_add", 1000), daemon.tcp, timeout=30, **self.client())
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertLess(time.monotonic() - before, 20)
        self.assertIn("another session needed its place", daemon.log())


class Memory(Links):
    OUT_OF_MEMORY = 2

    def test_an_absent_client_gives_way_to_an_allocation(self):
        most = 192 << 20
        daemon = self.serve(config=RESUMED + f"[identity.default]\ndevice_memory = {most}\n")
        absent, other = (self.start([sys.executable, "-c", TAKER], daemon.tcp, stdin=subprocess.PIPE, **self.client()) for _ in range(2))
        self.assertEqual(take(absent, most // 4 * 3), 0)
        self.assertEqual(take(other, most // 2), self.OUT_OF_MEMORY)
        absent.kill()
        self.assertTrue(wait_until(lambda: any(s["state"] == "interrupted" for s in daemon.sessions()), 5), daemon.sessions())
        # What nobody's memory would make possible ends nobody.
        self.assertEqual(take(other, most + 1), self.OUT_OF_MEMORY)
        self.assertEqual(len(daemon.sessions()), 2)
        self.assertEqual(take(other, most // 2), 0)
        self.assertEqual([s["process"] for s in daemon.sessions()], [other.pid])
        self.assertIn("another session needed its memory", daemon.log())


class Places(SystemTest):
    def test_a_session_gives_way_only_to_one_that_gets_its_place_by_that(self):
        tokens = pathlib.Path(self.folder, "tokens")
        ann, bob = (subprocess.run([OUTBOARD, "token", "create", name, "--tokens-file", tokens], capture_output=True, check=True)
                    .stdout.strip() for name in ("ann", "bob"))
        daemon = self.serve("--tokens-file", tokens, config=RESUMED + '[identity.ann]\ntokens = ["ann"]\nsessions = 1\nwaiting = 1\n'
                            '[identity.bob]\ntokens = ["bob"]\n')
        his = Resumable(self, daemon.tcp, token=bob)
        his.news()
        hers = Resumable(self, daemon.tcp, token=ann)
        hers.news()
        waits = Client(daemon.tcp)
        self.addCleanup(waits.close)
        waits.send(frame(HELLO, Token(ann).prove(hello_payload(SESSION), waits.greeting)[0]))
        self.assertTrue(wait_until(daemon.waiting, 5))
        his.client.close()

        def is_interrupted():
            return any(s["id"] == his.session and s["state"] == "interrupted" for s in daemon.sessions())
        self.assertTrue(wait_until(is_interrupted, 5), daemon.sessions())
        refused = Client(daemon.tcp)
        self.addCleanup(refused.close)
        self.assertEqual(refused.say_hello(SESSION, token=ann)[0], REFUSAL)
        time.sleep(1)
        self.assertTrue(is_interrupted(), daemon.log())
        # One of the same identity does help.
        hers.client.close()
        self.assertEqual(waits.receive()[0], WELCOME)
        self.assertTrue(is_interrupted(), daemon.log())


class Strangers(SystemTest):
    def refused(self, answer):
        client, kind, payload = answer
        self.assertEqual(kind, REFUSAL, payload)
        return client.refusal(payload)

    def resumed(self, answer):
        client, kind, payload = answer
        self.assertEqual(kind, WELCOME, client.refusal(payload) if kind == REFUSAL else payload)
        return client

    def test_only_the_secret_resumes(self):
        daemon = self.serve(config=RESUMED)
        own = Resumable(self, daemon.tcp)
        own.news()
        self.assertEqual(own.linger, 60)
        refused_before = daemon.doctor()["connections"]["refused"]
        nothing = ("question", "there is no such session to resume")
        wrong = bytes(32)
        for make in (lambda c: resume_hello(c, own.session, wrong), lambda c: resume_hello(c, own.session, own.secret, spoil=True),
                     lambda c: resume_hello(c, own.session + 1, own.secret),
                     lambda c: resume_hello(c, own.session, own.secret, challenge=bytes(32)),
                     lambda c: resume_hello(c, own.session, wrong, wish=2)):
            self.assertEqual(self.refused(ask(self, daemon.tcp, make)), nothing)
        # Over a local socket the same client is another identity.
        self.assertEqual(self.refused(ask(self, daemon.unix, lambda c: resume_hello(c, own.session, own.secret))), nothing)
        self.assertEqual(self.refused(ask(self, daemon.tcp, lambda c: hello_payload(RESUME, question="x")))[0], "malformed")
        self.assertEqual(daemon.doctor()["connections"]["refused"], refused_before + 7)
        self.assertEqual(daemon.sessions()[0]["state"], "running")
        # The client is kept: without it its connection would close.
        resumed = self.resumed(ask(self, daemon.tcp, lambda c: resume_hello(c, own.session, own.secret)))
        self.assertTrue(wait_until(lambda: daemon.sessions()[0]["state"] == "running", 1))
        resumed.close()

    def test_a_replayed_hello_resumes_nothing(self):
        daemon = self.serve(config=RESUMED)
        own = Resumable(self, daemon.tcp)
        own.news()
        seen = []

        def record(client):
            seen.append(resume_hello(client, own.session, own.secret))
            return seen[0]

        first = self.resumed(ask(self, daemon.tcp, record))
        self.assertEqual(self.refused(ask(self, daemon.tcp, lambda c: seen[0]))[0], "question")
        first.send(struct.pack("<QII", 0, 0, NEWS))
        time.sleep(0.3)
        self.assertEqual(daemon.sessions()[0]["state"], "running")

    def test_of_two_resumes_at_once_one_holds(self):
        daemon = self.serve(config=RESUMED)
        own = Resumable(self, daemon.tcp)
        own.news()
        clients = [Client(daemon.tcp) for _ in range(8)]
        for client in clients:
            self.addCleanup(client.close)
            client.send(frame(HELLO, resume_hello(client, own.session, own.secret)))
        kinds = [client.receive()[0] for client in clients]
        self.assertEqual(kinds, [WELCOME] * 8)

        def closed(client):
            client.socket.settimeout(0.05)
            try:
                while True:
                    if not client.socket.recv(4096):
                        return True
            except TimeoutError:
                return False
            except OSError:
                return True

        self.assertTrue(wait_until(lambda: sum(not closed(c) for c in clients) == 1, 5))
        self.assertEqual(len(daemon.sessions()), 1)

    def test_impossible_places_are_refused(self):
        daemon = self.serve(config=RESUMED)
        own = Resumable(self, daemon.tcp)
        own.news()
        answer = ask(self, daemon.tcp, lambda c: resume_hello(c, own.session, own.secret, arrived=10**9))
        self.assertEqual(self.refused(answer), ("question", "there is nothing to resume"))
        answer = ask(self, daemon.tcp, lambda c: resume_hello(c, own.session, own.secret, stream=bytes([5] * 32)))
        self.assertEqual(self.refused(answer)[0], "busy")
        self.resumed(ask(self, daemon.tcp, lambda c: resume_hello(c, own.session, own.secret)))

    def test_a_client_that_may_lack_the_secret_is_not_waited_for_long(self):
        daemon = self.serve(config="[limits]\nlinger_seconds = 600\n" + CONFIG)
        silent, known = Resumable(self, daemon.tcp), Resumable(self, daemon.tcp)
        known.news()
        time.sleep(0.5)
        silent.client.close()
        known.client.close()
        self.assertTrue(wait_until(lambda: [s["id"] for s in daemon.sessions()] == [known.session], 25), daemon.sessions())
        self.assertIn("had never said anything", daemon.log())

    def test_a_session_that_was_ended_by_its_secret_is_gone(self):
        daemon = self.serve(config=RESUMED)
        own = Resumable(self, daemon.tcp)
        own.news()
        self.resumed(ask(self, daemon.tcp, lambda c: resume_hello(c, own.session, own.secret, wish=2)))
        self.sessions_are_gone(daemon, 1.0)

    def test_malformed_records_end_their_session_alone(self):
        daemon = self.serve(config=RESUMED)
        for bad in (struct.pack("<QII", 10**9, 0, NEWS), struct.pack("<QII", 0, 7, NEWS), struct.pack("<QII", 0, 0, 1),
                    struct.pack("<QII", 0, 1 << 30, 1), struct.pack("<QII", 0, 0, 9)):
            own = Resumable(self, daemon.tcp)
            own.client.send(bad)
            self.sessions_are_gone(daemon, 3)
        done = run_program(program("vector_add", 1000), daemon.tcp)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_old_clients_are_offered_nothing_that_they_lack(self):
        daemon = self.serve(config=RESUMED)
        old = Client(daemon.tcp)
        self.addCleanup(old.close)
        kind, payload = old.say_hello(SESSION)
        self.assertEqual((kind, struct.unpack_from("<Q", payload, 2)[0]), (WELCOME, 0))
        old.close()
        self.sessions_are_gone(daemon, 1.5)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST], warnings="ignore")
