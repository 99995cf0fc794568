"""A hostile client against a live back-end, while four honest ones compute: a recorded session with every single bit
flipped, cut, put out of order, with lies about sizes; garbage; connections that never say anything.
usage: hostile_test.py [SECONDS for bit flips; 0: all of them]"""
import collections
import random
import re
import struct
import sys
import threading
import time
import unittest

from outboard_testing import (HEADER, HELLO, SANITIZED, SESSION, Client, Resources, SystemTest, argument, frame, hello_payload,
                              program, run_program, start_program, wait_until)
from recording import connect, frames_of, play, record

SECONDS = argument(10, float)
SEED = 5
ATTACKERS = 4
# Each request kind's numbers begin at a multiple of 1000 (chapters), so these reach into all of them.
OPCODES = [chapter * 1000 + number for chapter in range(0, 40) for number in range(0, 70, 7)]
KNOWN_LINES = re.compile(r"(serves \d+ device|listening on |session \d+ began: |session \d+ ended after |refused |workers are confined: |"
                         r"workers have no control groups: |on this machine: outboard run |"
                         r"\d+ more lines? about .* left out$)")
LEFT_OUT = re.compile(r" (\d+) more lines? about .* left out$")
# A kernel that faults, an image that does not load, an address window that is not to be had: what a worker has to say
# of any client, hostile or not.
FAULT = re.compile(r" (worker \d+): (info: cpu device: |warning: the device does not give the address window )")
# How a worker may end when its client is gone: by itself, or by the daemon's hand.
CRASH = re.compile(r"killed by signal (?!9 |15 )|the worker ended: |exit status [1-9]")


