"""The recipes of packaging/images with what scripts/release made: the dev container feature installs into an empty
Debian, from the .deb package and from the wheel; the steps of Apptainer's definition are done there, without Apptainer;
compose reads its files, and podman-compose runs a server and a client of it. As root; needs no GPU.

usage: recipes_test.py FOLDER    with the files of scripts/release, which is build/release-files of the sources
environment: OUTBOARD_TEST_PROGRAM: a CUDA program that ends with "PASS ..." (tests/programs/vector_add)"""
import glob
import os
import pathlib
import shutil
import time
import unittest

import recipes
from packages_testing import FILES, SOURCES, Engine, Root, one, run

IMAGES = SOURCES / "packaging/images"
NAMES_FOR_CONTAINERS = ("/usr/lib/cni/dnsname", "/usr/libexec/podman/aardvark-dns", "/usr/lib/podman/aardvark-dns")


class InAnEmptyDebian(unittest.TestCase):
    def setUp(self):
        Root.make()
        self.addCleanup(Root.remove)

    def feature(self, *files):
        """The feature's folder with these packages, in the root."""
        folder = Root.folder / "feature"
        shutil.copytree(SOURCES / recipes.FEATURE, folder)
        for path in files:
            shutil.copy(path, folder)

    def install(self, server="", check=True):
        return Root.inside("/feature/install.sh", check=check, SERVER=server)

    def test_the_feature_installs(self):
        for package in ("outboard_*.deb", "*.whl"):
            with self.subTest(package):
                self.feature(one(package))
                self.install("unix:/run/o.sock")
                # As an editor starts it: by itself, without `outboard run` and without a variable.
                script = ("outboard serve --device cpu --listen unix:/run/o.sock & "
                          "for i in $(seq 100); do [ -S /run/o.sock ] && break; sleep 0.1; done; /program; kill %1")
                path = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                self.assertRegex(Root.inside("bash", "-c", script, PATH=path).stdout, r"(?m)^PASS ")
                Root.remove()
                Root.make()

    def test_the_feature_says_what_it_lacks(self):
        self.feature()
        self.assertIn("neither", self.install(check=False).stderr)
        for name in ("outboard_1_amd64.deb", "outboard_2_amd64.deb"):
            (Root.folder / "feature" / name).touch()
        self.assertIn("more than one", self.install(check=False).stderr)
        said = self.install('tcp:a"b', check=False)
        self.assertIn("is no URL", said.stderr)
        self.assertNotEqual(said.returncode, 0)
        self.assertFalse((Root.folder / "etc/outboard").exists())

    def test_the_steps_of_the_definition(self):
        shutil.rmtree(Root.folder / "packages")
        _, sections = recipes.read_definition((SOURCES / recipes.DEFINITION).read_text())
        for source, place in recipes.copies(sections):
            to = Root.folder / place.strip("/")
            to.mkdir(parents=True)
            found = glob.glob(str(FILES / pathlib.Path(source).name))
            self.assertTrue(found, source)
            for path in found:
                shutil.copy(path, to)
        Root.inside("sh", "-ec", sections["post"])
        Root.inside("sh", "-ec", sections["test"])
        said = Root.inside("sh", "-c", sections["runscript"], "run", "run", "--device", "cpu", "--", "/program").stdout
        self.assertRegex(said, r"(?m)^PASS ")


class Compose(unittest.TestCase):
    def setUp(self):
        self.assertEqual(FILES, SOURCES / "build/release-files", "compose.yaml names this folder")

    @unittest.skipUnless(shutil.which("docker-compose"), "no docker-compose")
    def test_the_files_fit_the_schema(self):
        both = [("compose.yaml",), ("compose.yaml", "compose.gpu.yaml")]
        for names in both:
            flags = [word for name in names for word in ("-f", IMAGES / name)]
            said = run("docker-compose", *flags, "config", env={**os.environ, "OUTBOARD_TOKEN": "/token"}).stdout
            self.assertEqual("driver: nvidia" in said, names == both[1])
            self.assertEqual(said.count("/token:/etc/outboard/token:ro"), 2)

    @unittest.skipUnless(shutil.which("podman-compose") and any(map(os.path.exists, NAMES_FOR_CONTAINERS)),
                         "no podman-compose, or podman gives containers no names")
    def test_a_client_finds_the_server(self):
        Root.make()
        self.addCleanup(Root.remove)
        with Engine(Root.folder / "program") as engine:
            podman = engine.folder / "podman"
            flags = f"--root {engine.folder}/root --runroot {engine.folder}/run"
            podman.write_text(f'#!/bin/sh\nexec podman {flags} "$@"\n')
            podman.chmod(0o755)
            token = engine.folder / "token"
            token.write_text("a secret of sixteen\n")
            token.chmod(0o600)
            # An address that nothing else listens on.
            environment = {**engine.environment, "OUTBOARD_TOKEN": str(token), "OUTBOARD_BASE": "localhost/base:1",
                           "OUTBOARD_PROGRAMS": str(Root.folder), "OUTBOARD_ADDRESS": "127.26.88.2"}

            def compose(*words, **options):
                return run("podman-compose", "--podman-path", podman, "-p", "outboard-test",
                           "-f", IMAGES / "compose.yaml", *words, env=environment, **options)

            try:
                compose("build")  # docker compose would do it by itself
                compose("up", "-d", "server")
                # podman starts health checks by systemd, which need not run here.
                for _ in range(100):
                    health = run(podman, "healthcheck", "run", "outboard-test_server_1", check=False, env=environment)
                    if health.returncode == 0:
                        break
                    time.sleep(0.1)
                self.assertEqual(health.returncode, 0, health.stdout + health.stderr)
                said = compose("run", "--rm", "-T", "client", "run", "--", "/programs/program")
                self.assertRegex(said.stdout, r"(?m)^PASS ")
                self.assertIn("Outboard CPU device", compose("run", "--rm", "-T", "client", "devices").stdout)
            finally:
                compose("down", check=False)
                run(podman, "network", "rm", "-f", "outboard-test_default", check=False, env=environment)


if __name__ == "__main__":
    unittest.main()
