"""Shared by the benchmarks: where a build is, a back-end for the time of a measurement, programs run natively and
through it, and what a table must say of the machine it was measured on. Python 3 and its standard library alone.

A build is a folder with bin/outboard, lib/outboard/ and programs/: a CMake build folder or a copy of these.
$OUTBOARD_BUILD names it, else build/release. $OUTBOARD_TOOLKIT adds a CUDA toolkit's libraries for the programs."""
import ctypes
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Whoever ends a benchmark wants what it set up to end, too: with statements get their turn.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Failed(Exception):
    """The measurement cannot be had; the message says why."""


def fail(error):
    print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
    sys.exit(1)


def wait_until(condition, seconds, pause=0.002):
    """The last value of condition(), once it is true or the time is over."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > until:
            return value
        time.sleep(pause)


def clean_environment(**more):
    """The caller's, without what configures Outboard."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OUTBOARD_")}
    kept["XDG_CONFIG_HOME"] = "/nonexistent"
    return {**kept, **more}


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def answers_nvml(process):
    """The daemon's helper for NVML: it serves no session and stays."""
    try:
        return b"--monitor" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def processes_below(root):
    """Process numbers of root's living children, and theirs."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


class Build:
    def __init__(self, folder=None):
        self.folder = pathlib.Path(folder or os.environ.get("OUTBOARD_BUILD") or ROOT / "build/release").resolve()
        self.outboard = self.folder / "bin/outboard"
        self.library = self.folder / "lib/outboard"
        if not self.outboard.exists() or not (self.library / "libcuda.so.1").exists():
            raise Failed(f"{self.folder} holds no bin/outboard with lib/outboard/libcuda.so.1; name a build with --build")

    def program(self, name):
        for folder in ("programs", "bench", "workloads"):
            if os.access(self.folder / folder / name, os.X_OK):
                return str(self.folder / folder / name)
        raise Failed(f"{name} is in none of programs/, bench/ and workloads/ of {self.folder}")

    def ask(self, verb, *flags, timeout=60):
        """The JSON that a verb of the command prints."""
        done = subprocess.run([self.outboard, verb, "--json", *flags], capture_output=True, text=True,
                              timeout=timeout, env=clean_environment())
        if not done.stdout.strip():  # doctor's exit status also judges what does not matter here
            raise Failed(f"outboard {verb} {' '.join(flags)}: {done.stderr.strip() or 'no answer'}")
        return json.loads(done.stdout)

    def version(self):
        done = subprocess.run([self.outboard, "--version"], capture_output=True, text=True, env=clean_environment())
        return (done.stdout.strip() or "outboard, version unknown").removeprefix("outboard ")

    def gpu(self):
        """Name of the first GPU that the real driver shows, or None."""
        try:
            devices = self.ask("devices", "--device", "vendor")
        except (Failed, subprocess.TimeoutExpired, ValueError):
            return None
        return devices[0]["name"] if devices else None


def toolkit_libraries():
    toolkit = os.environ.get("OUTBOARD_TOOLKIT", "/usr/local/cuda")
    return [folder for folder in (f"{toolkit}/lib64", f"{toolkit}/lib") if os.path.isdir(folder)]


def library_path(*first):
    rest = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
    return ":".join([*map(str, first), *toolkit_libraries(), *rest])


def sanitizer():
    """What must be in the environment of a program alone that loads an instrumented front-end."""
    preload = os.environ.get("OUTBOARD_PRELOAD")
    return [f"LD_PRELOAD={preload}", "ASAN_OPTIONS=detect_leaks=0"] if preload else []


def native(command):
    """(command, environment) of a program on the machine's own driver."""
    return command, clean_environment(LD_LIBRARY_PATH=library_path())


TRANSPORTS = ["unix", "shm", "tcp"]


def through(build, command, url=None, device=None, environment=None):
    """(command, environment) of a program through `outboard run`: a server's, or a private back-end's device. unix: is
    measured as what it says, though it shares memory where it can; nothing is encrypted."""
    if url and url.startswith("unix:"):
        environment = {"OUTBOARD_RINGS": "0", **(environment or {})}
    flags = ["--server", url, "--tls", "off"] if url else ["--device", device]
    prefix = ["env", *sanitizer()] if sanitizer() else []
    return ([str(build.outboard), "run", *flags, "--", *prefix, *command],
            clean_environment(LD_LIBRARY_PATH=library_path(), **(environment or {})))


