"""`outboard settings`: the values that hold and what set them; the documents that follow from the same table."""
import json
import pathlib
import unittest

from harness import DaemonTest, clean_environment, run

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Settings(DaemonTest):
    def test_values_and_what_set_them(self):
        path = pathlib.Path(self.folder, "o.toml")
        path.write_text('log = "warn"\n\n[limits]\nrunning = 3\n')
        done = run("settings", "--config", path, "--json", environment=clean_environment(OUTBOARD_WAIT_SECONDS="9"))
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = {one["key"]: (one["value"], one["from"]) for one in json.loads(done.stdout)}
        self.assertEqual(shown["log"], ("warn", f"{path}:1"))
        self.assertEqual(shown["limits.running"], ("3", f"{path}:4"))
        self.assertEqual(shown["wait_seconds"], ("9", "OUTBOARD_WAIT_SECONDS"))
        self.assertEqual(shown["limits.sessions"], ("1024", "default"))
        lines = run("settings", "--config", path).stdout.splitlines()
        self.assertEqual(len(lines), 1 + len(shown))
        self.assertIn(["limits.running", "3", f"{path}:4"], [line.split() for line in lines])

    def test_the_example_is_the_one_of_the_packages_and_is_taken_as_it_is(self):
        example = run("settings", "--example").stdout
        self.assertEqual((ROOT / "packaging/outboard.toml").read_text(), example,
                         "print it anew: outboard settings --example > packaging/outboard.toml")
        path = pathlib.Path(self.folder, "o.toml")
        # Each value that the example shows as a default is one that its key takes.
        rows, tables = example.split("\n# Who may do what", 1)
        values = [line[2:] if line.startswith("# ") and " = " in line and not line.endswith(('""', "[]"))
                  and line.split()[1].islower() and line.split()[2] == "=" else line for line in rows.splitlines()]
        path.write_text("\n".join(line for line in values if "NAME" not in line) + "\n")
        self.assertIn("running = 0", path.read_text())
        done = run("settings", "--config", path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        plain = {one["key"]: one["value"] for one in json.loads(run("settings", "--json").stdout)}
        self.assertEqual({one["key"]: one["value"] for one in json.loads(done.stdout)}, plain)

        # So is the table of an identity.
        lines = [line[2:] for line in tables.splitlines()
                 if line.startswith("# [identity") or " = " in line and "library" not in line]
        path.write_text("\n".join(lines).replace("NAME", "lab-a"))
        done = run("settings", "--config", path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = {one["key"]: one["value"] for one in json.loads(done.stdout) if one["key"].startswith("identity.")}
        self.assertEqual(shown["identity.lab-a.rights"], "run, list-own, checkpoint-own")
        self.assertEqual((shown["identity.lab-a.sessions"], shown["identity.default.sessions"]), ("4", "1"))
        self.assertIn("identity.lab-a.users", run("settings", "--config", path).stdout)

    def test_the_document_follows_from_the_table(self):
        self.assertEqual((ROOT / "docs/settings.md").read_text(), run("settings", "--document").stdout,
                         "print it anew: outboard settings --document > docs/settings.md")

    def test_workers_are_told_what_they_read(self):
        daemon = self.serve(config='[cpu]\ncores = 3\n[devices]\nname = "Lab {name}"\n')
        client = self.begin(daemon)
        words = pathlib.Path(f"/proc/{daemon.sessions()[0]['worker']}/cmdline").read_bytes().split(b"\0")
        self.assertIn(b"cpu.cores=3", words)
        self.assertIn(b"devices.name=Lab {name}", words)
        client.close()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
