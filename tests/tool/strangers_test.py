"""Strangers against the daemon's front door: floods of connections that say nothing, refusals without number, questions
whose answers nobody reads. Others are served meanwhile, and the log stays short. Sources are addresses of the loopback
network; a client at the end of a long line is one that waits between greeting and hello.
usage: strangers_test.py [whole]: the flood with its full size, 5 s against the default limits"""
import collections
import multiprocessing
import re
import socket
import sys
import threading
import time
import unittest

from harness import ADMIN, HELLO, REFUSAL, WELCOME, Client, DaemonTest, frame, hello_payload, wait_until

WHOLE = len(sys.argv) > 1 and sys.argv[1] == "whole"
if WHOLE:
    sys.argv.pop(1)
ROUND_TRIP = 0.1
SECONDS, CLIENTS, PLACES = (5, 33, 256) if WHOLE else (0.6, 8, 32)
LIMITS = f"[limits]\nunauthenticated = {PLACES}\n"
MOST_LINES = 100
LEFT_OUT = re.compile(r" (\d+) more lines? about .* left out$")


def place(url):
    host, _, port = url[len("tcp:"):].rpartition(":")
    return host, int(port)


def client_from(source, url):
    """As the harness has it, from an address of the test's choice."""
    client = Client.__new__(Client)
    client.socket, client.greeting = socket.create_connection(place(url), timeout=20, source_address=(source, 0)), None
    if client.receive()[0] is None:
        client.close()
        raise ConnectionResetError("dropped before the greeting")
    return client


def flood(urls, seconds, count):
    """Opens connections from 127.0.0.1, says nothing, and keeps the last 600."""
    held, began = collections.deque(), time.monotonic()
    while time.monotonic() < began + seconds:
        link = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        link.connect_ex(place(urls[count.value % len(urls)]))
        count.value += 1
        held.append(link)
        if len(held) > 600:
            held.popleft().close()


class Strangers(DaemonTest):
    def far_clients(self, url, source):
        """Starts clients evenly over the flood's time; how many of them got their answer."""
        got_in = []

        def one():
            try:
                client = client_from(source, url)
                time.sleep(ROUND_TRIP)
                if client.say_hello(ADMIN, question="devices")[0] == WELCOME:
                    got_in.append(True)
                client.close()
            except OSError:
                pass

        threads = [threading.Thread(target=one) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
            time.sleep(0.8 * SECONDS / CLIENTS)
        for thread in threads:
            thread.join()
        return len(got_in)

    def adds_up(self, daemon):
        """Each connection that was refused has a line, or is in the count of those left out."""
        def counted():
            lines = daemon.log().splitlines()
            left_out = sum(int(found[1]) for found in map(LEFT_OUT.search, lines) if found)
            return left_out + sum(" refused " in line for line in lines) == daemon.doctor()["connections"]["refused"]
        self.assertTrue(wait_until(counted, 8), daemon.log()[-2000:])

    def test_a_flood_from_one_source_keeps_nobody_of_another_out(self):
        # One address has some 28,000 ports for each port that it connects to.
        daemon = self.serve(config=LIMITS, listen=[f"unix:{self.folder}/socket", *["tcp:127.0.0.1:0"] * 3])
        count = multiprocessing.Value("l", 0, lock=False)
        attacker = multiprocessing.Process(target=flood, args=(daemon.urls[1:], SECONDS, count))
        attacker.start()
        try:
            self.assertTrue(wait_until(lambda: count.value > 2 * PLACES))
            got_in = self.far_clients(daemon.tcp, "127.0.0.2")
        finally:
            attacker.join()
        self.adds_up(daemon)
        lines = len(daemon.log().splitlines())
        print(f"{count.value} connections in {SECONDS} s from one source: {got_in} of {CLIENTS} clients of another source got in, "
              f"{lines} lines in the log")
        self.assertGreater(count.value * ROUND_TRIP / SECONDS, PLACES, "the machine is too slow for this to show anything")
        self.assertEqual(got_in, CLIENTS)
        self.assertLessEqual(lines, MOST_LINES)
        self.assertLessEqual(daemon.doctor()["connections"]["waiting"], PLACES)

    def test_refusals_without_number_have_a_number_of_lines(self):
        daemon = self.serve()
        for number in range(400):
            client = Client(daemon.unix, greet=False)
            client.send(frame(HELLO, b"no hello") if number % 2 else b"")
            client.close()
        self.adds_up(daemon)
        self.assertLessEqual(len(daemon.log().splitlines()), MOST_LINES)


class Questions(DaemonTest):
    """Those of the command: small to ask, and answered by the daemon's one thread."""
    NAMES = ("CUDA_MODULE_LOADING", "CUDA_CACHE_MAXSIZE", "CUDA_DEVICE_ORDER", "CUDA_FORCE_JIT")
    CONFIG = "[pool]\nper_key = 0\n"

    def test_an_environment_above_its_limit_is_refused_by_name(self):
        daemon = self.serve(config=self.CONFIG)
        # Some 60 KiB, which is below the limit of a hello.
        client = Client(daemon.unix)
        kind, payload = client.say_hello(environment=[(name, "\x01" * 3800) for name in self.NAMES * 4])
        self.assertEqual(kind, REFUSAL)
        reason, why = client.refusal(payload)
        self.assertEqual(reason, "malformed")
        self.assertRegex(why, r"^the hello's variables take \d{5} bytes, the limit is 16384; shorten them, CUDA_\w+ above all$")
        self.assertEqual(daemon.workers(), [])

    def test_askers_that_do_not_read_cost_others_no_time_and_the_daemon_little_memory(self):
        daemon = self.serve(config=self.CONFIG)
        # Control characters, of which JSON would make six bytes each.
        environment = [(name, "\x01" * 4000) for name in self.NAMES]
        sessions = [self.begin(daemon, environment=environment, program="\x02" * 4000) for _ in range(8)]
        kind, answer = Client(daemon.unix).say_hello(ADMIN, question="sessions")
        self.assertEqual(kind, WELCOME)
        self.assertEqual(daemon.sessions()[0]["environment"]["CUDA_FORCE_JIT"], "?" * 256 + "...")
        memory, askers = daemon.memory(), []
        for number in range(60):
            askers.append(Client(daemon.unix if number % 2 else daemon.tcp))
            askers[-1].send(frame(HELLO, hello_payload(ADMIN, question=("sessions", "doctor")[number % 3 == 0])))
        began = time.monotonic()
        self.assertEqual(Client(daemon.unix).say_hello(ADMIN, question="devices")[0], WELCOME)
        honest, grown = time.monotonic() - began, daemon.memory() - memory
        print(f"8 sessions: the list has {len(answer)} bytes; beside 60 askers that do not read a question took "
              f"{1e3 * honest:.1f} ms, and the daemon grew by {grown / 1e6:.1f} MB")
        self.assertLess(len(answer), 32 << 10)
        self.assertLess(honest, 1)
        self.assertLess(grown, 16 << 20)
        for each in [*askers, *sessions]:
            each.close()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