def direct(build, command, url, environment=None):
    """As a user does without `outboard run`: by two variables. The started process is the program itself."""
    values = dict(item.split("=", 1) for item in sanitizer())
    return command, clean_environment(LD_LIBRARY_PATH=library_path(build.library), OUTBOARD_SERVER=url, OUTBOARD_TLS="off",
                                      **values,
                                      **(environment or {}))


def start(how, **options):
    command, environment = how
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def run(how, timeout=300):
    """(seconds, stdout) of a program that must succeed."""
    command, environment = how
    began = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)
    seconds = time.monotonic() - began
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}: "
                     f"{(done.stdout + done.stderr).strip()[-600:]}")
    return seconds, done.stdout


class Backend:
    """`outboard serve` on a Unix socket and a TCP port, for the time of a with statement; `pool` is the number of
    warm workers for each driver environment (0: none); `listen` are further URLs. leave() fails when something is left
    behind."""

    def __init__(self, build, device, pool=1, config="", listen=()):
        self.build, self.device, self.pool = build, device, pool
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outboard-bench-"))
        self.log = self.folder / "serve.log"
        self.unix, self.shm = f"unix:{self.folder}/socket", f"shm:{self.folder}/socket"
        (self.folder / "serve.toml").write_text(f"{config}\n[pool]\nper_key = {pool}\nburst = {pool}\n")
        self.shared_memory = set(os.listdir("/dev/shm"))
        reader, writer = os.pipe()
        command = [build.outboard, "serve", "--device", device, "--listen", self.unix, "--listen", "tcp:127.0.0.1:0",
                   *(part for url in listen for part in ("--listen", url)), *(["--insecure"] if listen else []),
                   "--tls", "off", "--config", self.folder / "serve.toml", "--log-level", "warn", "--ready-fd", str(writer)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=[writer],
                                            env={**clean_environment(), "CACHE_DIRECTORY": str(self.folder / "cache")})
        os.close(writer)
        with os.fdopen(reader) as ready:
            urls = ready.read().split()
        if not urls:
            raise Failed(f"the back-end did not start: {self.log.read_text(errors='replace').strip()}")
        self.urls = urls
        self.tcp = next(url for url in urls if url.startswith("tcp:127.0.0.1:"))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.leave()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def doctor(self):
        return self.build.ask("doctor", "--server", self.unix)["servers"][0]["answer"]

    def sessions(self):
        return self.build.ask("sessions", "--server", self.unix)

    def warm(self):
        """Idle warm workers that are ready."""
        return [one for one in self.doctor()["pool"]["warm"] if one["ready"]]

    def wait_warm(self):
        """Until the next session can begin at once. Workers are kept warm for what has been asked for before."""
        seen = self.doctor()["pool"]
        if self.pool and seen["hits"] + seen["misses"]:
            wait_until(self.warm, 30, 0.02)

    def workers(self):
        return [p for p in processes_below(self.process.pid) if not answers_nvml(p)]

    def leave(self):
        """Ends the back-end by SIGTERM once its sessions are gone, and looks for what it left."""
        if not wait_until(lambda: not self.sessions(), 10, 0.05):
            raise Failed(f"sessions are left: {self.sessions()}")
        workers = self.workers()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(40)
        left = [f"worker {one}" for one in workers if is_alive(one)]
        left += [f"socket {self.unix}"] if (self.folder / "socket").exists() else []
        left += [f"/dev/shm/{name}" for name in set(os.listdir("/dev/shm")) - self.shared_memory if "outboard" in name]
        if status or left:
            raise Failed(f"the back-end ended with {status}, left behind: {', '.join(left) or 'nothing'}; it said: "
                         f"{self.log.read_text(errors='replace').strip()[-600:]}")


