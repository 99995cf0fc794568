#!/usr/bin/env python3
"""One of twenty tenants takes all it can, and the other nineteen keep their throughput and all their answers.

Each tenant is an identity of its own (a named token) with the same limits. The nineteen compute without a pause: they
copy, run a kernel, copy back and compare. The twentieth does the same in one window, and attacks in the next; windows
alternate, so that what else the machine does counts on both sides. A tenant's throughput is the ratio of what it did in
the windows of attack to what it did in those before and after.

What this means on a machine where clients, daemon, workers and devices have the same few processors: nobody's
throughput is more than a share of them, and a client that burns its own processor takes from the others what it would
not take from another machine. So the attacker's own processes get FORCE times the processor time of an honest program
and no more (they pause), and what they take beyond an honest program's is taken off: the ratio is divided by what of the
machine was left to the others and the server. What the server does on the attacker's behalf (daemon, gate, workers,
helpers) is not held back by this test, and counts in full: its limits have to do that.

usage: hostile_tenants_test.py [MINUTES [TENANTS [WINDOW [FORCE]]]]     0.1: the sample; 10, 20, 15 (seconds) and 8: the whole
Exit status 0 if the others kept 0.95 of their throughput together (SAMPLE_KEEPS in the sample, which is short) and all
of their answers.
"""
import collections
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
import traceback
import unittest

from outboard_testing import (ADMIN, HELLO, Client, SystemTest, Token, argument, frame, hello_payload, processes_below,
                              program_environment, run, wait_until)

MINUTES = argument(0.1, float)
TENANTS = argument(20 if MINUTES >= 1 else 4)
WHOLE = MINUTES >= 1
WINDOW = argument(15.0 if WHOLE else 1.0, float)
FORCE = argument(8.0, float)
KEEPS, SAMPLE_KEEPS = 0.95, 0.6
MONITOR, DATA = 3, 5
MEMORY = 64 << 20

CONFIG = f"""
[limits]
linger_seconds = 0
sessions = 200
[cpu]
memory = "4GiB"
cores = 1
[pool]
per_key = 1
[identity.default]
sessions = 2
waiting = 2
device_memory = {MEMORY}
"""

HONEST = r"""
import ctypes as c, sys, time
d = c.CDLL("libcuda.so.1")
N = 16384
code = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 data) {
  .reg .b32 %r<5>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r1, %r2, %r3, %r4;
  mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
  ld.global.u32 %r2, [%d3]; add.u32 %r2, %r2, %r2; st.global.u32 [%d3], %r2; ret;
}'''
x, m, f, p = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_uint64()
made = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x),
        d.cuModuleLoadData(c.byref(m), code), d.cuModuleGetFunction(c.byref(f), m, b"twice"),
        d.cuMemAlloc_v2(c.byref(p), N * 4)]
assert made == [0] * 6, made
arguments = (c.c_void_p * 1)(c.cast(c.pointer(p), c.c_void_p))
import array
sent = array.array("I", range(N))
wanted = array.array("I", (2 * n for n in range(N))).tobytes()
source = sent.tobytes()
back = c.create_string_buffer(N * 4)
print("ready", flush=True)
done = 0
while True:
    codes = (d.cuMemcpyHtoD_v2(p, source, N * 4), d.cuLaunchKernel(f, N // 256, 1, 1, 256, 1, 1, 0, None, arguments, None),
             d.cuMemcpyDtoH_v2(back, p, N * 4))
    if codes != (0, 0, 0) or back.raw != wanted:
        print("wrong", codes, flush=True)
        sys.exit(1)
    done += 1
    if done % 4 == 0:
        print(done, flush=True)
"""

# Takes all that a program can, then holds it: device memory, page-locked memory, descriptors, threads with a lane each.
GREEDY = r"""
import ctypes as c, os, random, threading, time
d = c.CDLL("libcuda.so.1")
x, p = c.c_void_p(), c.c_uint64()
assert d.cuInit(0) == 0 and d.cuDevicePrimaryCtxRetain(c.byref(x), 0) == 0 and d.cuCtxSetCurrent(x) == 0
print("ready", flush=True)
budget, began = float(os.environ["BUDGET"]), time.monotonic()
def rest():
    ahead = time.process_time() / budget - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
def lane():
    d.cuCtxSetCurrent(x)
    d.cuCtxSynchronize()
    time.sleep(60)
def lanes():
    for _ in range(400):
        try:
            threading.Thread(target=lane, daemon=True).start()
        except RuntimeError:
            return
        rest()
threading.Thread(target=lanes, daemon=True).start()
number = random.randrange(1 << 60)
while True:
    held, size = [], 16 << 20
    while size > 4096:                                       # device memory
        if d.cuMemAlloc_v2(c.byref(p), c.c_size_t(size)) == 0:
            held.append(p.value)
        else:
            size //= 4
        rest()
    host = []
    for _ in range(64):                                      # page-locked memory
        q = c.c_void_p()
        if d.cuMemHostAlloc(c.byref(q), c.c_size_t(1 << 20), 0):
            break
        host.append(q)
        rest()
    for _ in range(20):                                      # other code each time, for the server's caches
        number += 1
        m = c.c_void_p()
        text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k%d() { ret; }\n%s" % (number, "// filling\n" * 2000)
        d.cuModuleLoadData(c.byref(m), text.encode())
        rest()
    events = []
    for _ in range(2000):                                    # objects without number
        e = c.c_void_p()
        if d.cuEventCreate(c.byref(e), 0):
            break
        events.append(e)
    for e in events:
        d.cuEventDestroy_v2(e)
    rest()
    for q in host:
        d.cuMemFreeHost(q)
    for a in held:
        d.cuMemFree_v2(c.c_uint64(a))
    if d.cuCtxSynchronize():
        break
"""


