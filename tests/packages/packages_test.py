"""What scripts/release made, used as strangers use it: installed into an empty Debian, run, upgraded under a session, removed; the
wheel in a fresh environment; the checkers of Debian and rpm. As root, with mmdebstrap, lintian and rpm; needs no GPU.

usage: packages_test.py FOLDER    with the files of scripts/release
environment: OUTBOARD_TEST_PROGRAM: a CUDA program that ends with "PASS ..." (tests/programs/vector_add)"""
import re
import shutil
import time
import unittest

from packages_testing import FILES, SOURCES, Engine, Root, one, run

QUICK = 60  # seconds for each of the two commands of a new user


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
        # What the service, whose user exists while it runs, has kept: keys, tokens, code of clients.
        for name in ("lib", "cache"):
            kept = Root.folder / f"var/{name}/private/outboard"
            kept.mkdir(parents=True)
            (kept / "outboard-kept").touch()
            (Root.folder / f"var/{name}/outboard").symlink_to("private/outboard")
        Root.inside("dpkg", "-P", "outboard-server", "outboard-opencl-icd", "outboard")
        self.assertFalse([name for name in ("lib", "cache") if (Root.folder / f"var/{name}/outboard").is_symlink()])
        left = run("find", *(Root.folder / name for name in ("usr", "etc", "lib/systemd", "var/lib/private", "var/cache/private")),
                   "-name", "*outboard*", check=False).stdout
        self.assertEqual(left, "")

    @unittest.skipUnless(shutil.which("systemd-nspawn"), "no systemd-nspawn")
    def test_systemd_starts_the_service(self):
        """The unit as it is installed, with a token that it is handed: it serves, is reloaded, and keeps nothing of a crash."""
        Root.inside("dpkg", "-i", *(f"/packages/{path.name}" for path in FILES.glob("outboard*.deb")))
        etc = Root.folder / "etc/outboard"
        (etc / "outboard.toml").write_text('listen = ["tcp:127.0.0.1"]\n' + (etc / "outboard.toml").read_text())
        (etc / "token").write_text("a secret of sixteen\n")
        (etc / "token").chmod(0o600)
        local, network = "--server unix:/run/outboard/outboard.sock", "--server tcp:127.0.0.1"
        token = "--token-file /etc/outboard/token"
        said = Root.boot("systemctl is-active outboard.service", f"outboard run {local} {token} -- /program",
                         f"outboard run {network} {token} -- /program", f"outboard devices {network} || echo refused $?",
                         "grep core /proc/$(systemctl show -p MainPID --value outboard)/limits",
                         "systemctl reload outboard && systemctl is-active outboard", "outboard token create ann >/dev/null 2>&1",
                         "ls -l /var/lib/private/outboard", "systemctl stop outboard; systemctl show -p Result outboard")
        self.assertEqual(len(re.findall(r"(?m)^PASS ", said)), 2, said)
        self.assertEqual(len(re.findall(r"(?m)^active$", said)), 2, said)
        self.assertIn("refused 4", said)
        self.assertRegex(said, r"(?m)^Max core file size +0 +0 ")
        self.assertRegex(said, r"(?m)^-rw------- .* tokens$")
        self.assertIn("Result=success", said)

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
        for over in ("unix", "tcp"):
            with self.subTest(over), Engine(Root.folder / "program", over) as engine:
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
            self.server_keeps_its_key(engine)

    def server_keeps_its_key(self, engine):
        """In the volume: a later container is the same server, and knows the same named tokens."""
        token = engine.token("server")

        def fingerprint(volume, *more):
            engine.podman("run", "-d", "--name", "server", "--network=none", "-v", f"{token}:/etc/outboard/token:ro",
                          "-v", f"{volume}:/var/lib/outboard", "server")
            try:
                for _ in range(100):
                    said = engine.podman("logs", "server")
                    if found := re.search(r"SHA256:[A-Za-z0-9+/]{43}", said.stdout + said.stderr):
                        for words in more:
                            engine.podman("exec", "server", *words)
                        return found.group()
                    time.sleep(0.1)
                raise AssertionError(said.stdout + said.stderr)
            finally:
                engine.podman("rm", "-f", "-t", "5", "server")

        first = fingerprint("state", ("outboard", "token", "create", "lab-a"))
        self.assertEqual(fingerprint("state", ("outboard", "token", "revoke", "lab-a")), first)
        self.assertNotEqual(fingerprint("another"), first)

    def test_debian_finds_nothing(self):
        done = run("lintian", "--fail-on", "error,warning", "--allow-root", *FILES.glob("*.changes"), check=False)
        self.assertEqual((done.returncode, re.findall(r"(?m)^[EW]: .*", done.stdout)), (0, []), done.stdout)

    @unittest.skipUnless(shutil.which("rpmlint"), "no rpmlint")
    def test_rpmlint_finds_nothing(self):
        done = run("rpmlint", "-c", SOURCES / "packaging/rpm/rpmlint.toml", *sorted(FILES.glob("*.rpm")), check=False)
        self.assertEqual((done.returncode, re.findall(r"(?m)^\S+: [EW]: .*", done.stdout)), (0, []), done.stdout)

    def test_the_list_of_what_is_inside(self):
        import json
        document = json.loads(one("*.spdx.json").read_text())
        names = {package["name"] for package in document["packages"]}
        self.assertLessEqual({"outboard", "libzstd-dev", "liblz4-dev", "libssl-dev", "libfmt-dev"}, names)
        for package in document["packages"]:
            self.assertTrue(package["versionInfo"] and package["licenseConcluded"], package)


if __name__ == "__main__":
    unittest.main()
