#!/usr/bin/env python3
"""`outboard replace`: another worker goes on with a session, and its program does not notice: memory, modules with what is
in their variables, streams, events, graphs and page-locked memory are where they were. What cannot leave is named, and the
program goes on where it is; a worker that dies in between costs what it costs without."""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from outboard_testing import AT_ONCE, OUTBOARD, SystemTest, argument, program, run, wait_until

TIMES = argument(6)
# A second worker is there only for a session that is to be replaced.
NONE_WARM = AT_ONCE + "[pool]\nper_key = 0\n"

# Obeys a word a line: each answer is a line.
TARGET = r"""
import ctypes as c, sys
d = c.CDLL('libcuda.so.1'); u64, u32, vp = c.c_uint64, c.c_uint32, c.c_void_p
must = lambda code: code and sys.exit(f'code {code}')
PTX = b'''
.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 calls = 40;
.visible .entry step(.param .u64 data) {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [data]; mov.u64 %d2, calls;
  ld.global.u32 %r1, [%d2]; add.u32 %r1, %r1, 1; st.global.u32 [%d2], %r1;
  ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, %r1; st.global.u32 [%d1], %r2;
  ret;
}
''' + b'\0'
x, m, f, s, e, p, g, h, kind, g2 = vp(), vp(), vp(), vp(), vp(), u64(), u64(), vp(), c.c_int(), u64(); size = c.c_size_t()
must(d.cuInit(0)); must(d.cuDevicePrimaryCtxRetain(c.byref(x), 0)); must(d.cuCtxSetCurrent(x))
must(d.cuModuleLoadData(c.byref(m), PTX)); must(d.cuModuleGetFunction(c.byref(f), m, b'step'))
must(d.cuModuleGetGlobal_v2(c.byref(g), c.byref(size), m, b'calls'))
must(d.cuMemAlloc_v2(c.byref(p), c.c_size_t(3 << 20))); must(d.cuMemsetD32_v2(p, 7, c.c_size_t(3 << 18)))
must(d.cuStreamCreate(c.byref(s), 1)); must(d.cuEventCreate(c.byref(e), 2)); must(d.cuMemHostAlloc(c.byref(h), c.c_size_t(4096), 0))
host = c.cast(h, c.POINTER(u32)); host[0] = 1000; value = u32(); last = u32()
extra = {}
def step():
    arguments = (vp * 1)(c.cast(c.byref(p), vp))
    must(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, arguments, None)); must(d.cuEventRecord(e, s)); must(d.cuEventSynchronize(e))
    must(d.cuMemcpyDtoHAsync_v2(h, p, c.c_size_t(4), s)); must(d.cuStreamSynchronize(s))
    must(d.cuMemcpyDtoH_v2(c.byref(value), g, c.c_size_t(4))); must(d.cuMemcpyDtoH_v2(c.byref(last), u64(p.value + (3 << 20) - 4), c.c_size_t(4)))
    return host[0], value.value, last.value
def make(what):
    out = vp()
    if what == 'timing': must(d.cuEventCreate(c.byref(out), 0)); must(d.cuEventRecord(out, s))
    if what == 'managed': must(d.cuMemAllocManaged(c.byref(out), c.c_size_t(4096), 1))
    if what == 'pool': must(d.cuMemAllocAsync(c.byref(out), c.c_size_t(4096), s))
    if what == 'capture': must(d.cuStreamBeginCapture_v2(s, 0))
    extra[what] = out
def drop(what):
    out = extra.pop(what)
    if what == 'timing': must(d.cuEventDestroy_v2(out))
    if what == 'managed': must(d.cuMemFree_v2(out))
    if what == 'pool': must(d.cuMemFreeAsync(out, s)); must(d.cuStreamSynchronize(s))
    if what == 'capture': must(d.cuStreamEndCapture(s, c.byref(out)))
print('ready', flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    if word == 'step': print(*step(), flush=True)
    if word == 'make': make(*rest); print('made', flush=True)
    if word == 'drop': drop(*rest); print('dropped', flush=True)
"""