class Budget:
    """No more processor time than so much of one processor, for this process: who is ahead of it pauses."""

    def __init__(self, share):
        self.share, self.began, self.used = share, time.monotonic(), time.process_time()

    def rest(self):
        ahead = (time.process_time() - self.used) / self.share - (time.monotonic() - self.began)
        if ahead > 0:
            time.sleep(ahead)


def attack(url, token, share, counted):
    """The attacker's process for what needs no CUDA: until it is killed. `counted`: a pipe for what it did."""
    budget, did, held = Budget(share), collections.Counter(), collections.deque()
    told = time.monotonic()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def connect():
        return Client(url, timeout=2)

    def keep(client):
        held.append(client)
        while len(held) > 500:
            held.popleft().close()

    def silence():
        keep(Client(url, greet=False, timeout=2))

    def half_a_hello():
        client = connect()
        client.send(frame(HELLO, hello_payload(1))[:60])
        keep(client)

    def a_wrong_token():
        client = connect()
        client.say_hello(token=b"a token that nobody has")
        client.close()

    def a_question_unread():
        client = connect()
        client.send(frame(HELLO, token_hello(client, ADMIN, question=random.choice(("sessions", "devices", "doctor")))))
        keep(client)

    def a_question():
        client = connect()
        client.say_hello(ADMIN, token=token, question=random.choice(("sessions", "devices", "doctor")))
        client.close()

    def a_session_that_leaves():
        client = connect()
        client.send(frame(HELLO, token_hello(client, 1)))
        if random.random() < 0.5:
            client.socket.settimeout(0.3)
            try:
                client.receive()
            except OSError:
                pass
        client.close()

    def a_data_connection():
        client = connect()
        client.send(frame(HELLO, token_hello(client, DATA, question=struct.pack("<Q", random.randrange(200)).decode("latin-1"))))
        keep(client)

    def nvml():
        client = connect()
        client.send(frame(HELLO, token_hello(client, MONITOR)))
        keep(client)

    def token_hello(client, wanted, **fields):
        return Token(token).prove(hello_payload(wanted, **fields), client.greeting)[0]

    ways = [silence, half_a_hello, a_wrong_token, a_question_unread, a_question, a_session_that_leaves, a_data_connection, nvml]
    while True:
        way = random.choice(ways)
        try:
            way()
            did[way.__name__] += 1
        except OSError:
            did["failed"] += 1
        budget.rest()
        if time.monotonic() > told + 0.5:
            told = time.monotonic()
            os.write(counted, (" ".join(f"{name}={number}" for name, number in did.items()) + "\n").encode())


class Tenant:
    """An honest program, and how much it has done."""

    def __init__(self, test, url, token_file):
        self.process = test.start([sys.executable, "-c", HONEST], url, OUTBOARD_TOKEN_FILE=str(token_file))
        test.wait_for_line(self.process, "ready")
        self.done, self.wrong = 0, None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("wrong"):
                self.wrong = line
            else:
                self.done = int(line)