class Link:
    """A line to a tcp: server with that round trip (µs) and that bandwidth (Gb/s, 0: as fast as it goes), for the time of
    a with statement: bench/link. It is as fast as this machine lets it be, which measured() tells."""

    def __init__(self, build, server, round_trip, gigabits):
        self.command = [build.program("emulated_link"), "relay", server.removeprefix("tcp:"), str(round_trip), str(gigabits)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("tcp:"):
            raise Failed(f"{' '.join(self.command)} did not start")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    @staticmethod
    def measured(build, round_trip, gigabits, megabytes=256):
        """{name: value} of what such a line does by itself: round trips in µs, streams in GB/s."""
        _, text = run(([build.program("emulated_link"), "measure", str(round_trip), str(gigabits), str(megabytes)],
                       clean_environment()))
        return {name: float(value) for name, value, _ in (line.split("\t") for line in text.splitlines())}


class Stepper:
    """A program that does steps when told (bench/training.cu says how they talk), started some way and warm."""

    def __init__(self, how, patience=300):
        self.process = subprocess.Popen(how[0], env=how[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.patience = patience
        self.worker = None  # whoever knows it may say

    def line(self):
        """The next one; the other lines (a library's chatter) are passed over."""
        timer = threading.Timer(self.patience, self.process.kill)
        timer.start()
        try:
            for text in self.process.stdout:
                if text.startswith(("ready", "done\t")):
                    return text
        finally:
            timer.cancel()
        self.process.wait()
        raise Failed(f"{' '.join(map(str, self.process.args))} ended with {self.process.returncode}: "
                     f"{self.process.stderr.read().strip()[-600:]}")

    def wait_ready(self):
        if not self.line().startswith("ready"):
            raise Failed(f"{self.process.args[-1]} is not ready")
        return self

    def ask(self, what):
        try:
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() says why

    def answer(self):
        """(steps, seconds, seconds of CPU, checksum) of what was asked last."""
        _, steps, seconds, cpu, checksum = self.line().split("\t")
        return int(steps), float(seconds), float(cpu), checksum.strip()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        if self.process.returncode:
            raise Failed(f"{self.process.args[-1]} ended with {self.process.returncode}")


def cpu_seconds(process):
    """What a process has used of all cores so far."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Nvml:
    """The GPU's memory as NVIDIA's management library tells it: no context is needed to ask."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        for name in ("libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"):
            try:
                self.library = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise Failed("no libnvidia-ml.so.1: device memory cannot be watched")
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise Failed("libnvidia-ml.so.1 shows no device")

    def used(self):
        memory = self.Memory()
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)):
            raise Failed("libnvidia-ml.so.1 does not tell the device's memory")
        return memory.used


def processor():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def commit():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        return os.environ.get("OUTBOARD_COMMIT", "unknown")
    dirty = subprocess.run(["git", "-C", str(ROOT), "diff", "--quiet", "HEAD"], capture_output=True).returncode
    return done.stdout.strip() + (" with changes" if dirty else "")


def gpu_line():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                          capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    return done.stdout.splitlines()[0].strip() if done and done.returncode == 0 and done.stdout else None


def machine(build, device):
    """One line for the head of a table."""
    what = (gpu_line() or build.gpu()) if device == "vendor" else f"no GPU ({device} device)"
    try:
        limit = len(os.sched_getaffinity(0))
    except AttributeError:
        limit = os.cpu_count()
    return (f"{what}; {processor()}, {limit} processors; Linux {platform.release()}; Outboard {build.version()}, commit "
            f"{commit()}; {datetime.date.today().isoformat()}")


def table(rows, head, markdown):
    """Rows of text under a head, the first column to the left and the others to the right."""
    cells = [list(map(str, row)) for row in [head, *rows]]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for n, row in enumerate(cells):
        padded = [row[0].ljust(width[0]), *(cell.rjust(w) for cell, w in zip(row[1:], width[1:]))]
        lines.append("| " + " | ".join(padded) + " |" if markdown else "  ".join(padded).rstrip())
        if n == 0 and markdown:
            lines.append("|" + "|".join(["---", *["---:"] * (len(head) - 1)]) + "|")
    return "\n".join(lines)


def number(value):
    """Three significant digits, without an exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - int(f"{value:e}".partition("e")[2]))
    return f"{value:.{min(digits, 6)}f}"


def spread(values):
    """The median, and how far apart the least and the most are."""
    values = sorted(values)
    middle = number(statistics.median(values))
    return f"{middle} ({number(values[0])}..{number(values[-1])})" if len(values) > 1 else middle


def ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if ours is not None and theirs else "-"


def options(parser):
    """What every benchmark can be told."""
    parser.add_argument("--build", metavar="FOLDER", help="has bin/, lib/, programs/ ($OUTBOARD_BUILD or build/release)")
    parser.add_argument("--device", choices=["auto", "vendor", "cpu", "mock"], default="auto",
                        help="default: the GPU, if any")
    parser.add_argument("--markdown", action="store_true", help="print a table for a document")


def chosen(arguments):
    """(build, device) of the parsed options."""
    build = Build(arguments.build)
    if arguments.device != "auto":
        return build, arguments.device
    return build, "vendor" if build.gpu() else "cpu"
