"""`outboard cdi generate`: what container engines are told of a server's devices."""
import json
import os
import pathlib
import unittest

from harness import DaemonTest, run


class Cdi(DaemonTest):
    def setUp(self):
        super().setUp()
        self.library = pathlib.Path(self.folder, "lib")
        self.library.mkdir()
        for name in ("libcuda.so.1", "libnvidia-ml.so.1", "outboard-tls.so", "libcupti.so.12", "libcupti.so.13"):
            (self.library / name).touch()

    def generate(self, *flags):
        done = run("cdi", "generate", "--library", self.library, "--output", "-", *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_a_server_of_this_machine(self):
        daemon = self.serve()
        spec = self.generate("--server", daemon.unix)
        self.assertEqual((spec["kind"], spec["cdiVersion"]), ("outboard.dev/gpu", "0.5.0"))
        count = len(json.loads(run("devices", "--json", "--server", daemon.unix).stdout))
        self.assertEqual([device["name"] for device in spec["devices"]], ["all", *map(str, range(count))])
        for device in spec["devices"]:
            self.assertIn(f"OUTBOARD_SERVER={daemon.unix}", device["containerEdits"]["env"])
        self.assertIn("CUDA_VISIBLE_DEVICES=0", spec["devices"][1]["containerEdits"]["env"])
        mounts = {mount["containerPath"]: mount for mount in spec["containerEdits"]["mounts"]}
        machine = os.uname().machine
        for place in (f"/usr/lib/{machine}-linux-gnu", "/usr/lib64"):
            self.assertEqual(mounts[f"{place}/libcuda.so.1"]["hostPath"], str(self.library / "libcuda.so.1"))
            self.assertIn("ro", mounts[f"{place}/libcuda.so"]["options"])
            for name in ("outboard-tls.so", "libcupti.so.12", "libcupti.so.13"):
                self.assertEqual(mounts[f"{place}/{name}"]["hostPath"], str(self.library / name))
        socket = os.path.dirname(daemon.unix[5:])
        self.assertEqual(mounts[socket]["hostPath"], socket, "the folder: a server that starts anew makes a new socket")

    def test_a_server_elsewhere_with_a_token(self):
        token = self.token_file()
        spec = self.generate("--server", "tcp:gpubox.invalid", "--token-file", token)
        self.assertEqual([device["name"] for device in spec["devices"]], ["all"])
        environment = spec["devices"][0]["containerEdits"]["env"]
        self.assertIn("OUTBOARD_SERVER=tcp:gpubox.invalid:26882", environment)
        inside = next(line.split("=")[1] for line in environment if line.startswith("OUTBOARD_TOKEN_FILE="))
        mount = next(m for m in spec["containerEdits"]["mounts"] if m["containerPath"] == inside)
        self.assertEqual(mount["hostPath"], str(token))

    def test_what_a_server_elsewhere_is_believed_by(self):
        folder = pathlib.Path(self.folder)
        settings, known, spec = folder / "o.toml", folder / "known", folder / "cdi/outboard.json"
        known.write_text("gpubox.invalid:26882 SHA256:one\nother:26882 SHA256:two\n")
        settings.write_text('server = "tcp:gpubox.invalid"\ntls = "require"\ncupti = false\n[certificates]\n'
                            f'known_servers = "{known}"\nclient = "/c.pem"\nclient_key = "/c.key"\nserver_authority = "/a.pem"\n')
        done = run("cdi", "generate", "--library", self.library, "--output", spec, "--config", settings)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        described = json.loads(spec.read_text())
        environment = dict(line.split("=", 1) for line in described["devices"][0]["containerEdits"]["env"])
        mounts = {mount["containerPath"]: mount["hostPath"] for mount in described["containerEdits"]["mounts"]}
        self.assertEqual(environment["OUTBOARD_TLS"], "require")
        for name, path in (("CLIENT_CERTIFICATE", "/c.pem"), ("CLIENT_KEY", "/c.key"), ("SERVER_AUTHORITY", "/a.pem"),
                           ("KNOWN_SERVERS", str(folder / "cdi/outboard.known_servers"))):
            self.assertEqual(mounts[environment["OUTBOARD_" + name]], path)
        self.assertEqual((folder / "cdi/outboard.known_servers").read_text(), "gpubox.invalid:26882 SHA256:one\n")
        self.assertFalse([path for path in mounts if "cupti" in path])

    def test_it_writes_a_file_and_says_how_to_go_on(self):
        path = pathlib.Path(self.folder, "cdi", "outboard.json")
        done = run("cdi", "generate", "--library", self.library, "--output", path, "--server", "unix:/none/s")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("podman run --rm --device outboard.dev/gpu=all", done.stdout)
        self.assertEqual(json.loads(path.read_text())["kind"], "outboard.dev/gpu")
        done = run("cdi", "generate", "--library", self.library, "--output", "/proc/none/x", "--server", "unix:/none/s")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--output", done.stderr)
        self.assertEqual(run("cdi", "make").returncode, 2)
        self.assertEqual(run("cdi").returncode, 2)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
