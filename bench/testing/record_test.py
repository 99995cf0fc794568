"""The record of a measurement has its output below a description of the machine. A failed measurement leaves none, and no
record is lost. Needs no build and no GPU."""
import argparse
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH))
import measuring  # noqa: E402
import recording  # noqa: E402

GPU = "NVIDIA H200, 580.159.04, 143771 MiB\n"


class Build:
    """A build, as far as a record asks about it."""
    folder = pathlib.Path("/nowhere")

    def version(self):
        return "0.1.0"

    def gpu(self):
        return None


def small_benchmark(record):
    parser = argparse.ArgumentParser()
    measuring.options(parser)
    parser.add_argument("program", nargs="*")
    arguments = parser.parse_args()
    print("chatter before the table")
    record.begin(arguments, Build(), "vendor")
    print("\nmedian of 1.\n")
    print(measuring.table([["a row", "1.50"]], ["row", "us"], arguments.markdown))


def failing_benchmark(record):
    small_benchmark(record)
    raise measuring.Failed("no such luck")


def benchmark_with_failures(record):
    small_benchmark(record)
    sys.exit(1)


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "results"

    def benchmark(self, main, *flags):
        """(exit status, stdout) of a script that is called `compare`."""
        smi = subprocess.CompletedProcess([], 0, GPU, "")
        run = subprocess.run
        status, out = 0, io.StringIO()
        with mock.patch.dict(os.environ, OUTBOARD_RESULTS=str(self.folder)), \
                mock.patch("sys.argv", [str(BENCH / "compare"), *flags]), \
                mock.patch("recording.shutil.which", lambda name: name), \
                mock.patch("recording.subprocess.run",
                           lambda words, **how: smi if words[0] == "nvidia-smi" else run(words, **how)), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            try:
                measuring.benchmark(main)
            except SystemExit as end:
                status = end.code
        return status, out.getvalue()

    def files(self):
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []

    def test_a_file_is_written_only_where_one_is_asked_for(self):
        status, printed = self.benchmark(small_benchmark)
        self.assertEqual((status, self.files()), (0, []))
        self.assertIn("a row", printed)
        self.assertNotIn("|---|", printed)

    def test_it_holds_what_was_printed_and_how_it_was_measured(self):
        program = str(recording.ROOT / "build/release/programs/paces")
        status, printed = self.benchmark(small_benchmark, "--record", program, "quick")
        self.assertEqual(status, 0)
        name, = self.files()
        self.assertRegex(name, r"^\d{4}-\d\d-\d\d-compare-paces-quick\.md$")
        text = (self.folder / name).read_text()
        table = "| row   |   us |\n|---|---:|\n| a row | 1.50 |\n"
        self.assertIn(table, printed)
        self.assertTrue(text.endswith("median of 1.\n\n" + table))
        self.assertNotIn("chatter", text)
        for row in ("GPU | NVIDIA H200, 143771 MiB", "driver | 580.159.04", "Outboard | 0.1.0", f"date | {name[:10]}",
                    "command | `bench/compare --record build/release/programs/paces quick`"):
            self.assertIn(f"| {row} |\n", text)
        for what in ("processor", "system", "commit"):
            self.assertRegex(text, rf"(?m)^\| {what} \| [^|]+ \|$")
        self.assertNotIn(str(recording.ROOT), text)

    def test_a_second_one_of_the_day_does_not_overwrite_the_first(self):
        for _ in range(3):
            self.benchmark(small_benchmark, "--record")
        ends = [re.sub(r"^[\d-]{11}", "", name) for name in self.files()]
        self.assertEqual(ends, ["compare-2.md", "compare-3.md", "compare.md"])

    def test_a_measurement_that_failed_leaves_none(self):
        for main in (failing_benchmark, benchmark_with_failures):
            self.assertEqual(self.benchmark(main, "--record")[0], 1)
        self.assertEqual(self.files(), [])

    def test_every_benchmark_can_be_recorded(self):
        scripts = [path for path in BENCH.iterdir() if path.is_file() and not path.suffix and os.access(path, os.X_OK)]
        self.assertGreater(len(scripts), 12)
        for script in scripts:
            said = subprocess.run([sys.executable, "-B", script, "--help"], capture_output=True, text=True, timeout=60)
            self.assertIn("--record", said.stdout, script.name)
            self.assertIn("record.begin(", script.read_text(), script.name)


if __name__ == "__main__":
    unittest.main()