# The same with code of several kinds: libraries whose kernels are launched as they are, a module of a context of the
# program's own, and a library that is there for a part of each step alone. Each has a variable of its own.
CODE = r"""
import ctypes as c, sys
d = c.CDLL('libcuda.so.1'); u64, u32, vp = c.c_uint64, c.c_uint32, c.c_void_p
must = lambda code: code and sys.exit(f'code {code}')
def text(words):
    return f'''.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 calls[{words}];
.visible .entry step(.param .u64 data) {{
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [data]; mov.u64 %d2, calls;
  ld.global.u32 %r1, [%d2]; add.u32 %r1, %r1, {words}; st.global.u32 [%d2], %r1; st.global.u32 [%d1], %r1;
  ret;
}}'''.encode() + b'\0'
must(d.cuInit(0)); primary, own = vp(), vp()
must(d.cuDevicePrimaryCtxRetain(c.byref(primary), 0)); must(d.cuCtxCreate_v2(c.byref(own), 0, 0))
module, function = vp(), vp()
must(d.cuModuleLoadData(c.byref(module), text(5))); must(d.cuModuleGetFunction(c.byref(function), module, b'step'))
def library(words):
    made, kernel = vp(), vp()
    must(d.cuLibraryLoadData(c.byref(made), text(words), None, None, 0, None, None, 0))
    must(d.cuLibraryGetKernel(c.byref(kernel), made, b'step'))
    return made, kernel
must(d.cuCtxSetCurrent(primary))
first, second, late = library(2), library(3), library(7)
def launch(context, kernel):
    must(d.cuCtxSetCurrent(context)); p, value = u64(), u32()
    must(d.cuMemAlloc_v2(c.byref(p), c.c_size_t(4))); arguments = (vp * 1)(c.cast(c.byref(p), vp))
    must(d.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    must(d.cuMemcpyDtoH_v2(c.byref(value), p, c.c_size_t(4))); must(d.cuMemFree_v2(p))
    return value.value
print('ready', flush=True)
for line in sys.stdin:
    passing, kernel = library(11)
    said = [launch(primary, kernel)]
    must(d.cuCtxSetCurrent(primary)); must(d.cuLibraryUnload(passing))
    said += [launch(primary, second[1]), launch(primary, first[1]), launch(own, function), launch(own, first[1])]
    if line.strip() == 'late': said.append(launch(primary, late[1]))
    print(*said, flush=True)
"""


