"""Shared by the tests of the command: a daemon for one test, a client that speaks the handshake itself, and what is
left behind afterwards. OUTBOARD_BUILD names the build folder; OUTBOARD_TEST_DEVICE the device (mock)."""
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["OUTBOARD_BUILD"]).resolve()
OUTBOARD = str(BUILD / "bin" / "outboard")
DEVICE = os.environ.get("OUTBOARD_TEST_DEVICE", "mock")

MAGIC = b"OUTBOARD"
GREETING, HELLO, WELCOME, REFUSAL = 1, 2, 3, 4
SESSION, ADMIN = 1, 2
HEADER = struct.Struct("<IHHIIQQQ")
REASONS = {1: "protocol", 2: "token", 3: "busy", 4: "device", 5: "malformed", 6: "question", 7: "window"}
WINDOW_BASE, WINDOW_SLOT = 0x200000000000, 1 << 40


def clean_environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OUTBOARD_", "CUDA_")) or k == "CUDA_HOME"}
    kept["XDG_CONFIG_HOME"] = "/nonexistent"
    kept.update(more)
    return kept


def run(*arguments, timeout=30, environment=None, **options):
    return subprocess.run([OUTBOARD, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=environment or clean_environment(), **options)


def wait_until(condition, seconds=5.0):
    """The last value of condition(), once it is true or the time is over."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > until:
            return value
        time.sleep(0.01)


def opcodes(api):
    """The number of each function of "cuda", "nvml" or "opencl" on the wire."""
    table = pathlib.Path(__file__).resolve().parents[2] / "src" / "api" / api / "opcodes.golden"
    lines = (line.split() for line in table.read_text().splitlines() if not line.startswith("#"))
    return {name: int(code) for code, name in lines}


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def frame(kind, payload):
    return HEADER.pack(len(payload), kind, 0, 0, 0, 0, 0, 0) + payload


# The proof of the token in a hello's payload.
PROOF_AT, PROOF_SIZE = 19, 32


def hmac_of(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


class Token:
    """What a client derives from a token (src/wire/token_proof.hh), written down a second time."""

    def __init__(self, token):
        master = hmac_of(b"outboard token", token)
        self.client, self.server = hmac_of(master, b"client"), hmac_of(master, b"server")
        self.stored, self.id = hashlib.sha256(self.client).digest(), hmac_of(master, b"id")[:8]

    def prove(self, hello, greeting):
        """The hello with its proof, and the key with which the server's welcome must be sealed."""
        hello = hello[:PROOF_AT] + bytes(PROOF_SIZE) + self.id + hello[PROOF_AT + PROOF_SIZE + 8:]
        seen = hashlib.sha256(hashlib.sha256(greeting).digest() + hello).digest()
        proof = bytes(a ^ b for a, b in zip(self.client, hmac_of(self.stored, seen)))
        return hello[:PROOF_AT] + proof + hello[PROOF_AT + PROOF_SIZE:], hmac_of(self.server, seen + proof)


def hello_payload(wanted, protocol=2, features=0, proof=bytes(PROOF_SIZE), question="", environment=(), program="test",
                  host="host", user="user"):
    body = MAGIC + struct.pack("<HQB", protocol, features, wanted) + proof + bytes(8) + os.urandom(32)
    body += text("outboard test") + text(host) + text(user) + text(program)
    body += struct.pack("<iQQ", os.getpid(), WINDOW_BASE, WINDOW_SLOT) + text(question)
    body += struct.pack("<I", len(environment))
    for name, value in environment:
        body += text(name) + text(value)
    return body


def greeting_payload(lowest=2, highest=2, token_required=False):
    return MAGIC + struct.pack("<HHQB", lowest, highest, 0, token_required) + b"\0" * 32 + text("outboard 9.9.9")


class Client:
    """One connection: greeting read, hello to be sent."""

    def __init__(self, url, greet=True, timeout=20):
        scheme, _, address = url.partition(":")
        if scheme == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            host, _, port = address.rpartition(":")
            self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout)
        self.greeting, self.seal = None, None
        if greet:
            kind, payload = self.receive()
            assert kind == GREETING and payload.startswith(MAGIC), (kind, payload)
            self.greeting = payload

    @property
    def challenge(self):
        return self.greeting[21:53]

    def receive(self):
        """(kind, payload) of the next frame, or (None, b"") at the end."""
        header = self.read(HEADER.size)
        if header is None:
            return None, b""
        size, kind = HEADER.unpack(header)[:2]
        return kind, self.read(size) or b""

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except (ConnectionResetError, BrokenPipeError):
                return None
            if not piece:
                return None
            data += piece
        return data

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass

    def say_hello(self, wanted=SESSION, token=None, **fields):
        hello = hello_payload(wanted, **fields)
        if token:
            hello, self.seal = Token(token).prove(hello, self.greeting)
        self.send(frame(HELLO, hello))
        kind, payload = self.receive()
        if kind == WELCOME:
            expected = hmac_of(self.seal, payload[:-PROOF_SIZE]) if token else bytes(PROOF_SIZE)
            assert payload[-PROOF_SIZE:] == expected, "the welcome does not show that the server knows the token"
        return kind, payload

    def refusal(self, payload):
        reason, size = struct.unpack("<HQ", payload[:10])
        return REASONS.get(reason, reason), payload[10:10 + size].decode()

    def close(self):
        self.socket.close()


