"""Man pages, completion and docs/verbs.md say what `--help` says; bash completes with what the command prints."""
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


def verbs():
    text = run("--help").stdout.partition("Subcommands:")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+)", text, re.MULTILINE)


def flags_of(verb):
    return set(re.findall(r"(?<![\w-])--?\w[\w-]*", re.split(r"\n\n", run(verb, "--help").stdout.partition("Options:")[2])[0]))


def complete(script, *words):
    """What bash offers for the last of the words behind `outboard`."""
    listed = " ".join(f"'{word}'" for word in ("outboard",) + words)
    program = f"{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words)}; _outboard; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr == "", done.stderr
    return set(done.stdout.split())


class Pages(unittest.TestCase):
    def test_verbs_are_found(self):
        self.assertLessEqual({"serve", "run", "devices", "sessions", "doctor", "settings", "completion"}, set(verbs()))
        self.assertIn("--listen", flags_of("serve"))

    def test_a_page_for_each_verb_names_its_flags(self):
        whole = run("help", "--manual").stdout
        for verb in verbs():
            self.assertIn(f"outboard {verb}", whole)
            page = run("help", "--manual", verb).stdout
            self.assertTrue(page.startswith(f".TH OUTBOARD\\-{verb.upper()} 1 "), page[:60])
            named = {flag.replace("\\-", "-") for flag in re.findall(r"\\-[\w\\-]+", page.partition(".SH OPTIONS")[2].replace(r"\fR", " "))}
            self.assertLessEqual(flags_of(verb), named)
        self.assertNotIn("worker", whole)
        self.assertIn("OUTBOARD_WAIT_SECONDS", whole)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_pages_are_roff(self):
        for verb in [[]] + [[verb] for verb in verbs()]:
            page = run("help", "--manual", *verb).stdout
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True,
                                  timeout=20, check=True)
            self.assertEqual(done.stderr, "", verb)

    def test_the_document_is_printed(self):
        self.assertEqual((ROOT / "docs/verbs.md").read_text(), run("help", "--document").stdout,
                         "print it anew: outboard help --document > docs/verbs.md")

    def test_bash_completes(self):
        script = run("completion", "bash").stdout
        self.assertEqual(complete(script, "se"), {"serve", "sessions", "settings"})
        for verb in verbs():
            self.assertLessEqual(flags_of(verb), complete(script, verb, "-"), verb)
        self.assertEqual(complete(script, "serve", "--device", ""), {"auto", "vendor", "cpu"})
        self.assertEqual(complete(script, "completion", ""), {"bash", "zsh", "fish"} | flags_of("completion"))
        self.assertIn("/etc/passwd", complete(script, "serve", "--config", "/etc/passw"))
        # Behind run's own flags a program is completed.
        self.assertIn("bash", complete(script, "run", "--server", "unix:/x", "bas"))
        self.assertIn("bash", complete(script, "run", "--", "bas"))
        self.assertIn("/etc/passwd", complete(script, "run", "cat", "/etc/passw"))
        self.assertEqual(complete(script, "run", "--serv"), {"--server"})

    def test_other_shells_take_their_scripts(self):
        for shell in ("zsh", "fish"):
            script = run("completion", shell).stdout
            for verb in verbs():
                for flag in flags_of(verb):
                    self.assertIn(flag if shell == "zsh" else flag.lstrip("-"), script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=20)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run("completion", "csh")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("bash, zsh, fish", done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