class HostileTenants(SystemTest):
    def begin_all(self):
        tokens = ["--tokens-file", f"{self.folder}/tokens"]
        daemon = self.serve(*tokens, config=CONFIG)
        self.files = []
        for number in range(TENANTS):
            done = run("token", "create", f"tenant{number}", *tokens)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.files.append(self.token_file(done.stdout.strip(), name=f"tenant{number}"))
        asked = ["devices", "--server", daemon.tcp, "--token-file", str(self.files[-1])]
        self.assertTrue(wait_until(lambda: run(*asked).returncode == 0))
        return daemon

    def attackers(self, daemon):
        share = FORCE * self.share / 2  # each of two
        reader, writer = os.pipe()
        token = self.files[0].read_bytes().strip()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                attack(daemon.tcp, token, share, writer)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writer)
        greedy = subprocess.Popen([sys.executable, "-c", GREEDY], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL,
                                  env=program_environment(daemon.tcp, OUTBOARD_TOKEN_FILE=str(self.files[0]), BUDGET=str(share)))
        return child, greedy, os.fdopen(reader)

    def end_attackers(self, attackers):
        child, greedy, did = attackers
        greedy.kill()
        greedy.wait()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = did.read().splitlines()
        did.close()
        return collections.Counter({name: int(n) for name, n in (pair.split("=") for pair in (lines[-1].split() if lines else []))})

    @staticmethod
    def seconds_of(process):
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def processor_time(self, daemon):
        """Seconds of the daemon and of the workers and helpers that are not the honest tenants', by process."""
        used = {}
        for process in [daemon.process.pid, *processes_below(daemon.process.pid)]:
            try:
                if process not in self.honest:
                    used[process] = self.seconds_of(process)
            except OSError:
                pass
        return used

    def window(self, daemon, tenants):
        before, began, used = [t.done for t in tenants], time.monotonic(), self.processor_time(daemon)
        time.sleep(WINDOW)
        seconds = time.monotonic() - began
        now = self.processor_time(daemon)
        # Children that have ended are in their parent's.
        self.cost.append({"daemon": (now[daemon.process.pid] - used[daemon.process.pid]) / seconds,
                          "others": sum(n - used.get(p, 0) for p, n in now.items() if p != daemon.process.pid) / seconds})
        for t in tenants:
            self.assertIsNone(t.wrong)
            self.assertIsNone(t.process.poll(), "an honest program has ended")
        return [(t.done - b) / seconds for t, b in zip(tenants, before)]

    def newcomer(self, daemon):
        """Seconds until somebody else's session has begun and ended."""
        began = time.monotonic()
        done = run("devices", "--server", daemon.tcp, "--token-file", str(self.files[1]), timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return time.monotonic() - began

    def test_the_others_keep_their_throughput_and_their_answers(self):
        daemon = self.begin_all()
        tenants = [Tenant(self, daemon.tcp, file) for file in self.files[1:]]
        self.honest, self.cost = {s["worker"] for s in daemon.ask("sessions", daemon.unix)}, []
        rounds = max(2, int(MINUTES * 60 / WINDOW / 2))
        quiet, attacked, taken, did, answers = [], [], [], collections.Counter(), []

        def with_an_honest_one():
            self.assertTrue(wait_until(lambda: len(daemon.ask("sessions", daemon.unix)) == len(tenants), 30))
            one = Tenant(self, daemon.tcp, self.files[0])
            used = self.seconds_of(one.process.pid)
            quiet.append(self.window(daemon, tenants))
            self.share = (self.seconds_of(one.process.pid) - used) / WINDOW
            self.end(one.process)

        with_an_honest_one()
        for _ in range(rounds):
            attackers = self.attackers(daemon)
            try:
                used = self.seconds_of(attackers[0]) + self.seconds_of(attackers[1].pid)
                attacked.append(self.window(daemon, tenants))
                taken.append((self.seconds_of(attackers[0]) + self.seconds_of(attackers[1].pid) - used) / WINDOW)
                answers.append(self.newcomer(daemon))
            finally:
                did += self.end_attackers(attackers)
            with_an_honest_one()
        # Each window of attack beside those around it.
        processors = len(os.sched_getaffinity(0))
        left = [(processors - max(own, self.share)) / (processors - self.share) for own in taken]
        windows = list(zip(attacked, left, quiet, quiet[1:]))
        ratios = [sum(now) / ((sum(before) + sum(after)) / 2) / rest for now, rest, before, after in windows]
        each = [statistics.median(now[i] / ((before[i] + after[i]) / 2) / rest for now, rest, before, after in windows)
                for i in range(len(tenants))]
        print(f"{TENANTS} tenants, {rounds} windows of {WINDOW:g} s: the others keep {statistics.median(ratios):.3f} together "
              f"({min(ratios):.3f} to {max(ratios):.3f}), each {min(each):.3f} to {max(each):.3f}; "
              f"{sum(map(sum, quiet)) / len(quiet):.0f} rounds a second; "
              f"a question of another's took at most {max(answers):.2f} s; the attacker did {dict(did)}")
        self.assertTrue(all(t.wrong is None and t.process.poll() is None for t in tenants), "an answer was wrong or missing")
        print(f"an honest program uses {self.share:.3f} of a processor, the attacker's {statistics.median(taken):.3f}")
        for name, windows in (("an honest one", self.cost[::2]), ("the attacker", self.cost[1::2])):
            print(f"processors used for {name}: " + ", ".join(
                f"{part} {statistics.median(w[part] for w in windows):.3f}" for part in ("daemon", "others")))
        lines = len(daemon.log().splitlines())
        print(f"{lines} lines in the log, {daemon.descriptors()} descriptors, {daemon.memory() / 1e6:.0f} MB in the daemon")
        self.assertGreaterEqual(statistics.median(ratios), KEEPS if WHOLE else SAMPLE_KEEPS)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
