"""Whole programs named by a JSON file (bench/programs.json is one): how each is run, which part of its output is the result,
and what its connection carried."""
import pathlib
import re
import subprocess
import tempfile
import threading
import time

import measuring
from measuring import number

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MOVED = re.compile(r"sent (\d+) bytes, received (\d+) bytes\nlocal (\d+), posted (\d+), waited (\d+)\s*$")


class Program:
    def __init__(self, about, folder, build):
        self.name = about["name"]
        self.folder = (folder / about.get("folder", ".")).resolve()
        places = {"{list}": str(folder), "{build}": str(build.folder)}
        self.command = [re.sub(r"\{(list|build)\}", lambda at: places[at[0]], part) for part in about["command"]]
        self.environment = about.get("environment", {})
        self.results = re.compile(about.get("results", ""), re.MULTILINE)
        self.output = self.folder / about["output"] if "output" in about else None
        self.within = about.get("within", 0)
        self.inside = re.compile(about["seconds"], re.MULTILINE) if "seconds" in about else None

    def run(self, way, limit, **environment):
        """(seconds, seconds that the program measured or None, lines of results)."""
        if self.output:
            self.output.unlink(missing_ok=True)
        command, values = way(self.command)
        began = time.monotonic()
        done = subprocess.run(command, env={**values, **self.environment, **environment}, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, errors="replace")
        seconds = time.monotonic() - began
        said = done.stdout + done.stderr
        if done.returncode:
            raise measuring.Failed(f"{self.name}: {' '.join(map(str, command))} ended with {done.returncode}: "
                                   f"{said.strip()[-900:]}")
        text = self.output.read_text(errors="replace") if self.output else done.stdout
        lines = [line for line in text.splitlines() if self.results.search(line)]
        if not lines:
            raise measuring.Failed(f"{self.name}: no results in what it printed: {said.strip()[-900:]}")
        inside = self.inside.search(said) if self.inside else None
        if self.inside and not inside:
            raise measuring.Failed(f"{self.name}: no time of its own in what it printed: {said.strip()[-900:]}")
        return seconds, float(inside[1]) if inside else None, lines


class Beside:
    """A program that runs again and again for the duration of a with statement; None: no program."""

    def __init__(self, program, way):
        self.program, self.way, self.over, self.error = program, way, threading.Event(), None

    def __enter__(self):
        if self.program:
            self.started = threading.Event()
            self.thread = threading.Thread(target=self.run)
            self.thread.start()
            self.started.wait()
        return self

    def run(self):
        command, values = self.way(self.program.command)
        while not self.over.is_set():
            process = subprocess.Popen(command, env={**values, **self.program.environment}, cwd=self.program.folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.started.set()
            while process.poll() is None and not self.over.wait(0.005):
                pass
            if process.poll() is None:
                process.kill()
            elif process.returncode:
                self.error = f"{self.program.name}, which ran beside, ended with {process.returncode}"
            process.wait()

    def __exit__(self, kind, *_):
        if not self.program:
            return
        self.over.set()
        self.thread.join()
        if self.error and kind is None:
            raise measuring.Failed(self.error)


def apart(one, other):
    """0.0: the same text; None: different text; else the largest relative distance of two numbers."""
    if one == other:
        return 0.0
    left, right = "\n".join(one), "\n".join(other)
    if NUMBER.sub("#", left) != NUMBER.sub("#", right):
        return None
    pairs = zip(map(float, NUMBER.findall(left)), map(float, NUMBER.findall(right)))
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)


def furthest(pairs):
    distances = [apart(*pair) for pair in pairs]
    return None if None in distances else max(distances, default=0.0)


def words(distance):
    return "other text" if distance is None else "equal" if distance == 0 else f"{distance:.1e}"


def traffic(program, way, limit):
    """(bytes sent, received, calls answered locally, posted, waited for) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace"
        program.run(way, limit, OUTBOARD_TRACE=str(trace))
        with open(trace, "rb") as file:
            file.seek(max(0, trace.stat().st_size - 300))
            found = MOVED.search(file.read().decode(errors="replace"))
    if not found:
        raise measuring.Failed(f"{program.name}: its trace has no summary; did it end by _exit?")
    return [int(n) for n in found.groups()]


def size(count):
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = "GB"
    return f"{number(count)} {unit}"