class Hostile(SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)

    def honest_while(self, daemon, attack):
        """Four honest programs, again and again, until the attack is over; all of them right."""
        over, wrong, right = threading.Event(), [], []

        def compute(server, command):
            while True:
                process = start_program(command, server)
                out, err = process.communicate()
                (right if process.returncode == 0 and not err and "PASS" in out else wrong).append((out, err))
                if over.is_set():
                    return

        commands = [program("vector_add", 30000), program("matmul", 96, 4), program("streams"), program("sort_networks")]
        threads = [threading.Thread(target=compute, args=(url, command))
                   for url, command in zip([daemon.unix, daemon.tcp] * 2, commands)]
        for thread in threads:
            thread.start()
        try:
            return attack()
        finally:
            over.set()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.honest = len(right)

    def send_all(self, daemon, messages, seconds=0):
        """Plays them from several threads; the number played. `messages` are functions, so that none waits in memory."""
        todo, done, hung, lock = iter(messages), [0], [], threading.Lock()
        until = time.monotonic() + seconds if seconds else float("inf")

        def attack(url):
            while time.monotonic() < until:
                with lock:
                    message = next(todo, None)
                    if message is None:
                        return
                    done[0] += 1
                if not play(url, message()):
                    hung.append(message)

        threads = [threading.Thread(target=attack, args=(daemon.tcp if i % 2 else daemon.unix,)) for i in range(ATTACKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(hung), 0, "the server left connections open that had ended")
        return done[0]

    def under_attack(self, what, messages, seconds=0):
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        started = len(self.told(daemon))
        recorded = record(self.folder, daemon.unix, program("vector_add", 64))
        messages = messages(recorded)
        # What is allocated once: by the same attack's beginning.
        first = [next(messages) for _ in range(60)]
        self.send_all(daemon, first)
        self.assertTrue(wait_until(lambda: not daemon.workers(), 10))
        before, counts = Resources(daemon), daemon.doctor()
        played = self.honest_while(daemon, lambda: self.send_all(daemon, messages, seconds))
        self.assertTrue(wait_until(lambda: not daemon.workers(), 10), "a hostile session's worker is left")
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= before.descriptors, 10), "descriptors are left")
        after = Resources(daemon)
        print(f"{played} {what} (and {self.honest} honest programs, all right): before {before}, after {after}")
        if not SANITIZED:  # ASan keeps what was freed for a while
            self.assertLess(after.memory, before.memory + (4 << 20))
        self.judge_log(daemon, started, counts, played)
        self.nothing_is_left(daemon)

    @staticmethod
    def told(daemon):
        return [line for line in daemon.log().splitlines() if not FAULT.search(line)]

    def judge_log(self, daemon, started, counts, played):
        """In the daemon's whole life there was one line for each that was refused, or a place in the count of those left out,
        and one for the begin and one for the end of each that became a session."""
        faults = collections.Counter(found[1] for found in FAULT.finditer(daemon.log()))
        self.assertLessEqual(max(faults.values(), default=0), 3, "a session may not fill the log")
        log = self.told(daemon)
        self.assertEqual([line for line in log if not KNOWN_LINES.search(line)], [])
        self.assertEqual([line for line in log if CRASH.search(line)], [], "a worker crashed")
        now = daemon.doctor()
        refused = now["connections"]["refused"] - counts["connections"]["refused"]
        sessions = now["sessions"]["total"] - counts["sessions"]["total"] - self.honest
        self.assertLessEqual(refused + sessions, played)
        # In a slow (sanitized) build a worker may be too slow to leave by itself; then a line says that it was ended.
        due, most = now["connections"]["refused"] + 2 * now["sessions"]["total"], 5 if SANITIZED else 0
        self.assertTrue(wait_until(lambda: abs(self.lines_since(daemon, started) - due) <= most),
                        f"{self.lines_since(daemon, started)} lines, {due} are due")

    def lines_since(self, daemon, before):
        """Those that were left out counted, too; the log says how many within a second."""
        found = [LEFT_OUT.search(line) for line in self.told(daemon)[before:]]
        return sum(int(count[1]) if count else 1 for count in found)

    def flips(self, recorded):
        frames = frames_of(recorded)
        first = range(0, frames[0][1] * 8)
        headers = [bit for start, _ in frames[1:] for bit in range(start * 8, (start + HEADER.size) * 8)]
        payloads = [bit for start, end in frames[1:] for bit in range((start + HEADER.size) * 8, end * 8)]
        bits = [*first, *headers, *payloads]
        self.random.shuffle(bits)
        print(f"a session of {len(recorded)} bytes in {len(frames)} frames: {len(bits)} bits, of which "
              f"{len(first)} of the hello and {len(headers)} of headers")
        for bit in bits:
            def flipped(bit=bit):
                bad = bytearray(recorded)
                bad[bit // 8] ^= 1 << bit % 8
                return bytes(bad)
            yield flipped

    def test_every_single_bit(self):
        self.under_attack("bit flips", self.flips, SECONDS)

    def distortions(self, recorded):
        frames = [recorded[start:end] for start, end in frames_of(recorded)]
        made = []
        # Cut anywhere.
        made += [recorded[:n] for n in range(0, len(recorded), 17)]
        # Out of order, twice, missing.
        for i in range(1, len(frames)):
            made.append(b"".join(frames[:i] + frames[i + 1:]))
            made.append(b"".join(frames[:i] + [frames[i]] * 3 + frames[i + 1:]))
            for j in range(i + 1, len(frames)):
                swapped = list(frames)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                made.append(b"".join(swapped))
        made.append(b"".join(frames[1:]))
        made.append(frames[0] * 2 + b"".join(frames[1:]))
        # Lies in each header: size, kind, flags, opcode, lane, ticket, context.
        values = {4: [0, 1, 1 << 20, (16 << 20) + (64 << 10), (16 << 20) + (64 << 10) + 1, 0x7fffffff, 0xffffffff],
                  2: [0, 1, 4, 8, 0xffff], 8: [0, 1, 1 << 62, (1 << 64) - 1]}
        fields = [(0, 4), (4, 2), (6, 2), (8, 4), (12, 4), (16, 8), (32, 8)]
        for i, original in enumerate(frames):
            for at, size in fields:
                for value in values[size]:
                    bad = bytearray(original)
                    bad[at:at + size] = value.to_bytes(size, "little")
                    made.append(b"".join(frames[:i]) + bytes(bad) + b"".join(frames[i + 1:]))
        # Garbage before, instead of and after the hello; requests of every kind with random payloads.
        for _ in range(100):
            made.append(self.random.randbytes(self.random.randrange(1, 3000)))
            made.append(frames[0] + self.random.randbytes(self.random.randrange(1, 3000)))
        for opcode in OPCODES:
            payload = self.random.randbytes(self.random.randrange(0, 120))
            head = HEADER.pack(len(payload), self.random.choice((5, 6)), 0, opcode, 1, 3, 0, 0)
            made.append(frames[0] + frames[1] + head + payload)
        self.random.shuffle(made)
        for bad in made:
            yield lambda bad=bad: bad

    def test_truncation_disorder_and_lies(self):
        self.under_attack("distorted sessions", self.distortions, SECONDS)

    def test_a_program_cannot_fill_the_log(self):
        daemon = self.serve()
        # Each kernel is compiled at its first use, and each has something to be logged.
        script = ("import ctypes as c; d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); m = c.c_void_p(); f = c.c_void_p();"
                  "image = b'.version 8.0\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { mov.u32 %r1, 5; ret; }\\n';"
                  "d.cuInit(0); d.cuDevicePrimaryCtxRetain(c.byref(x), 0); d.cuCtxSetCurrent(x);"
                  "[(d.cuLibraryLoadData(c.byref(m), image, None, None, 0, None, None, 0), d.cuLibraryGetKernel(c.byref(f), m, b'k'),"
                  "d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, None, None), d.cuCtxSynchronize()) for _ in range(500)];"
                  "print('tried')")
        done = run_program([sys.executable, "-c", script], daemon.unix)
        self.assertEqual(done.stdout.strip(), "tried")
        told = done.stderr.splitlines()  # its own user's screen: neither empty nor full
        self.assertEqual([line for line in told if not line.startswith("outboard: ")], [])
        self.assertEqual((len(told), told[-1]), (17, "outboard: more failures of this program are left out here"))
        self.sessions_are_gone(daemon)
        lines = [line for line in daemon.log().splitlines() if FAULT.search(line)]
        self.assertGreater(len(lines), 0)
        self.assertLessEqual(len(lines), 33)
        self.nothing_is_left(daemon)

    def test_silence_costs_no_worker_and_ends_in_time(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        hello = frame(HELLO, hello_payload(SESSION))
        began = time.monotonic()
        silent = [connect(url) for url in (daemon.unix, daemon.tcp) for _ in range(20)]
        slow = [connect(url) for url in (daemon.unix, daemon.tcp) for _ in range(5)]
        position, ended = 0, {}

        def look(links):
            for link in links:
                if link in ended:
                    continue
                link.setblocking(False)
                try:
                    while data := link.recv(4096):
                        assert data
                    ended[link] = time.monotonic() - began
                except BlockingIOError:
                    continue
                except OSError:
                    ended[link] = time.monotonic() - began

        process = start_program(program("matmul", 96), daemon.unix)
        while len(ended) < len(silent + slow) and time.monotonic() < began + 20:
            for link in slow:
                try:
                    if link not in ended:
                        link.send(hello[position:position + 1])
                except OSError:
                    pass
            position += 1
            if process is not None and process.poll() is not None:
                self.passed(process)
                process = None
                self.assertTrue(wait_until(lambda: not daemon.workers(), 2), "the honest program's worker is left")
            elif process is None:
                self.assertEqual(daemon.workers(), [])
            look(silent + slow)
            time.sleep(0.1)
        self.assertEqual(len(ended), len(silent + slow), "connections without a hello stay")
        self.assertGreater(min(ended.values()), 4.0)
        self.assertLess(max(ended.values()), 8.0)
        log = [line for line in daemon.log().splitlines() if "no hello within 5 s" in line]
        self.assertEqual(len(log), len(ended))
        for link in silent + slow:
            link.close()
        self.nothing_is_left(daemon)

    def test_a_session_that_falls_silent_harms_nobody(self):
        daemon = self.serve()
        idle = [self.begin(daemon, url) for url in (daemon.unix, daemon.tcp)]
        # In the middle of a header, and of a payload.
        idle[0].send(HEADER.pack(16, 6, 0, 8003, 1, 1, 0, 0)[:20])
        idle[1].send(HEADER.pack(1 << 20, 6, 0, 8003, 1, 1, 0, 0) + b"x" * 100)
        self.passed(self.start(program("matmul", 96), daemon.unix))
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 2))
        for client in idle:
            client.close()
        self.sessions_are_gone(daemon, 2)
        self.nothing_is_left(daemon)

    @unittest.skipIf(SECONDS, "takes long")
    def test_more_lanes_than_any_program_has(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n")

        def attack():
            client = self.begin(daemon)
            client.socket.settimeout(300)
            # A lane is made by its first request; the answers of these are never read.
            for first in range(1, 20000, 500):
                client.send(b"".join(HEADER.pack(0, 5, 0, 0xfffffff0, lane, lane, 0, 0)
                                     for lane in range(first, first + 500)))
            # One more than it allows: the back-end ends the session by itself.
            self.assertTrue(wait_until(lambda: "session 1 ended" in daemon.log(), 60), "the session goes on")
            self.assertEqual(client.receive()[0], None)
        self.honest_while(daemon, attack)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
