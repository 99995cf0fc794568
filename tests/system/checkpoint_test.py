#!/usr/bin/env python3
"""cuCheckpointProcess* between processes: a program that never called cuInit locks, checkpoints, restores and unlocks the
session of another; who is locked waits and loses nothing; states and codes are the driver's; process numbers that belong
to nobody, to another identity or only by the client's own word lead nowhere."""
import os
import select
import subprocess
import sys
import time
import unittest

from outboard_testing import AT_ONCE, WELCOME, Client, SystemTest, program_environment, run_program

SUCCESS, INVALID_VALUE, NOT_INITIALIZED, OPERATING_SYSTEM, ILLEGAL_STATE, NOT_READY, NOT_SUPPORTED = 0, 1, 3, 304, 401, 600, 801
RUNNING, LOCKED, CHECKPOINTED = 0, 1, 2

# Obeys a word a line: each answer is a line.
TARGET = """
import ctypes as c, os, sys
d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); p = c.c_uint64(); v = c.c_uint32()
must = lambda code: code and sys.exit(f'code {code}')
must(d.cuInit(0)); must(d.cuDevicePrimaryCtxRetain(c.byref(x), 0)); must(d.cuCtxSetCurrent(x))
must(d.cuMemAlloc_v2(c.byref(p), c.c_size_t(4096))); must(d.cuMemsetD32_v2(p, 0x1234, c.c_size_t(1024)))
print('ready', os.getpid(), flush=True)
for line in sys.stdin:
    if line == 'lock\\n': print(d.cuCheckpointProcessLock(os.getpid(), None), flush=True); continue
    if line == 'self\\n':
        s = c.c_int(-1)
        def state(): d.cuCheckpointProcessGetState(os.getpid(), c.byref(s)); return s.value
        def step(name): return getattr(d, 'cuCheckpointProcess' + name)(os.getpid(), None)
        print(*[x for name in ('Lock', 'Checkpoint', 'Unlock', 'Restore', 'Unlock') for x in (step(name), state())], flush=True)
        continue
    must(d.cuMemcpyDtoH_v2(c.byref(v), p, c.c_size_t(4))); must(d.cuMemsetD32_v2(p, v.value + 1, c.c_size_t(1024)))
    print(hex(v.value), flush=True)
"""
# Arguments: STEP:PID[:MILLISECONDS]...; a line of codes; a state is 1000 + state.
CONTROLLER = """
import ctypes as c, sys
d = c.CDLL('libcuda.so.1'); s = c.c_int(-1); codes = []
for word in sys.argv[1:]:
    step, pid, *more = word.split(':'); pid = int(pid)
    if step == 'state': code = d.cuCheckpointProcessGetState(pid, c.byref(s)); codes.append(code or 1000 + s.value); continue
    if step == 'thread': codes.append(d.cuCheckpointProcessGetRestoreThreadId(pid, c.byref(s))); continue
    args = (c.c_uint32 * 16)(int(more[0]) if more else 0) if more else None
    codes.append(getattr(d, 'cuCheckpointProcess' + step.capitalize())(pid, args))
print(*codes)
"""


