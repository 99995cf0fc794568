"""Module images that the server keeps: over a slow line a program's second start sends hashes instead of code. Who uses
it and who does not, what the disk may do, and what a client gets that does not have what it asks for."""
import hashlib
import hmac
import os
import pathlib
import re
import struct
import subprocess
import unittest

from outboard_testing import BUILD, CONFIG, HEADER, SESSION, Client, SystemTest, program, run_program, wait_until

SIZE = 1024  # KiB of PTX text
LARGE = ["large_module", SIZE, 2]
SLOW = 0.05  # Gb/s
CALL, REPLY = 6, 7  # kinds of frames
LANE_UPLOADS, IMAGE_RECALL = 8, 16  # features
RECALL = 13  # a service


class Line:
    """An emulated line to the daemon."""

    def __init__(self, test, daemon, gigabits=SLOW):
        self.relay = subprocess.Popen([BUILD / "bench/emulated_link", "relay", daemon.tcp.removeprefix("tcp:"), "0",
                                       str(gigabits)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.close)
        self.url = self.relay.stdout.readline().strip()

    def close(self):
        if not self.relay.stdin.closed:
            self.relay.stdin.close()
            self.relay.wait(10)
            self.relay.stdout.close()


class ModuleCache(SystemTest):
    def run_over(self, url, command=LARGE, **environment):
        """Bytes that the program sent; it must be right and silent."""
        trace = pathlib.Path(self.folder, "trace")
        trace.unlink(missing_ok=True)
        done = run_program(program(*command), url, timeout=120, OUTBOARD_TRACE=str(trace), **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("PASS", done.stdout)
        return int(re.search(r"^sent (\d+) bytes", trace.read_text(), re.MULTILINE)[1])

    @property
    def folder_of_cache(self):
        return pathlib.Path(self.folder, "cache", "modules")

    def kept(self, number=0):
        """The files in the cache, once there are so many."""
        def files():
            return sorted(p for p in self.folder_of_cache.glob("*") if len(p.name) == 65)
        wait_until(lambda: len(files()) >= number, 5)
        return files()

    def test_a_second_start_sends_a_fraction(self):
        daemon = self.serve()
        line = Line(self, daemon)
        first = self.run_over(line.url)
        self.assertGreater(first, 2 * SIZE * 1024)
        self.assertEqual(len(self.kept(2)), 2)
        second = self.run_over(line.url)
        print(f"two modules of {SIZE} KiB: {first} bytes at first, {second} at second")
        self.assertLess(second, first * 0.1)
        # What nobody has loaded travels; what several threads load at once is found, too.
        self.assertGreater(self.run_over(line.url, ["large_module", SIZE + 100, 1]), SIZE * 1024)
        self.assertLess(self.run_over(line.url, ["large_module", SIZE, 2, 2]), first * 0.2)
        self.nothing_is_left(daemon)
        # It outlives the daemon.
        self.assertLess(self.run_over(Line(self, self.serve()).url), first * 0.1)

    def test_who_is_near_or_does_not_want_it_sends_everything(self):
        daemon = self.serve()
        line = Line(self, daemon)
        everything = self.run_over(line.url)
        self.kept(2)
        off = self.run_over(line.url, OUTBOARD_MODULE_CACHE="0")
        self.assertGreater(off, everything - 100_000)
        for url in (daemon.unix, "shm" + daemon.unix[4:]):
            self.assertGreater(self.run_over(url, OUTBOARD_RINGS="0" if url == daemon.unix else "1"), 2 * SIZE * 1024)
        fast = self.run_over(daemon.tcp)  # loopback: sending is faster than asking, or as good
        print(f"over loopback {fast} bytes")
        self.nothing_is_left(daemon)

    def test_a_server_may_keep_none(self):
        for config in ("module_cache = false\n" + CONFIG, "[cache]\nsize = 0\n" + CONFIG):
            daemon = self.serve(config=config)
            line = Line(self, daemon)
            for _ in range(2):
                self.assertGreater(self.run_over(line.url), 2 * SIZE * 1024)
            self.assertFalse(self.folder_of_cache.exists())
            self.nothing_is_left(daemon)

    def test_it_is_bounded(self):
        daemon = self.serve(config=f"[cache]\nsize = \"{SIZE + 512}KiB\"\n" + CONFIG)
        line = Line(self, daemon)
        self.run_over(line.url)
        self.sessions_are_gone(daemon)
        self.assertEqual(len(self.kept(1)), 1)
        self.nothing_is_left(daemon)

    def test_a_folder_that_others_may_write_is_not_used(self):
        self.folder_of_cache.mkdir(parents=True)
        self.folder_of_cache.chmod(0o777)
        daemon = self.serve()
        self.assertIn("no module cache", daemon.log())
        self.assertIn("may be written by others", daemon.log())
        line = Line(self, daemon)
        for _ in range(2):
            self.assertGreater(self.run_over(line.url), 2 * SIZE * 1024)
        self.nothing_is_left(daemon)

    def test_what_is_damaged_is_sent_again(self):
        daemon = self.serve()
        line = Line(self, daemon)
        first = self.run_over(line.url)
        for damage in (lambda p: p.write_bytes(p.read_bytes()[:-1]), lambda p: p.write_bytes(b""),
                       lambda p: p.write_bytes(bytes([p.read_bytes()[0] ^ 1]) + p.read_bytes()[1:]),
                       lambda p: p.write_bytes(os.urandom(1000)), lambda p: p.unlink()):
            files = self.kept(2)
            self.assertEqual(len(files), 2)
            for path in files:
                damage(path)
            self.assertGreater(self.run_over(line.url), first * 0.9)
        self.kept(2)
        self.assertIn("is damaged; it is thrown away", daemon.log())
        self.assertLess(self.run_over(line.url), first * 0.1)
        self.nothing_is_left(daemon)

    # What strangers get.

    def session(self, url):
        """A client that speaks the protocol itself, and its greeting's challenge."""
        client = Client(url)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(SESSION, features=LANE_UPLOADS | IMAGE_RECALL)
        self.assertEqual(struct.unpack_from("<HQ", payload)[1], LANE_UPLOADS | IMAGE_RECALL, (kind, payload))
        return client

    def ask(self, client, body, ticket):
        client.socket.sendall(HEADER.pack(len(body), CALL, 0, RECALL, 1, ticket, 0, 0) + body)
        while True:
            kind, payload = client.receive()
            if kind == REPLY:
                return struct.unpack("<i?", payload)

    def image_of(self, path):
        data = path.read_bytes()
        key = hashlib.sha256(b"Outboard module image 1\n" + data).digest()
        return data, hmac.new(key, b"name", hashlib.sha256).digest(), key

    def test_a_hash_without_the_image_gets_nothing(self):
        daemon = self.serve()
        self.run_over(Line(self, daemon).url)
        data, name, key = self.image_of(self.kept(2)[0])
        client = self.session(daemon.tcp)

        def proof(with_key, challenge=None):
            return hmac.new(with_key, b"have " + (challenge or client.challenge), hashlib.sha256).digest()

        def body(proof, size=len(data), name=name):
            return name + proof + struct.pack("<Q", size)

        wrong = [body(bytes(32)), body(name), body(proof(name)), body(proof(hashlib.sha256(data).digest())),
                 body(proof(key, bytes(32))),  # another session's answer
                 body(proof(key), len(data) - 1), body(proof(key), len(data) + 1), body(proof(key), 1 << 63),
                 body(proof(key), (1 << 64) - 1), body(proof(key), 0), body(proof(key), name=bytes(32))]
        for ticket, attempt in enumerate(wrong, 1):
            self.assertEqual(self.ask(client, attempt, ticket), (0, False), attempt)
        self.assertIn("names a module image that it does not have", daemon.log())
        self.assertEqual(self.ask(client, body(proof(key)), 100), (0, True))
        # Who proves it again and again holds no more than one.
        for ticket in range(101, 140):
            self.assertEqual(self.ask(client, body(proof(key)), ticket), (0, True))
        client.close()
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_another_identity_meets_nothing(self):
        """The same image, proved: but kept for those who know another token, or none."""
        def run_with(*tokens):
            flags, environment = ["--token-file", tokens[0]] if tokens else [], {}
            if tokens:
                environment["OUTBOARD_TOKEN_FILE"] = str(tokens[0])
            daemon = self.serve(*flags)
            sent = self.run_over(Line(self, daemon).url, **environment)
            self.nothing_is_left(daemon)
            return sent

        one, other = self.token_file(), self.token_file("jihgfedcba9876543210", name="other")
        for number, tokens in enumerate(([], [one], [other]), 1):
            self.assertGreater(run_with(*tokens), 2 * SIZE * 1024)
            self.assertEqual(len(self.kept(2 * number)), 2 * number)
        for tokens in ([], [one], [other]):
            self.assertLess(run_with(*tokens), SIZE * 1024)

    def test_malformed_questions_end_the_session(self):
        daemon = self.serve()
        for body in (b"", bytes(71), bytes(73)):
            client = self.session(daemon.tcp)
            client.socket.sendall(HEADER.pack(len(body), CALL, 0, RECALL, 1, 1, 0, 0) + body)
            self.assertEqual(client.receive(), (None, b""))
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
