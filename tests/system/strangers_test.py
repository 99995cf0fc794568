"""Strangers, and clients that want only to harm, against the daemon itself: floods of connections, of refusals and of
resets, sessions with large environments, askers that do not read. Meanwhile others are served as before, and the log
stays short. Sources are addresses of the loopback network, and a client at the end of a long link is one that waits
between greeting and hello."""
import collections
import multiprocessing
import os
import re
import socket
import struct
import threading
import time
import unittest

from outboard_testing import (ADMIN, HEADER, HELLO, REFUSAL, SANITIZED, SESSION, WELCOME, Client, SystemTest, frame,
                              hello_payload, wait_until)

ROUND_TRIP = 0.1
FLOOD_SECONDS = 5
MOST_LINES = 100
# The daemon has a processor for itself, and each of these has one.
FLOODS = min(3, max(1, len(os.sched_getaffinity(0)) - 1))
LEFT_OUT = re.compile(r" (\d+) more lines? about .* (?:is|are) left out$")
NO_POOL = "[pool]\nper_key = 0\n"
# The daemon keeps 256 unfinished connections, so a faster flood fills them within one round trip.
FILLS = 256 / ROUND_TRIP
RESET = struct.pack("ii", 1, 0)


def place(url):
    host, _, port = url[len("tcp:"):].rpartition(":")
    return host, int(port)


def connect_from(source, url, timeout=20):
    return socket.create_connection(place(url), timeout=timeout, source_address=(source, 0))


def client_from(source, url, greet=True):
    """A client as the harness has it, from an address of the test's choice."""
    client = Client.__new__(Client)
    client.socket, client.greeting, client.seal = connect_from(source, url), None, None
    if greet and client.receive()[0] is None:
        client.close()
        raise ConnectionResetError("dropped before the greeting")
    return client


def flood(urls, seconds, rate):
    """Opens connections from 127.0.0.1, says nothing, and keeps the last 600. rate: at most so many a second; 0: no limit."""
    held, count, began = collections.deque(), 0, time.monotonic()
    places = [place(url) for url in urls]
    while time.monotonic() < began + seconds:
        if rate and count >= rate * (time.monotonic() - began):
            time.sleep(0.001)
            continue
        link = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        link.connect_ex(places[count % len(places)])
        count += 1
        held.append(link)
        if len(held) > 600:
            held.popleft().close()