class Checkpoint(SystemTest):
    config = AT_ONCE

    def setUp(self):
        super().setUp()
        self.targets = []

    def target(self, url):
        process = self.start_with_input([sys.executable, "-c", TARGET], url)
        self.assertEqual(process.stdout.readline().split()[0], "ready", "the target did not start")
        return process

    def start_with_input(self, command, url):
        process = subprocess.Popen(command, env=program_environment(url), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.targets.append(process)
        self.addCleanup(process.stdin.close)
        self.addCleanup(self.end, process)
        return process

    def nothing_is_left(self, daemon):
        for process in self.targets:
            self.end(process)
        self.sessions_are_gone(daemon)
        super().nothing_is_left(daemon)

    @staticmethod
    def order(process, word="go"):
        process.stdin.write(word + "\n")
        process.stdin.flush()

    @staticmethod
    def says_something(process, seconds):
        return bool(select.select([process.stdout], [], [], seconds)[0])

    def steps(self, url, *words):
        done = run_program([sys.executable, "-c", CONTROLLER, *words], url)
        self.assertEqual(done.stderr, "")
        return [int(code) for code in done.stdout.split()]

    def test_another_process_is_locked_checkpointed_restored_and_unlocked(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            target = self.target(url)
            pid = target.pid
            self.order(target)
            self.assertEqual(target.stdout.readline(), "0x1234\n")
            self.assertEqual(self.steps(url, f"state:{pid}", f"lock:{pid}", f"state:{pid}"), [1000 + RUNNING, SUCCESS, 1000 + LOCKED])
            self.order(target)
            self.assertFalse(self.says_something(target, 0.3), "a locked process went on")
            self.assertEqual(self.steps(url, f"checkpoint:{pid}", f"state:{pid}"), [SUCCESS, 1000 + CHECKPOINTED])
            self.assertFalse(self.says_something(target, 0.2))
            self.assertEqual(self.steps(url, f"restore:{pid}", f"state:{pid}"), [SUCCESS, 1000 + LOCKED])
            self.assertFalse(self.says_something(target, 0.2))
            self.assertEqual(self.steps(url, f"unlock:{pid}", f"state:{pid}"), [SUCCESS, 1000 + RUNNING])
            self.assertEqual(target.stdout.readline(), "0x1235\n")
        self.nothing_is_left(daemon)

    def test_steps_out_of_order_are_illegal_states(self):
        daemon = self.serve()
        pid = self.target(daemon.unix).pid
        wrong = [f"{step}:{pid}" for step in ("unlock", "checkpoint", "restore")]
        self.assertEqual(self.steps(daemon.unix, *wrong, f"thread:{pid}"), [ILLEGAL_STATE] * 3 + [NOT_SUPPORTED])
        self.assertEqual(self.steps(daemon.unix, f"lock:{pid}", f"lock:{pid}", f"lock:{pid}:50", f"restore:{pid}"),
                         [SUCCESS] + [ILLEGAL_STATE] * 3)
        self.assertEqual(self.steps(daemon.unix, f"checkpoint:{pid}", f"checkpoint:{pid}", f"lock:{pid}", f"unlock:{pid}"),
                         [SUCCESS] + [ILLEGAL_STATE] * 3)
        self.nothing_is_left(daemon)

    def test_a_process_takes_the_steps_on_itself(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            target = self.target(url)
            self.order(target, "self")
            self.assertEqual([int(x) for x in target.stdout.readline().split()],
                             [SUCCESS, LOCKED, SUCCESS, CHECKPOINTED, ILLEGAL_STATE, CHECKPOINTED, SUCCESS, LOCKED, SUCCESS, RUNNING])
            self.order(target)
            self.assertEqual(target.stdout.readline(), "0x1234\n")
        self.nothing_is_left(daemon)

    def test_one_that_locked_itself_is_unlocked_by_another(self):
        daemon = self.serve()
        target = self.target(daemon.unix)
        self.order(target, "lock")
        self.assertEqual(target.stdout.readline(), "0\n")
        self.order(target)
        self.assertFalse(self.says_something(target, 0.3))
        self.assertEqual(self.steps(daemon.unix, f"state:{target.pid}", f"unlock:{target.pid}"), [1000 + LOCKED, SUCCESS])
        self.assertEqual(target.stdout.readline(), "0x1234\n")
        self.nothing_is_left(daemon)

    def test_a_locked_process_that_dies_is_gone_within_a_second(self):
        daemon = self.serve()
        target = self.target(daemon.unix)
        self.assertEqual(self.steps(daemon.unix, f"lock:{target.pid}"), [SUCCESS])
        self.order(target)
        time.sleep(0.1)
        target.kill()
        self.sessions_are_gone(daemon, 1.5)
        target.wait()
        self.assertEqual(self.steps(daemon.unix, f"state:{target.pid}"), [OPERATING_SYSTEM])
        self.nothing_is_left(daemon)

    def test_numbers_that_belong_to_nobody_or_to_others_lead_nowhere(self):
        daemon = self.serve()
        local, distant = self.target(daemon.unix), self.target(daemon.tcp)
        self.assertEqual(self.steps(daemon.unix, "state:1", "lock:999999999", "state:0", f"state:{os.getpid()}"),
                         [NOT_INITIALIZED, OPERATING_SYSTEM, OPERATING_SYSTEM, NOT_INITIALIZED])
        # Sessions over tcp: are of another identity than this user's.
        self.assertEqual(self.steps(daemon.unix, f"lock:{distant.pid}"), [NOT_INITIALIZED])
        self.assertEqual(self.steps(daemon.tcp, f"lock:{local.pid}"), [NOT_INITIALIZED])
        # The back-end's own processes are nobody's sessions.
        for process in [daemon.process.pid, *daemon.workers()]:
            self.assertEqual(self.steps(daemon.unix, f"checkpoint:{process}"), [NOT_INITIALIZED])
        self.assertEqual(self.steps(daemon.unix, f"state:{local.pid}"), [1000 + RUNNING])
        self.nothing_is_left(daemon)

    def test_malformed_questions_are_refused(self):
        daemon = self.serve()
        for question in (b"", b"\1", b"\2" + b"\0" * 12 + b"x", b"\2" + b"\0" * 8 + b"\xff\xff\xff\xff", b"\7" + b"\0" * 12):
            client = Client(daemon.unix)
            kind, payload = client.say_hello(4, question=question)
            self.assertNotEqual(kind, WELCOME)
            self.assertEqual(client.refusal(payload)[0], "malformed")
            client.close()
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
