"""The daemon's front door: everything that is not a proper hello is refused with one line in the log, costs nothing
that stays, and harms nobody else."""
import os
import socket
import struct
import time
import unittest

from harness import (ADMIN, HELLO, HEADER, REFUSAL, SESSION, WELCOME, Client, DaemonTest, clean_environment, frame,
                     hello_payload, wait_until)


def refused_lines(daemon):
    return sum("refused" in line for line in daemon.log().splitlines())


class Handshake(DaemonTest):
    def test_every_bit_flip_of_a_hello_is_refused_or_harmless(self):
        # A sanitizer keeps freed memory for a while; here the memory is what is looked at.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        daemon = self.serve(config="[limits]\nhello_seconds = 1\n", environment=clean_environment(ASAN_OPTIONS=options))
        good = frame(HELLO, hello_payload(ADMIN, question="sessions", environment=[("CUDA_LAUNCH_BLOCKING", "1")]))
        honest = self.begin(daemon)
        self.attack(daemon, good)  # warm up what is allocated once
        memory, descriptors = daemon.memory(), daemon.descriptors()
        tried = self.attack(daemon, good)
        self.assertEqual(tried, len(good) * 8)
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= descriptors), "descriptors are left")
        self.assertLess(daemon.memory(), memory + (4 << 20))
        self.assertEqual(len(daemon.sessions()), 1)
        honest.close()

    def attack(self, daemon, good):
        waiting = []
        for bit in range(len(good) * 8):
            bad = bytearray(good)
            bad[bit // 8] ^= 1 << bit % 8
            client = Client(daemon.unix)
            client.send(bytes(bad))
            waiting.append(client)
            # Some flips make the hello longer than what was sent: those wait for their time to be over.
            if len(waiting) == 64:
                self.judge(waiting)
        self.judge(waiting)
        return len(good) * 8

    def judge(self, clients):
        for client in clients:
            kind, payload = client.receive()
            self.assertIn(kind, (WELCOME, REFUSAL, None))
            client.close()
        clients.clear()

    def test_each_refusal_has_one_line_and_names_its_reason(self):
        daemon = self.serve()
        cases = {
            "malformed": [frame(HELLO, b""), frame(HELLO, b"GET / HTTP/1.1\r\n\r\n"), frame(5, b"x"),
                          HEADER.pack(0xffffffff, HELLO, 0, 0, 0, 0, 0, 0),
                          HEADER.pack(8, 77, 0, 0, 0, 0, 0, 0) + b"12345678",
                          frame(HELLO, hello_payload(7)),
                          frame(HELLO, hello_payload(SESSION, environment=[("CUDA_CACHE_DISABLE", "1")] * 65)),
                          b"GET / HTTP/1.1\r\nHost: here\r\nAccept: all sorts of things\r\n\r\n"],
            "protocol": [frame(HELLO, hello_payload(ADMIN, protocol=1)), frame(HELLO, hello_payload(ADMIN, protocol=3)),
                         frame(HELLO, hello_payload(ADMIN, features=1 << 63))],
            "question": [frame(HELLO, hello_payload(ADMIN, question="secrets"))],
        }
        count = 0
        for url in (daemon.unix, daemon.tcp):
            for reason, messages in cases.items():
                for message in messages:
                    client = Client(url)
                    client.send(message)
                    kind, payload = client.receive()
                    self.assertEqual(kind, REFUSAL, message)
                    self.assertEqual(client.refusal(payload)[0], reason, message)
                    client.close()
                    count += 1
        self.assertTrue(wait_until(lambda: refused_lines(daemon) >= count))
        self.assertEqual(refused_lines(daemon), count)
        self.assertEqual(daemon.workers(), [])

    def test_an_old_client_is_told_to_install_the_same_version(self):
        client = Client(self.serve().tcp)
        kind, payload = client.say_hello(ADMIN, protocol=1)
        self.assertEqual(kind, REFUSAL)
        reason, message = client.refusal(payload)
        self.assertEqual(reason, "protocol")
        self.assertRegex(message, r"^protocol 1 of outboard test is not spoken by .*; install the same version on both sides$")

    def test_a_length_of_two_to_the_62_in_a_text_is_refused(self):
        daemon = self.serve()
        body = bytearray(hello_payload(SESSION))
        body[91:99] = struct.pack("<Q", 1 << 62)
        client = Client(daemon.tcp)
        client.send(frame(HELLO, bytes(body)))
        kind, payload = client.receive()
        self.assertEqual((kind, client.refusal(payload)[0]), (REFUSAL, "malformed"))

    def test_silence_and_slowness_end_after_the_time_for_the_hello(self):
        daemon = self.serve(config="[limits]\nhello_seconds = 1\n")
        silent, slow = Client(daemon.unix), Client(daemon.tcp)
        good = frame(HELLO, hello_payload(SESSION))
        began = time.monotonic()
        while time.monotonic() < began + 3:
            slow.send(good[:1])
            slow.socket.settimeout(0.1)
            try:
                if not slow.socket.recv(1):
                    break
            except (TimeoutError, socket.timeout):
                continue
            except ConnectionResetError:
                break
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(silent.receive()[0], None)
        self.assertEqual(daemon.workers(), [])
        self.assertIn("no hello within 1 s", daemon.log())

    def test_a_hello_cut_anywhere_costs_no_worker(self):
        daemon = self.serve()
        good = frame(HELLO, hello_payload(SESSION))
        for length in range(0, len(good), 7):
            client = Client(daemon.unix)
            client.send(good[:length])
            client.close()
        self.assertTrue(wait_until(lambda: "it left before its hello" in daemon.log()))
        self.assertEqual(daemon.sessions(), [])
        self.assertEqual(daemon.workers(), [])

    def test_half_open_connections_never_shut_out_an_honest_client(self):
        daemon = self.serve(config="[limits]\nunauthenticated = 8\n")
        idle = [Client(daemon.unix) for _ in range(40)]
        self.assertEqual(daemon.sessions(), [])
        self.assertIn("more than 6 connections without a hello from one source, and this was the oldest", daemon.log())
        for client in idle:
            client.close()

    def test_a_token_is_asked_for_and_checked_on_every_listener(self):
        daemon = self.serve("--token-file", self.token_file())
        for url in (daemon.unix, daemon.tcp):
            for token in (None, b"0123456789abcdefghiX", b"0123456789abcdefghij\n"):
                client = Client(url)
                kind, payload = client.say_hello(token=token)
                self.assertEqual((kind, client.refusal(payload)[0]), (REFUSAL, "token"))
            self.begin(daemon, url, token=b"0123456789abcdefghij")

    def test_a_proof_does_not_work_for_another_connection(self):
        daemon = self.serve("--token-file", self.token_file())
        first, second = Client(daemon.tcp), Client(daemon.tcp)
        self.assertNotEqual(first.greeting, second.greeting)
        second.greeting = first.greeting
        kind, payload = second.say_hello(token=b"0123456789abcdefghij")
        self.assertEqual((kind, second.refusal(payload)[0]), (REFUSAL, "token"))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
