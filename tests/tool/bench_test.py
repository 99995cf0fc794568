"""`outboard bench`: the page in its three forms, figures that can be, statuses; and both columns in turns, with a driver that
is the front-end in disguise, so that no GPU is needed for them.

usage: bench_test.py [Ours|Native]"""
import json
import os
import pathlib
import unittest

from harness import BUILD, DaemonTest, clean_environment, run, wait_until

ROWS = ["start", "query", "event_wait", "launch_wait", "step", "burst", "launch_submit", "launches", "allocate",
        *(f"{way}_{kind}_{size}" for size in ("4k", "1m", "bulk") for kind in ("pageable", "locked") for way in ("in", "out"))]
QUICK = ["bench", "--seconds", "0.1"]


class BenchTest(DaemonTest):
    def serve_cpu(self):
        return self.serve(device="cpu")

    def page(self, *flags, environment=None):
        done = run(*QUICK, "--json", *flags, environment=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def figures_can_be(self, page, column):
        rows = {row["name"]: row for row in page["rows"]}
        self.assertLessEqual(set(ROWS), set(rows))
        for name in ROWS:
            found = rows[name][column]
            self.assertIsNotNone(found, (rows[name], page["why_not_native"]))
            self.assertEqual(len(found["runs"]), page["rounds"], name)
            self.assertLess(0, found["lowest"], name)
            self.assertLessEqual(found["lowest"], found["median"], name)
            self.assertLessEqual(found["median"], found["highest"], name)
        return rows


@unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a driver")
class Ours(BenchTest):
    def test_figures_can_be_over_each_way(self):
        daemon = self.serve_cpu()
        for url in (daemon.unix, daemon.tcp):
            page = self.page("--server", url)
            rows = self.figures_can_be(page, "ours")
            self.assertEqual(page["server"]["url"], url)
            self.assertIn("CPU device", page["server"]["device"])
            self.assertIn(os.uname().release, page["server"]["host"])
            self.assertIsNone(page["native"])
            self.assertIn("no NVIDIA driver library", page["why_not_native"])
            # Both ends are here.
            self.assertIsNone(rows["line"]["ours"])
            self.assertIn("ends on this machine", rows["line"]["why_not_ours"])
            self.assertRegex(page["verdict"], r"takes [\d.]+ us.* thousand launches a second")
        self.assertTrue(wait_until(lambda: not daemon.sessions()))

    def test_pages_for_people(self):
        daemon = self.serve_cpu()
        written = pathlib.Path(self.folder, "page.md")
        for flags, marks in (([], ["ROW ", "OURS "]), (["--markdown", "--output", written], ["| ROW | UNIT |", "|---|---|---:|"])):
            done = run(*QUICK, "--server", daemon.unix, *flags)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = written.read_text() if flags else done.stdout
            for mark in [*marks, "launch, wait", "GB/s", daemon.unix, os.uname().release]:
                self.assertIn(mark, text)
            self.assertRegex(text.replace("\n", " "), r"outboard \d.*\d{4}-\d\d-\d\d \d\d:\d\d UTC")
            if flags:
                self.assertEqual(done.stdout, "")
            else:
                self.assertLessEqual(max(map(len, text.splitlines())), 100)
                self.assertFalse([line for line in text.splitlines() if line != line.rstrip()])

    def test_a_wrong_result_fails(self):
        daemon = self.serve(device="mock")  # which runs no kernel
        done = run(*QUICK, "--server", daemon.unix)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("wrong result", done.stderr)

    def test_statuses(self):
        for flags, status, said in (
                (["--server", "unix:/none/s"], 3, "no server at unix:/none/s"),
                (["--seconds", "0"], 2, "--seconds"),
                (["--native", "--server", "unix:/none/s"], 2, "--native"),
                (["--json", "--markdown"], 2, "leave out one"),
                (["--compare", "/none/file"], 1, "cannot read /none/file"),
                (["--compare", "/etc/passwd"], 1, "--json"),
                (["--library", "/none", "--server", "unix:/none/s"], 1, "no front-end library")):
            done = run("bench", *flags)
            self.assertEqual((done.returncode, done.stdout), (status, ""), flags)
            self.assertIn(said, done.stderr)

class Native(BenchTest):
    def disguised_driver(self, daemon):
        """The environment in which this machine has a "driver": our library without the mark by which it is known, and a
        configuration by which it finds the daemon."""
        folder = pathlib.Path(self.folder, "driver")
        folder.mkdir()
        mark = b"outboard_frontend_marker"
        ours = (BUILD / "lib/outboard/libcuda.so.1").read_bytes()
        self.assertIn(mark, ours)
        (folder / "libcuda.so.1").write_bytes(ours.replace(mark, b"another_product's_marker"))
        home = pathlib.Path(self.folder, "home")
        (home / ".config/outboard").mkdir(parents=True)
        (home / ".config/outboard/outboard.toml").write_text(f'server = ["{daemon.unix}"]\n')
        return clean_environment(LD_LIBRARY_PATH=str(folder), HOME=str(home), XDG_CONFIG_HOME=f"{home}/.config")

    def test_native_runs_take_turns_and_are_kept_for_another_machine(self):
        daemon = self.serve_cpu()
        environment = self.disguised_driver(daemon)
        page = self.page("--server", daemon.tcp, environment=environment)
        for column in ("native", "ours"):
            rows = self.figures_can_be(page, column)
        for name in ROWS:
            self.assertAlmostEqual(rows[name]["ratio"], rows[name]["ours"]["median"] / rows[name]["native"]["median"])
        self.assertIn(f"{self.folder}/driver/libcuda.so.1, in turns", page["native"]["source"])
        self.assertIn("Speed against native", page["verdict"])

        kept = pathlib.Path(self.folder, "native.json")
        done = run(*QUICK, "--native", "--json", "--output", kept, environment=environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        alone = json.loads(kept.read_text())
        native = self.figures_can_be(alone, "native")
        self.assertIsNone(alone["server"])
        page = self.page("--server", daemon.unix, "--compare", kept)
        rows = self.figures_can_be(page, "ours")
        self.assertEqual(rows["step"]["native"], native["step"]["native"])
        self.assertIn("not in turns", page["native"]["source"])

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a driver")
    def test_native_needs_a_driver(self):
        done = run("bench", "--native")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no NVIDIA driver library", done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
