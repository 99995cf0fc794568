#!/usr/bin/env python3
"""Runs built suites of Khronos's OpenCL-CTS sub-test by sub-test, on this machine's own platform and through Outboard on a
back-end that has the same platform, and prints where the verdicts differ and how many of each suite agree.
usage: OUTBOARD_BUILD=build/release tests/opencl/compare_cts.py FOLDER [SUITE...]
FOLDER holds the suites' programs, as CMake leaves them; SUITE: `events`, `cl_copy_images`, ... (all that are there).
CTS_SECONDS: for a sub-test (60); CTS_JOBS: sub-tests at once (1), each locally and then through Outboard, because some use one
place in /tmp; CTS_DEVICE: the back-end's (cpu); CTS_WORDS: what else each sub-test is told, small_images if the suite knows it
(`use_pitches`, `CL_FILTER_NEAREST`, or nothing); CTS_UNTIL: seconds after which no sub-test begins any more."""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("OUTBOARD_BUILD", "build/release")).resolve()
SECONDS = int(os.environ.get("CTS_SECONDS", "60"))
JOBS = int(os.environ.get("CTS_JOBS", "1"))
UNTIL = time.monotonic() + int(os.environ.get("CTS_UNTIL", "1000000"))


def sub_tests(program):
    """The sub-tests that the suite's help lists at its end."""
    text = subprocess.run([program, "-h"], capture_output=True, text=True, timeout=120).stdout
    head, _, names = text.partition("Test names:")
    more = os.environ.get("CTS_WORDS", "small_images" if "small_images" in head else "").split()
    return [[name, *more] for name in re.findall(r"^\s+([\w-]+)\s*$", names, re.MULTILINE)]


def verdict(program, words, environment):
    with tempfile.TemporaryDirectory(prefix="outboard-cts-") as folder:
        try:
            done = subprocess.run([program, *words], env=environment, cwd=folder, capture_output=True, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "time"
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if re.search(rb"^(Test skipped|%b skipped|SKIPPED)" % words[0].encode(), done.stdout, re.MULTILINE | re.IGNORECASE):
        return "skip" if done.returncode == 0 else "fail"
    return "pass" if done.returncode == 0 else "fail"


def compare(program, local, remote):
    """[(name, locally, through Outboard)] of the sub-tests for which there was time, and the number of all."""

    def both(words):
        if time.monotonic() > UNTIL:
            return None
        row = (words[0], verdict(program, words, local), verdict(program, words, remote))
        if row[1] != row[2]:
            print(f"{program.name} {words[0]}: {row[1]} locally, {row[2]} through Outboard", flush=True)
        return row

    names = sub_tests(program)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return [row for row in pool.map(both, names) if row], len(names)


def main():
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    programs = {p.name.removeprefix("test_"): p for p in sorted(folder.rglob("test_*")) if p.is_file() and os.access(p, os.X_OK)}
    with tempfile.TemporaryDirectory(prefix="outboard-cts-") as place:
        url = f"unix:{place}/socket"
        reader, writer = os.pipe()
        with open(f"{place}/log", "wb") as log:
            daemon = subprocess.Popen([BUILD / "bin/outboard", "serve", "--device", os.environ.get("CTS_DEVICE", "cpu"), "--listen", url, "--ready-fd", str(writer)],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer])
        os.close(writer)
        with os.fdopen(reader) as ready:
            ready.read()
        remote = {**os.environ, "OCL_ICD_VENDORS": str(BUILD / "lib/outboard/libOutboardOpenCL.so.1"), "OUTBOARD_SERVER": url}
        table = []
        try:
            for name in wanted or programs:
                rows, there = compare(programs[name], dict(os.environ), remote)
                count = collections.Counter(row[1] for row in rows)
                table.append((name, len(rows), count["pass"], sum(a == b for _, a, b in rows)))
                print(f"{name}: {dict(count)}" + (f", {there - len(rows)} not run" if there > len(rows) else ""), flush=True)
        finally:
            daemon.terminate()
            daemon.wait()
    print("\n| suite | sub-tests | pass locally | same through Outboard |\n|---|---:|---:|---:|")
    for row in table:
        print("| {} | {} | {} | {} |".format(*row))
    sys.exit(any(row[1] != row[3] for row in table))


if __name__ == "__main__":
    main()
