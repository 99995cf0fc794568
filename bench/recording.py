"""The record of a measurement: with --record a benchmark also writes its output to bench/results/DATE-NAME.md, below a table
of machine, driver, version, commit, date and command. Needs only Python 3 and its standard library. One record belongs to one
run of one script, and to its main thread."""
import contextlib
import datetime
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def processor():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def processors():
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count()


def commit():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        return os.environ.get("OUTBOARD_COMMIT", "unknown")
    dirty = subprocess.run(["git", "-C", str(ROOT), "diff", "--quiet", "HEAD"], capture_output=True).returncode
    return done.stdout.strip() + (" with changes" if dirty else "")


def gpu():
    """(name, driver, memory) of the first GPU that nvidia-smi shows, or None."""
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                          capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    fields = done.stdout.splitlines()[0].split(",") if done and done.returncode == 0 and done.stdout else []
    return [field.strip() for field in fields] if len(fields) == 3 else None


def facts(build, device):
    """{item: text} for the machine, the driver, the version and the date."""
    name, driver, memory = gpu() or (build.gpu(), "unknown", "memory unknown") if device == "vendor" else [None] * 3
    return {"GPU": f"{name}, {memory}" if name else f"none ({device} device)", "driver": driver or "none",
            "processor": f"{processor()}, {processors()} processors", "system": f"Linux {platform.release()}",
            "Outboard": build.version(), "commit": commit(), "date": datetime.date.today().isoformat()}


def machine(build, device):
    """The facts of the machine on one line, for the head of a table."""
    seen = facts(build, device)
    what = f"{seen['GPU']}, driver {seen['driver']}" if device == "vendor" else f"no GPU ({device} device)"
    return (f"{what}; {seen['processor']}; {seen['system']}; Outboard {seen['Outboard']}, commit {seen['commit']}; "
            f"{seen['date']}")


def named_after(arguments):
    """The script's name with the name of its program or list, for example steps-training-gpt."""
    given = [*getattr(arguments, "program", []), *([arguments.list] if getattr(arguments, "list", None) else [])]
    words = [pathlib.Path(word).stem for word in [sys.argv[0], *given]]
    return "-".join(word for word in words if re.fullmatch(r"\w[\w.+-]*", word))


def command_line():
    """The command line, without the path of this checkout."""
    return shlex.join(["bench/" + pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]).replace(f"{ROOT}/", "")


class Record:
    """Replaces the standard output while a benchmark runs: passes everything on, and keeps what follows begin()."""

    def __init__(self, output):
        self.output, self.wanted, self.kept = output, False, []

    def write(self, text):
        self.kept.append(text)
        return self.output.write(text)

    def flush(self):
        self.output.flush()

    def begin(self, arguments, build, device):
        """Prints the line about the machine. What is printed from now on is the record, if one is requested."""
        print(machine(build, device))
        self.kept.clear()
        self.wanted = arguments.record
        arguments.markdown = arguments.markdown or arguments.record
        if self.wanted:
            self.facts, self.name = facts(build, device), named_after(arguments)

    def text(self):
        about = {**self.facts, "command": f"`{command_line()}`"}
        rows = "".join(f"| {what} | {value} |\n" for what, value in about.items())
        return f"# {self.name}, {self.facts['date']}\n\n| measured | with |\n|---|---|\n{rows}\n{''.join(self.kept).strip()}\n"

    def keep(self):
        """Writes the file, if one was requested. A measurement of the same name and day is never overwritten."""
        if not self.wanted:
            return None
        folder = pathlib.Path(os.environ.get("OUTBOARD_RESULTS", ROOT / "bench/results"))
        folder.mkdir(parents=True, exist_ok=True)
        number, text = 1, self.text()
        while True:
            path = folder / f"{self.facts['date']}-{self.name}{f'-{number}' if number > 1 else ''}.md"
            try:
                with open(path, "x") as file:
                    file.write(text)
            except FileExistsError:
                number += 1
                continue
            print(f"recorded in {path}", file=sys.stderr)
            return path


def recorded(main):
    """Runs main(record). Its record is kept only if it returns: a failed measurement leaves none."""
    record = Record(sys.stdout)
    with contextlib.redirect_stdout(record):
        main(record)
    record.keep()
