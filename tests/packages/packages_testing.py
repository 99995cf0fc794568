"""What tests of packages use: the files that scripts/release made, an empty Debian below a folder, and podman with its
own storage. The folder of the files is the first argument of the program; OUTBOARD_TEST_PROGRAM names a CUDA program
that ends with "PASS ..."."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FILES = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release-files").resolve()
PROGRAM = pathlib.Path(os.environ.get("OUTBOARD_TEST_PROGRAM", "build/release/programs/vector_add")).resolve()


def run(*command, check=True, timeout=300, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def one(pattern):
    found = sorted(FILES.glob(pattern))
    assert len(found) == 1, f"{pattern} in {FILES}: {found}"
    return found[0]


class Root:
    """A Debian of its own below a folder."""
    folder, base = None, pathlib.Path(tempfile.gettempdir(), "outboard-test-root.tar")

    @classmethod
    def make(cls):
        base = cls.base
        if not base.exists():
            places = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
            sources = next(path for path in places if os.path.exists(path))
            include = "--include=python3,python3-venv,ocl-icd-libopencl1,clinfo,rpm,systemd"
            run("mmdebstrap", "--variant=minbase", include, "bookworm", f"{base}.new.tar", sources, timeout=900)
            os.rename(f"{base}.new.tar", base)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="outboard-root-"))
        run("tar", "-C", cls.folder, "-xf", base)
        shutil.copytree(FILES, cls.folder / "packages")
        shutil.copy(PROGRAM, cls.folder / "program")

    @classmethod
    def remove(cls):
        run("umount", cls.folder / "proc", check=False)
        shutil.rmtree(cls.folder)

    @classmethod
    def inside(cls, *command, check=True, timeout=300, **variables):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
                       **variables}
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={cls.folder}/proc",
                   "chroot", cls.folder, *command, check=check, timeout=timeout, env=environment)


    @classmethod
    def boot(cls, *commands):
        """Boots its systemd, runs these once the service has started, and returns what they said. The kernel's Landlock is
        let through, which nspawn of Debian 12 does not know."""
        said, unit = cls.folder / "said", cls.folder / "etc/systemd/system/try.service"
        script = "; ".join(commands)
        (cls.folder / "try").write_text(f"#!/bin/sh\nexec >/said 2>&1\n{script}\nsystemctl --no-block poweroff\n")
        (cls.folder / "try").chmod(0o755)
        unit.write_text("[Unit]\nAfter=outboard.service\n[Service]\nType=oneshot\nExecStart=/try\n")
        wants = unit.parent / "multi-user.target.wants"
        wants.mkdir(exist_ok=True)
        (wants / unit.name).symlink_to(f"../{unit.name}")
        try:
            run("systemd-nspawn", "-q", "-D", cls.folder, "--register=no", "--keep-unit", "--boot", "--console=pipe",
                "--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self",
                stdin=subprocess.DEVNULL, timeout=120)
        finally:
            (wants / unit.name).unlink()
        return said.read_text()


class Engine:
    """podman with storage of its own, an image that is an empty Debian, and a server on this machine."""
    SETTINGS = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

    def __init__(self, program, over="unix"):
        self.program, self.over = program, over
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outboard-podman-"))
        self.folder.chmod(0o755)
        (self.folder / "containers.conf").write_text(self.SETTINGS)
        (self.folder / "cdi").mkdir()
        os.makedirs("/etc/cdi", exist_ok=True)
        self.environment = {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf")}

    def command(self, *command):
        """With the description of the test's devices where podman looks, for this one process."""
        script = 'mount --bind "$0" /etc/cdi && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, self.folder / "cdi", *command]

    def podman(self, *command, **options):
        return run(*self.command("podman", "--root", self.folder / "root", "--runroot", self.folder / "run", *command),
                   env=self.environment, **options)

    def __enter__(self):
        self.podman("import", "-q", Root.base, "localhost/base:1")
        self.outboard = Root.folder / "usr/bin/outboard"
        self.server = None
        if self.outboard.exists():
            self.serve()
            self.describe()
        return self

    def serve(self):
        """On a socket for everybody, or as a server of the network: encrypted, and for those who know the token."""
        flags, settings = [], self.folder / "serve.toml"
        if self.over == "unix":
            (self.folder / "socket").mkdir()
            self.url = f"unix:{self.folder}/socket/s"
            settings.write_text('allow_users = ["*"]\n')
        else:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.url = "tcp:127.0.0.1:%d" % free.getsockname()[1]
            settings.write_text('tls = "require"\n')
            flags = ["--token-file", self.token("server")]
        environment = {**os.environ, "STATE_DIRECTORY": str(self.folder / "state"), "CACHE_DIRECTORY": str(self.folder / "cache")}
        serve = [self.outboard, "serve", "--device", "cpu", "--listen", self.url, "--config", settings, *flags]
        self.server = subprocess.Popen(serve, stderr=subprocess.DEVNULL, env=environment)
        for _ in range(200):
            if run(self.outboard, "devices", "--server", self.url, *self.as_client("server"), check=False).returncode == 0:
                return
            assert self.server.poll() is None
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def token(self, name, owner="root"):
        """A file of the token that this user may read."""
        path = self.folder / f"{name}.token"
        path.write_text("a secret of sixteen\n")
        path.chmod(0o600)
        shutil.chown(path, owner)
        return path

    def as_client(self, name):
        if self.over == "unix":
            return []
        settings = self.folder / f"{name}.toml"
        settings.write_text(f'tls = "require"\ntoken_file = "{self.folder}/{name}.token"\n'
                            f'[certificates]\nknown_servers = "{self.folder}/known"\n')
        return ["--config", settings]

    def describe(self):
        if self.over != "unix":
            self.token("client")
        run(self.outboard, "cdi", "generate", "--server", self.url, *self.as_client("client"),
            "--output", self.folder / "cdi/outboard.json")

    @property
    def with_devices(self):
        network = "none" if self.over == "unix" else "host"
        return ["run", "--rm", f"--network={network}", "--device", "outboard.dev/gpu=all"]

    def run_program(self):
        mount = f"{self.program}:/program:ro"
        return self.podman(*self.with_devices, "-v", mount, "localhost/base:1", "/program").stdout

    def run_program_as(self, user):
        """Without root: with the user's own storage."""
        home = pathlib.Path("/home", user)
        settings = home / "containers.conf"
        shutil.copy(self.folder / "containers.conf", settings)
        program = shutil.copy(self.program, home / "program")
        if self.over != "unix":
            self.token("client", user)
        words = " ".join(self.with_devices)
        script = (f"cd && export CONTAINERS_CONF={settings} XDG_RUNTIME_DIR=$HOME/run && mkdir -p run && "
                  f"podman import -q {Root.base} localhost/base:1 >/dev/null && "
                  f"podman {words} -v {program}:/program:ro localhost/base:1 /program; "
                  "status=$?; podman system reset --force >/dev/null 2>&1; exit $status")
        return run(*self.command("runuser", "-l", user, "-c", script)).stdout

    def size(self, image):
        """Bytes of its layers, compressed."""
        saved = self.folder / "saved.tar"
        tag = "1" if image == "base" else "latest"
        self.podman("save", "-q", "--format", "oci-archive", "-o", saved, f"localhost/{image}:{tag}")
        size = saved.stat().st_size
        saved.unlink()
        return size

    def __exit__(self, *_):
        if self.server:
            self.server.terminate()
            self.server.wait(30)
        self.podman("system", "reset", "--force", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
