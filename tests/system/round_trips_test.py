"""How often a program waits for the back-end, counted by the trace: a budget up to its first kernel, and one for the
whole program. Fewer is fine; more is a regression. The trace's form is an interface and is checked on the way."""
import os
import re
import unittest

from outboard_testing import SystemTest, program, run_program

# The hello, its snapshot (they are one), the first allocation, the load, the first launch.
BEFORE_FIRST_KERNEL = 6
# Whole programs: those, each synchronous copy to the host, each free, what the program itself waits for. The last one
# reads its variables back before it launches anything.
BUDGETS = {"vector_add": (BEFORE_FIRST_KERNEL, 8), "vector_add_shared": (BEFORE_FIRST_KERNEL, 8),
           "matmul": (BEFORE_FIRST_KERNEL, 9), "symbols": (8, 11)}
LINE = re.compile(r"^(\w+)\(.*\) = \d+ (local|posted|waited) \d+\.\d{3} us lane \d+$")
COPY = re.compile(r"^cuMemcpy(HtoD|DtoH)(?:Async)?_v2(?:_ptds|_ptsz)?\(.*ByteCount=(\d+)")
MOVED = re.compile(r"^sent (\d+) bytes, received (\d+) bytes$")
SUMMARY = re.compile(r"^local (\d+), posted (\d+), waited (\d+)$")


class RoundTrips(SystemTest):
    def trace(self, name, url, *arguments, **environment):
        file = os.path.join(self.folder, "trace")
        done = run_program(program(name, *arguments), url, OUTBOARD_TRACE=file, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        with open(file, encoding="utf-8", errors="replace") as lines:
            *calls, moved, last = lines.read().splitlines()
        self.moved, self.calls = MOVED.match(moved), calls
        self.assertTrue(self.moved, moved)
        return [self.parsed(line) for line in calls], last

    def parsed(self, line):
        found = LINE.match(line)
        self.assertTrue(found, line)
        return found[1], found[2]

    def test_up_to_the_first_kernel_and_in_all(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            for name, (until_kernel, whole) in BUDGETS.items():
                calls, last = self.trace(name, url)
                summary = SUMMARY.match(last)
                self.assertTrue(summary, last)
                counted = [sum(how == kind for _, how in calls) for kind in ("local", "posted", "waited")]
                self.assertEqual([int(n) for n in summary.groups()], counted)
                first = next(i for i, (function, _) in enumerate(calls) if function.startswith("cuLaunchKernel"))
                before = sum(how == "waited" for _, how in calls[:first + 1])
                print(f"{name} over {url.split(':')[0]}: {before} waits up to its first kernel, {counted[2]} in all "
                      f"(local {counted[0]}, posted {counted[1]})")
                self.assertEqual(calls[0][1], "waited", "the hello counts")
                self.assertLessEqual(before, until_kernel, name)
                self.assertLessEqual(counted[2], whole, name)

    def test_the_bytes_that_copies_move_are_counted(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            self.trace("vector_add", url)
            copied = {"HtoD": 0, "DtoH": 0}
            for found in filter(None, map(COPY.match, self.calls)):
                copied[found[1]] += int(found[2])
            self.assertGreater(min(copied.values()), 0)
            for way, moved in zip(("HtoD", "DtoH"), map(int, self.moved.groups())):
                # The rest: module, hello, requests, replies.
                self.assertGreaterEqual(moved, copied[way])
                self.assertLess(moved, copied[way] + (1 << 20), way)

    def test_a_second_launch_is_posted(self):
        daemon = self.serve()
        calls, _ = self.trace("post_join", daemon.unix)
        launches = [how for function, how in calls if function.startswith("cuLaunchKernel")]
        self.assertEqual(len(launches), 3 * 4000)
        self.assertLessEqual(launches.count("waited"), 1)

    def test_other_values_for_a_graphs_kernels_are_posted(self):
        daemon = self.serve()
        calls, _ = self.trace("graph_values", daemon.unix)
        changes = [how for function, how in calls if function.startswith("cuGraphExecKernelNodeSetParams")]
        # Five nodes in 40 rounds and five changes more; asked: each node once, two shapes, what no device takes, and
        # once behind an update from the graph.
        self.assertEqual((changes.count("waited"), len(changes)), (5 + 2 + 1 + 1, 5 * 40 + 2 + 1 + 4 + 1))

    def test_memory_freed_on_a_stream_is_allocated_there_again_without_asking(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            calls, _ = self.trace("pool_reuse", url)
            allocations = [how for function, how in calls if function.startswith("cuMemAlloc") and "Async" in function]
            # 500 rounds of two blocks on two streams each; the first of each, and those whose account is looked at.
            self.assertGreaterEqual(len(allocations), 2000)
            self.assertLessEqual(allocations.count("waited"), 4 + 4)
            self.assertEqual(allocations.count("posted"), 0)

    def test_waiting_for_idle_work_asks_nobody(self):
        daemon = self.serve()
        asked = {"cuCtxSynchronize", "cuCtxSynchronize_v2", "cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize",
                 "cuEventQuery"}
        for url in (daemon.unix, daemon.tcp):
            calls, _ = self.trace("idle_waits", url)
            answers = [how for function, how in calls if function in asked]
            # 480 rounds of ten times six questions; the first of each may have to ask. How often the program polls for
            # work that runs, too, is a matter of time.
            self.assertGreaterEqual(answers.count("local"), 480 * 9 * 6)

    def test_a_stream_whose_copy_has_come_is_known_to_be_idle(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            calls, _ = self.trace("copied_waits", url)
            waits = [how for function, how in calls if function == "cuStreamSynchronize"]
            # 60 behind nothing but their copy, 180 behind work that came after it.
            self.assertEqual((waits[:60].count("local"), waits.count("waited")), (60, len(waits) - 60))

    def test_what_frameworks_ask_before_every_operation_asks_nobody(self):
        daemon = self.serve()
        asked = {"cuCtxGetDevice", "cuCtxGetCurrent", "cuDevicePrimaryCtxGetState", "cuStreamIsCapturing",
                 "cuThreadExchangeStreamCaptureMode", "cuDeviceGetAttribute", "cuPointerGetAttribute",
                 "cuOccupancyMaxActiveBlocksPerMultiprocessor"}
        for url in (daemon.unix, daemon.tcp):
            calls, _ = self.trace("small_questions", url, 500)
            how = {function: [answer for name, answer in calls if name == function] for function in asked}
            for function, answers in how.items():
                self.assertGreaterEqual(len(answers), 500, function)
                # The first one may have to ask. A thread's capture mode is the server's too: told when it changes, not waited for.
                self.assertLessEqual(answers.count("waited"), 1, function)
                if function != "cuThreadExchangeStreamCaptureMode":
                    self.assertGreaterEqual(answers.count("local"), len(answers) - 1, function)

    def test_nothing_is_posted_where_every_call_shall_wait(self):
        daemon = self.serve()
        for name in ("streams", "vector_add"):
            calls, _ = self.trace(name, daemon.unix)
            self.assertIn("posted", {how for _, how in calls})
            synchronous, _ = self.trace(name, daemon.unix, OUTBOARD_SYNC="1")
            self.assertNotIn("posted", {how for _, how in synchronous})
            launches = [how for function, how in synchronous if function.startswith("cuLaunchKernel")]
            self.assertGreater(len(launches), 0)
            self.assertEqual(set(launches), {"waited"})


if __name__ == "__main__":
    unittest.main(warnings="ignore")