def helps(process):
    """The daemon's helper for NVML, or the one that removes sessions' folders: they serve no session and stay."""
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"--monitor" in words or b"--remove-folders" in words


def processes_below(root):
    """Process numbers of root's children, and theirs."""
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


# A server's processes let nobody else look into them (environment, maps, descriptors by name).
MAY_LOOK_INTO_SERVERS = os.geteuid() == 0


def descriptors_of(process):
    """How many it has open. Kernels from 6.2 on tell the number to everybody."""
    folder = f"/proc/{process}/fd"
    return os.stat(folder).st_size or len(os.listdir(folder))


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Daemon:
    """`outboard serve` on a Unix socket and a TCP port of its own."""
    token = []  # the flags by which a command shows it

    def __init__(self, folder, *flags, config=None, environment=None, device=DEVICE, listen=None, **options):
        self.folder = pathlib.Path(folder)
        self.log_path = self.folder / "serve.log"
        self.unix = f"unix:{self.folder}/socket"
        self.token = ["--token-file", flags[flags.index("--token-file") + 1]] if "--token-file" in flags else []
        command = [OUTBOARD, "serve", "--device", device]
        for url in [self.unix, "tcp:127.0.0.1:0"] if listen is None else listen:
            command += ["--listen", url]
        if config is not None:
            (self.folder / "serve.toml").write_text(config)
            command += ["--config", str(self.folder / "serve.toml")]
        reader, writer = os.pipe()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([*command, "--ready-fd", str(writer), *map(str, flags)], stderr=log,
                                            stdin=subprocess.DEVNULL, pass_fds=[writer, *options.pop("pass_fds", [])],
                                            env={"CACHE_DIRECTORY": str(self.folder / "cache"),
                                                 "STATE_DIRECTORY": str(self.folder / "state"),
                                                 **(environment or clean_environment())}, **options)
        os.close(writer)
        with os.fdopen(reader) as ready:
            self.urls = ready.read().split()
        if not self.urls:
            raise AssertionError(f"the daemon did not start: {self.log()}")
        self.tcp = next((url for url in self.urls if url.startswith("tcp:")), None)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def ask(self, verb, url=None, *flags):
        done = run(verb, "--server", url or self.urls[0], "--json", *self.token, *flags)
        # doctor's status also speaks of the front-end library, which is not here to be judged.
        if not done.stdout:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def sessions(self):
        """Those that have a worker."""
        return [session for session in self.ask("sessions") if session["state"] != "waiting"]

    def waiting(self):
        return [session for session in self.ask("sessions") if session["state"] == "waiting"]

    def doctor(self):
        return self.ask("doctor")["servers"][0]["answer"]

    def workers(self):
        return [p for p in processes_below(self.process.pid) if not helps(p)]

    def descriptors(self):
        return descriptors_of(self.process.pid)

    def memory(self):
        """Resident bytes."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    def stop(self, timeout=20):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class DaemonTest(unittest.TestCase):
    """A folder of its own; daemons made by serve() end with the test. If it fails the end of their logs is printed:
    why a server closed a connection stands nowhere else."""

    def run(self, result=None):
        self.logs = []
        failed_before = 0 if result is None else len(result.failures) + len(result.errors)
        result = super().run(result)
        if len(result.failures) + len(result.errors) > failed_before:
            for log in dict.fromkeys(self.logs):  # of one folder: the last one
                print(f"--- {self.id()} failed; the end of its server's log:\n{log}---", flush=True)
        return result

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="outboard-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, *flags, **options):
        daemon = Daemon(self.folder, *flags, **options)
        self.addCleanup(lambda: self.logs.append(daemon.log()[-4000:]))
        self.addCleanup(daemon.kill)
        return daemon

    def begin(self, daemon, url=None, **fields):
        """A session, with its welcome read."""
        client = Client(url or daemon.unix)
        self.addCleanup(client.close)
        kind, payload = client.say_hello(**fields)
        self.assertEqual(kind, WELCOME, payload)
        return client

    def token_file(self, token="0123456789abcdefghij", mode=0o600, name="token"):
        path = pathlib.Path(self.folder, name)
        path.write_text(token + "\n")
        path.chmod(mode)
        return path