class Strangers(SystemTest):
    def while_flooded(self, daemon, honest, processes=FLOODS, seconds=FLOOD_SECONDS, rate=0):
        """Runs honest() during a flood; returns what it returns, and the flood's connections a second as the daemon counts them."""
        before = daemon.doctor()["connections"]["refused"]
        floods = [multiprocessing.Process(target=flood, args=(daemon.urls[1:], seconds, rate / processes)) for _ in range(processes)]
        for each in floods:
            each.start()
        time.sleep(0.3)
        try:
            result = honest()
        finally:
            for each in floods:
                each.join()
        return result, (daemon.doctor()["connections"]["refused"] - before) / seconds

    @staticmethod
    def far_clients(url, source, count, seconds, round_trip=ROUND_TRIP):
        """Starts clients evenly over some seconds; returns how many of them got their answer."""
        got_in = []

        def one():
            try:
                client = client_from(source, url)
                time.sleep(round_trip)
                if client.say_hello(ADMIN, question="devices")[0] == WELCOME:
                    got_in.append(True)
                client.close()
            except OSError:
                pass

        threads = []
        for _ in range(count):
            threads.append(threading.Thread(target=one))
            threads[-1].start()
            time.sleep(seconds / count)
        for thread in threads:
            thread.join()
        return len(got_in)

    def lines_and_left_out(self, daemon, since=0):
        lines = daemon.log().splitlines()[since:]
        counts = [LEFT_OUT.search(line) for line in lines]
        return sum(count is None for count in counts), sum(int(count[1]) for count in counts if count), len(lines)

    def log_adds_up(self, daemon, since, refused_before):
        """Each connection that was refused or dropped has a line, or is in the count of what was left out."""
        def adds_up():
            logged, left_out, _ = self.lines_and_left_out(daemon, since)
            return logged + left_out == daemon.doctor()["connections"]["refused"] - refused_before
        self.assertTrue(wait_until(adds_up, 8), self.lines_and_left_out(daemon, since))

    def test_a_flood_from_one_source_keeps_nobody_of_another_out(self):
        # One address has some 28,000 ports for each port that it connects to.
        daemon = self.serve(listen=[f"unix:{self.folder}/socket", *["tcp:127.0.0.1:0"] * 3])
        before, refused = len(daemon.log().splitlines()), daemon.doctor()["connections"]["refused"]
        got_in, rate = self.while_flooded(daemon, lambda: self.far_clients(daemon.tcp, "127.0.0.2", 33, FLOOD_SECONDS - 1))
        self.log_adds_up(daemon, before, refused)
        lines = self.lines_and_left_out(daemon, before)[2]
        print(f"{rate:.0f} connections a second from one source: {got_in} of 33 clients of another source got in, {lines} lines in the log")
        if not SANITIZED:
            self.assertGreater(rate, FILLS, "the machine is too slow for this test to show anything")
        self.assertEqual(got_in, 33)
        self.assertLessEqual(lines, MOST_LINES)
        self.assertLessEqual(daemon.doctor()["connections"]["waiting"], 256)
        self.nothing_is_left(daemon)

    def test_a_slow_flood_keeps_nobody_of_its_own_source_out(self):
        daemon = self.serve()
        got_in, rate = self.while_flooded(daemon, lambda: self.far_clients(daemon.tcp, "127.0.0.1", 15, 2),
                                          processes=1, seconds=3, rate=500)
        print(f"{rate:.0f} connections a second: {got_in} of 15 clients of the same source got in")
        self.assertEqual(got_in, 15)
        self.nothing_is_left(daemon)

    def test_many_sources_with_a_few_connections_each_keep_nobody_out(self):
        daemon = self.serve()
        before = len(daemon.log().splitlines())
        held = [connect_from(f"127.0.1.{source}", daemon.tcp) for _ in range(4) for source in range(1, 151)]
        self.assertEqual(self.far_clients(daemon.tcp, "127.0.0.2", 10, 1), 10)
        self.assertLessEqual(daemon.doctor()["connections"]["waiting"], 256)
        for link in held:
            link.close()
        time.sleep(1.2)
        self.assertLessEqual(len(daemon.log().splitlines()) - before, 256 + 3 * (32 + 5))
        self.nothing_is_left(daemon)

    def test_connections_that_are_reset_at_once_do_not_delay_others(self):
        daemon = self.serve()
        over = threading.Event()

        def reset():
            while not over.is_set():
                link = socket.socket()
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                link.connect_ex(place(daemon.tcp))
                link.close()
                time.sleep(0.002)

        attackers = [threading.Thread(target=reset) for _ in range(2)]
        for attacker in attackers:
            attacker.start()
        time.sleep(1)
        times = []
        try:
            for _ in range(20):
                began = time.monotonic()
                self.assertEqual(client_from("127.0.0.2", daemon.tcp).say_hello(ADMIN, question="devices")[0], WELCOME)
                times.append(time.monotonic() - began)
        finally:
            over.set()
            for attacker in attackers:
                attacker.join()
        times.sort()
        print(f"an answer between resets takes {1e3 * times[10]:.1f} ms, at most {1e3 * times[-1]:.1f} ms")
        self.assertLess(times[10], 0.05)
        self.nothing_is_left(daemon)

    def test_refusals_without_number_have_a_number_of_lines(self):
        daemon = self.serve()
        before, refused = len(daemon.log().splitlines()), daemon.doctor()["connections"]["refused"]
        for number in range(1500):
            link = connect_from("127.0.0.1", daemon.tcp)
            # A wrong hello is refused, and an end without any is no refusal; each is a connection for nothing.
            link.sendall(frame(HELLO, b"no hello") if number % 2 else b"")
            link.close()
        self.log_adds_up(daemon, before, refused)
        self.assertGreaterEqual(daemon.doctor()["connections"]["refused"] - refused, 1400)
        self.assertLessEqual(self.lines_and_left_out(daemon, before)[2], MOST_LINES)
        self.assertNotIn("no hello", daemon.log())
        self.nothing_is_left(daemon)

    def test_a_queue_that_is_joined_and_left_has_a_number_of_lines(self):
        daemon = self.serve(config=NO_POOL + "[limits]\nrunning = 1\n")
        first = self.begin(daemon)
        before = len(daemon.log().splitlines())
        for _ in range(300):
            client = client_from("127.0.0.1", daemon.tcp)
            client.send(frame(HELLO, hello_payload(SESSION)))
            client.close()
        self.assertTrue(wait_until(lambda: sum(self.lines_and_left_out(daemon, before)[:2]) >= 600, 10),
                        self.lines_and_left_out(daemon, before))
        self.assertLessEqual(self.lines_and_left_out(daemon, before)[2], MOST_LINES)
        first.close()
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)