class Replace(SystemTest):
    config = AT_ONCE

    def target(self, daemon, text=TARGET):
        process = self.start([sys.executable, "-c", text], daemon.unix, stdin=subprocess.PIPE)
        self.wait_for_line(process, "ready")
        return process

    @staticmethod
    def say(process, *words):
        process.stdin.write(" ".join(words) + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def session(self, daemon):
        """The one that there is."""
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["state"] == "running"], 10))
        return daemon.sessions()[0]

    @staticmethod
    def replace(daemon, session, *flags):
        return run("replace", str(session["id"]), "--server", daemon.unix, *flags)

    def replaced(self, daemon, session):
        """By another process."""
        done = self.replace(daemon, session)
        self.assertEqual(done.returncode, 0, done.stderr + daemon.log()[-3000:])
        now = self.session(daemon)
        self.assertEqual(now["id"], session["id"])
        self.assertNotEqual(now["worker"], session["worker"])
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{session['worker']}"), 5))
        return now

    def test_the_program_goes_on_with_all_that_it_had(self):
        daemon = self.serve()
        target = self.target(daemon)
        total, calls = 7, 40
        for turn in range(4):
            calls += 1
            total += calls
            self.assertEqual(self.say(target, "step"), f"{total} {calls} 7", f"turn {turn}")
            self.replaced(daemon, self.session(daemon))
        target.stdin.close()
        self.assertEqual(target.wait(10), 0, target.stderr.read())
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def test_code_of_every_kind_comes_along(self):
        daemon = self.serve()
        target = self.target(daemon, CODE)
        for turn in range(1, 5):
            late = f" {7 * (turn - 2)}" if turn > 2 else ""
            # A library has a variable in each context.
            self.assertEqual(self.say(target, "late" if late else "step"),
                             f"11 {3 * turn} {2 * turn} {5 * turn} {2 * turn}{late}")
            self.replaced(daemon, self.session(daemon))
        target.stdin.close()
        self.assertEqual(target.wait(10), 0, target.stderr.read())
        self.nothing_is_left(daemon)

    def test_a_program_that_never_rests_is_replaced_under_its_calls(self):
        daemon = self.serve()
        busy = self.start(program("soak_calls", 200000 if TIMES > 6 else 40000), daemon.unix)
        session, done, kept = self.session(daemon), 0, set()
        random.seed(5)
        while done < TIMES and busy.poll() is None:
            answer = self.replace(daemon, session)
            done += answer.returncode == 0
            if answer.returncode:
                kept.add(answer.stderr.strip())
            time.sleep(random.uniform(0, 0.05))
        self.passed(busy)
        self.assertGreaterEqual(done, TIMES, kept)
        # What it makes and frees in every round may be there at that moment.
        self.assertTrue(all("memory of a pool" in why for why in kept), kept)

    def test_what_cannot_leave_is_named_and_stays(self):
        daemon = self.serve()
        target = self.target(daemon)
        total, calls = 7, 40
        for what, why in (("timing", "events that measure time"), ("managed", "managed memory"), ("pool", "memory of a pool"), ("capture", "a capture is open")):
            with self.subTest(what):
                session = self.session(daemon)
                self.assertEqual(self.say(target, "make", what), "made")
                answer = self.replace(daemon, session)
                self.assertEqual(answer.returncode, 1)
                self.assertIn(why, answer.stderr)
                self.assertEqual(self.say(target, "drop", what), "dropped")
                self.assertEqual(self.session(daemon)["worker"], session["worker"])
                calls += 1
                total += calls
                self.assertEqual(self.say(target, "step"), f"{total} {calls} 7")
        self.replaced(daemon, self.session(daemon))

    def test_of_nothing_and_by_nobody(self):
        daemon = self.serve()
        answer = run("replace", "77", "--server", daemon.unix)
        self.assertEqual((answer.returncode, answer.stderr), (1, "outboard: session 77: there is no such session\n"))
        self.assertEqual(run("replace", "--server", daemon.unix).returncode, 2)

    def test_the_other_worker_dies_in_between(self):
        """The session stays, and can be asked for once more."""
        daemon = self.serve(config=NONE_WARM)
        target = self.target(daemon)
        self.assertEqual(self.say(target, "step"), "48 41 7")
        session = self.session(daemon)
        os.kill(session["worker"], signal.SIGSTOP)
        waiting = self.start_replace(daemon, session)
        self.assertTrue(wait_until(lambda: len(daemon.workers()) > 1, 5))
        for worker in daemon.workers():
            if worker != session["worker"]:
                os.kill(worker, signal.SIGKILL)
        os.kill(session["worker"], signal.SIGCONT)
        self.assertEqual(waiting.wait(20), 1)
        self.assertEqual(self.say(target, "step"), "90 42 7")
        self.replaced(daemon, self.session(daemon))
        self.assertEqual(self.say(target, "step"), "133 43 7")

    def test_the_first_worker_dies_in_between(self):
        """The session is lost, as without: nobody begins it again in the middle."""
        daemon = self.serve(config=NONE_WARM)
        target = self.target(daemon)
        session = self.session(daemon)
        os.kill(session["worker"], signal.SIGSTOP)
        waiting = self.start_replace(daemon, session)
        self.assertTrue(wait_until(lambda: len(daemon.workers()) > 1, 5))
        time.sleep(0.2)
        target.stdin.write("step\n")
        target.stdin.flush()
        os.kill(session["worker"], signal.SIGKILL)
        self.assertEqual(waiting.wait(20), 1)
        self.ends_by_loss(target, daemon)

    def test_the_program_ends_in_between(self):
        daemon = self.serve(config=NONE_WARM)
        target = self.target(daemon)
        session = self.session(daemon)
        os.kill(session["worker"], signal.SIGSTOP)
        waiting = self.start_replace(daemon, session)
        self.assertTrue(wait_until(lambda: len(daemon.workers()) > 1, 5))
        target.kill()
        target.wait()
        os.kill(session["worker"], signal.SIGCONT)
        waiting.wait(20)
        self.sessions_are_gone(daemon)
        self.nothing_is_left(daemon)

    def start_replace(self, daemon, session):
        return self.start([str(OUTBOARD), "replace", str(session["id"]), "--server", daemon.unix], None)


if __name__ == "__main__":
    unittest.main()
