"""What scripts/release made, used as strangers use it: installed into an empty Debian, run, upgraded under a session, removed; the
wheel in a fresh environment; the checkers of Debian and rpm. As root, with mmdebstrap, lintian and rpm; needs no GPU.

usage: packages_test.py FOLDER    with the files of scripts/release
environment: OUTBOARD_TEST_PROGRAM: a CUDA program that ends with "PASS ..." (tests/programs/vector_add)"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FILES = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release-files").resolve()
PROGRAM = pathlib.Path(os.environ.get("OUTBOARD_TEST_PROGRAM", "build/release/programs/vector_add")).resolve()
QUICK = 60  # seconds for each of the two commands of a new user


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
            sources = next(path for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list") if os.path.exists(path))
            run("mmdebstrap", "--variant=minbase", "--include=python3,python3-venv,ocl-icd-libopencl1,clinfo,rpm,systemd", "bookworm",
                f"{base}.new.tar", sources, timeout=900)
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
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", **variables}
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={cls.folder}/proc", "chroot", cls.folder, *command,
                   check=check, timeout=timeout, env=environment)


class Engine:
    """podman with storage of its own, an image that is an empty Debian, and a server on this machine."""
    SETTINGS = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

    def __init__(self, program):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outboard-podman-"))
        self.folder.chmod(0o755)
        (self.folder / "containers.conf").write_text(self.SETTINGS)
        (self.folder / "cdi").mkdir()
        os.makedirs("/etc/cdi", exist_ok=True)
        self.environment = {**os.environ, "CONTAINERS_CONF": str(self.folder / "containers.conf")}

    def command(self, *command):
        """With the description of the test's devices where podman looks, for this one process."""
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/cdi && exec "$@"', self.folder / "cdi", *command]

    def podman(self, *command, **options):
        return run(*self.command("podman", "--root", self.folder / "root", "--runroot", self.folder / "run", *command),
                   env=self.environment, **options)

    def __enter__(self):
        self.podman("import", "-q", Root.base, "localhost/base:1")
        installed = Root.folder / "usr"
        self.server = None
        if (installed / "bin/outboard").exists():
            socket = self.folder / "socket"
            socket.mkdir()
            settings = self.folder / "serve.toml"
            settings.write_text('allow_users = ["*"]\n')
            url = f"unix:{socket}/s"
            self.server = subprocess.Popen([installed / "bin/outboard", "serve", "--device", "cpu", "--listen", url, "--config", settings],
                                           stderr=subprocess.DEVNULL)
            while not os.path.exists(f"{socket}/s"):
                assert self.server.poll() is None
                time.sleep(0.05)
            run(installed / "bin/outboard", "cdi", "generate", "--server", url, "--output", self.folder / "cdi/outboard.json")
        return self

    WITH_DEVICES = ["run", "--rm", "--network=none", "--device", "outboard.dev/gpu=all"]

    def run_program(self):
        return self.podman(*self.WITH_DEVICES, "-v", f"{self.program}:/program:ro", "localhost/base:1", "/program").stdout

    def run_program_as(self, user):
        """Without root: with the user's own storage."""
        home = pathlib.Path("/home", user)
        settings = home / "containers.conf"
        shutil.copy(self.folder / "containers.conf", settings)
        program = shutil.copy(self.program, home / "program")
        words = " ".join(self.WITH_DEVICES)
        script = (f"cd && export CONTAINERS_CONF={settings} XDG_RUNTIME_DIR=$HOME/run && mkdir -p run && "
                  f"podman import -q {Root.base} localhost/base:1 >/dev/null && podman {words} -v {program}:/program:ro localhost/base:1 /program; "
                  "status=$?; podman system reset --force >/dev/null 2>&1; exit $status")
        return run(*self.command("runuser", "-l", user, "-c", script)).stdout

    def size(self, image):
        """Bytes of its layers, compressed."""
        saved = self.folder / "saved.tar"
        self.podman("save", "-q", "--format", "oci-archive", "-o", saved, f"localhost/{image}:{'1' if image == 'base' else 'latest'}")
        size = saved.stat().st_size
        saved.unlink()
        return size

    def __exit__(self, *_):
        if self.server:
            self.server.terminate()
            self.server.wait(30)
        self.podman("system", "reset", "--force", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Root.make()

    @classmethod
    def tearDownClass(cls):
        Root.remove()

    def setUp(self):
        names = "outboard-server outboard-opencl-icd outboard"
        Root.inside("sh", "-c", f"dpkg -P {names} 2>/dev/null; rpm -e --nodeps {names} 2>/dev/null; true")

    def quick(self, *command, **variables):
        began = time.monotonic()
        done = Root.inside(*command, **variables)
        self.assertLess(time.monotonic() - began, QUICK, command)
        return done

    def program_passes(self, *how, **variables):
        self.assertRegex(self.quick(*how, **variables).stdout, r"(?m)^PASS ")

    def test_deb_installs_runs_and_goes(self):
        self.quick("dpkg", "-i", *(f"/packages/{path.name}" for path in FILES.glob("*.deb")))
        self.program_passes("outboard", "run", "--device", "cpu", "--", "/program")
        for page in ("outboard", "outboard-run"):
            self.assertTrue((Root.folder / f"usr/share/man/man1/{page}.1.gz").exists(), page)
        self.assertTrue((Root.folder / "etc/systemd/system/sockets.target.wants/outboard.socket").is_symlink())
        self.assertIn("Number of platforms", Root.inside("clinfo", check=False).stdout)
        settings = Root.folder / "etc/outboard/outboard.toml"
        settings.write_text(settings.read_text() + '\ndevice = "cpu"\n')
        Root.inside("dpkg", "-i", *(f"/packages/{path.name}" for path in FILES.glob("*.deb")))  # as an upgrade
        self.assertIn('device = "cpu"', settings.read_text())
        Root.inside("dpkg", "-r", "outboard-server", "outboard-opencl-icd", "outboard")
        self.assertTrue(settings.exists(), "files of /etc stay until purge")
        Root.inside("dpkg", "-P", "outboard-server", "outboard-opencl-icd", "outboard")
        left = run("find", Root.folder / "usr", Root.folder / "etc", Root.folder / "lib/systemd", "-name", "*outboard*").stdout
        self.assertEqual(left, "")

    def test_an_upgrade_lets_sessions_be(self):
        debs = [f"/packages/{path.name}" for path in FILES.glob("*.deb")]
        Root.inside("dpkg", "-i", *debs)
        script = ("outboard serve --device cpu --listen unix:/run/o.sock & server=$!; "
                  "for i in $(seq 100); do [ -S /run/o.sock ] && break; sleep 0.1; done; "
                  "outboard run --server unix:/run/o.sock -- sh -c '/program && sleep 8 && /program' & client=$!; sleep 2; "
                  f"dpkg -i {' '.join(debs)} >/dev/null; wait $client; echo ended $?; kill $server; wait $server")
        self.assertRegex(Root.inside("bash", "-c", script).stdout, r"(?s)PASS .*PASS .*ended 0")

    def test_rpm_installs_and_runs(self):
        rpms = [f"/packages/{path.name}" for path in sorted(FILES.glob("*.rpm"))]
        self.assertEqual(len(rpms), 3, rpms)
        listed = Root.inside("rpm", "-qp", "--provides", rpms[0]).stdout + Root.inside("rpm", "-qp", "--requires", rpms[0]).stdout
        self.assertNotIn("libcuda.so", listed)
        self.quick("rpm", "-i", "--nodeps", *rpms)
        self.program_passes("outboard", "run", "--device", "cpu", "--", "/program")
        Root.inside("rpm", "-e", "--nodeps", "outboard-server", "outboard-opencl-icd", "outboard")
        self.assertFalse((Root.folder / "usr/bin/outboard").exists())

    def test_wheel_runs_the_command_and_serves_a_process(self):
        wheel = one("*.whl")
        Root.inside("python3", "-m", "venv", "/venv")
        self.quick("/venv/bin/pip", "install", "--no-index", f"/packages/{wheel.name}")
        self.program_passes("/venv/bin/outboard", "run", "--device", "cpu", "--", "/program")
        script = ("/venv/bin/outboard serve --device cpu --listen unix:/run/w.sock & "
                  "for i in $(seq 100); do [ -S /run/w.sock ] && break; sleep 0.1; done; "
                  "/venv/bin/python -c 'import outboard, ctypes; outboard.connect(\"unix:/run/w.sock\"); "
                  "d = ctypes.CDLL(\"libcuda.so.1\"); n = ctypes.c_int(); print(d.cuInit(0), d.cuDeviceGetCount(ctypes.byref(n)), n.value); "
                  "import subprocess; print(subprocess.run([\"/program\"], capture_output=True, text=True).stdout)'; kill %1")
        said = Root.inside("bash", "-c", script).stdout
        self.assertRegex(said, r"(?m)^0 0 1$")
        self.assertRegex(said, r"(?m)^PASS ")
        Root.inside("/venv/bin/pip", "uninstall", "-y", "outboard")
        self.assertEqual(run("find", Root.folder / "venv", "-name", "*outboard*").stdout, "")
        # Without an environment of its own.
        Root.inside("/venv/bin/pip", "install", "--no-index", "--target", "/elsewhere", f"/packages/{wheel.name}")
        script = 'import outboard; outboard.connect(); import ctypes; print(ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(None))'
        self.assertEqual(Root.inside("/venv/bin/python", "-c", script, PYTHONPATH="/elsewhere").stdout, "1\n")

    def test_containers_get_devices_and_know_nothing_of_them(self):
        """By CDI, as root and without: an image that has nothing of Outboard."""
        Root.inside("dpkg", "-i", *(f"/packages/{path.name}" for path in FILES.glob("outboard_*.deb")))
        user = "outboard-test"
        run("useradd", "--create-home", user)
        self.addCleanup(run, "userdel", "--remove", user)
        with Engine(Root.folder / "program") as engine:
            self.assertRegex(engine.run_program(), r"(?m)^PASS ")
            self.assertRegex(engine.run_program_as(user), r"(?m)^PASS ")

    def test_images_are_made_of_the_packages(self):
        with Engine(Root.folder / "program") as engine:
            base = engine.size("base")
            for kind in ("client", "server"):
                engine.podman("build", "-q", "--build-arg", "BASE=localhost/base:1", "-t", kind, "-f",
                              SOURCES / f"packaging/images/{kind}.Containerfile", FILES)
            self.assertLess(engine.size("client") - base, 25e6, "compressed, above its base")
            said = engine.podman("run", "--rm", "-v", f"{Root.folder}/program:/program:ro", "client", "run", "--device", "cpu", "--", "/program")
            self.assertRegex(said.stdout, r"(?m)^PASS ")

    def test_debian_finds_nothing(self):
        done = run("lintian", "--fail-on", "error,warning", "--allow-root", *FILES.glob("*.changes"), check=False)
        self.assertEqual((done.returncode, re.findall(r"(?m)^[EW]: .*", done.stdout)), (0, []), done.stdout)

    def test_the_list_of_what_is_inside(self):
        import json
        document = json.loads(one("*.spdx.json").read_text())
        names = {package["name"] for package in document["packages"]}
        self.assertLessEqual({"outboard", "libzstd-dev", "liblz4-dev", "libfmt-dev"}, names)
        for package in document["packages"]:
            self.assertTrue(package["versionInfo"] and package["licenseConcluded"], package)


if __name__ == "__main__":
    unittest.main()