class Questions(SystemTest):
    # Control characters, which need six bytes each in JSON.
    NAMES = ["CUDA_MODULE_LOADING", "CUDA_CACHE_MAXSIZE", "CUDA_DEVICE_ORDER", "CUDA_FORCE_JIT"]

    def test_an_environment_above_its_limit_is_refused_by_name(self):
        daemon = self.serve(config=NO_POOL)
        # 60 KiB, which is below the limit of a hello.
        large = [("CUDA_LAUNCH_BLOCKING", "1")] + [(name, "\x01" * 3800) for name in self.NAMES * 4][:16]
        client = Client(daemon.unix)
        kind, payload = client.say_hello(environment=large)
        self.assertEqual(kind, REFUSAL)
        reason, why = client.refusal(payload)
        self.assertEqual(reason, "malformed")
        self.assertRegex(why, r"^the hello's variables take \d{5} bytes, the limit is 16384; shorten them, CUDA_\w+ above all$")
        client.close()
        self.assertEqual(daemon.workers(), [])
        self.nothing_is_left(daemon)

    def test_lists_stay_short_and_askers_that_do_not_read_cost_nobody_time(self):
        daemon = self.serve(config=NO_POOL)
        environment = [(name, "\x01" * 4000) for name in self.NAMES]
        sessions = [self.begin(daemon, environment=environment, user="\x01" * 4000, program="\x02" * 4000)
                    for _ in range(16)]
        began = time.monotonic()
        client = Client(daemon.unix)
        kind, answer = client.say_hello(ADMIN, question="sessions")
        alone = time.monotonic() - began
        self.assertEqual(kind, WELCOME)
        listed = daemon.sessions()
        self.assertEqual(len(listed), 16)
        self.assertEqual(listed[0]["environment"]["CUDA_FORCE_JIT"], "?" * 256 + "...")
        memory = daemon.memory()
        askers = []
        for number in range(60):
            asker = Client(daemon.unix if number % 2 else daemon.tcp)
            asker.send(frame(HELLO, hello_payload(ADMIN, question=("sessions", "doctor")[number % 3 == 0])))
            askers.append(asker)
        began = time.monotonic()
        self.assertEqual(Client(daemon.unix).say_hello(ADMIN, question="devices")[0], WELCOME)
        honest = time.monotonic() - began
        print(f"16 sessions with 16 KiB of environment: the list has {len(answer)} bytes and took {1e3 * alone:.1f} ms; with 60 askers "
              f"that do not read a question took {1e3 * honest:.1f} ms, and the daemon grew by {(daemon.memory() - memory) / 1e6:.1f} MB")
        self.assertLess(len(answer), 64 << 10)
        self.assertLess(honest, 0.3 if not SANITIZED else 3)
        self.assertLess(daemon.memory() - memory, 64 << 20)
        for each in [*askers, *sessions]:
            each.close()
        self.sessions_are_gone(daemon, 10)
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
