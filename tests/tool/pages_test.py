"""Man pages, completion and docs/verbs.md say what `--help` says; bash completes with what the command prints."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import OUTBOARD, run

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


class ZshTerminal:
    """An interactive zsh with our completion and nothing of a user's."""
    PROMPT = "ready:"

    def __init__(self, home):
        pathlib.Path(home, ".zshrc").write_text(
            f"PS1={self.PROMPT}; fpath=({home} $fpath); autoload -Uz compinit; compinit -u -D\n"
            "unsetopt zle_bracketed_paste always_last_prompt; zstyle ':completion:*' list-packed no; LISTMAX=1000\n")
        variables = {"PATH": os.environ["PATH"], "HOME": home, "ZDOTDIR": home, "TERM": "dumb", "COLUMNS": "200"}
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(["zsh", "-d", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=home,
                                        env=variables, start_new_session=True)
        os.close(slave)

    def __enter__(self):
        self.read_until(lambda said: said.rstrip().endswith(self.PROMPT))
        return self

    def read_until(self, enough, seconds=15):
        """What it writes until that is enough, or the time is over."""
        said, until = "", time.monotonic() + seconds
        while not enough(said) and time.monotonic() < until:
            if select.select([self.master], [], [], 0.2)[0]:
                said += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self.master, 1 << 16).decode(errors="replace"))
        return said

    def offers(self, line, *words, seconds=15):
        """It shows these words for the end of this line, or puts the only one there; then the line is emptied."""
        os.write(self.master, line.encode() + b"\t\t")
        said = self.read_until(lambda said: set(words) <= set(re.findall(r"(?<![\w-])-{0,2}\w[\w-]*", said)), seconds)
        os.write(self.master, b"\x15\n")
        self.read_until(lambda rest: rest.rstrip().endswith(self.PROMPT))
        return set(words) <= set(re.findall(r"(?<![\w-])-{0,2}\w[\w-]*", said))

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


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

    def test_the_table_of_verbs_is_printed(self):
        table = run("help", "--table").stdout
        self.assertEqual(re.findall(r"^\| `(\w+)", table, re.MULTILINE), verbs())
        self.assertIn("\n\n" + table + "\n", (ROOT / "docs/command.md").read_text(),
                      "put what outboard help --table prints into docs/command.md")
        # The same words are in each verb's help and its man page, where a link is the name of a document.
        for verb, details in re.findall(r"^\| `(\w+)[^|]*\| (.*) \|$", table, re.MULTILINE):
            words = re.sub(r"\(\[[^]]*\]\((?:#|[^)]*)[^)]*\)\)", "@", details).split("@")
            shown = " ".join(run(verb, "--help").stdout.split())
            page = " ".join(run("help", "--manual", verb).stdout.replace("\\-", "-").split())
            for part in words:
                self.assertIn(part.strip(), shown)
                self.assertIn(part.strip(), page)
            for document in re.findall(r"\(docs/([\w./-]+)", shown):
                self.assertTrue((ROOT / "docs" / document).exists(), document)

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
        done = run("completion", "csh")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("bash, zsh, fish", done.stderr)

    def syntax_of(self, shell):
        script = run("completion", shell).stdout
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return script

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes(self):
        self.syntax_of("fish")
        with tempfile.TemporaryDirectory() as home:
            def offered(line):
                program = f"{OUTBOARD} completion fish | source; complete -C '{line}'"
                done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, timeout=20,
                                      env={"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return {row.split("\t")[0] for row in done.stdout.splitlines()}

            self.assertEqual(offered("outboard se"), {"serve", "sessions", "settings"})
            self.assertLessEqual(flags_of("token") - {"-h"}, offered("outboard token --"))
            self.assertEqual(offered("outboard serve --device "), {"auto", "vendor", "cpu"})
            self.assertLessEqual({"create", "list", "revoke"}, offered("outboard token "))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes(self):
        """In a terminal, because zsh completes nowhere else: what stands there after the tabulator."""
        script = self.syntax_of("zsh")
        with tempfile.TemporaryDirectory() as home:
            pathlib.Path(home, "_outboard").write_text(script)
            with ZshTerminal(home) as zsh:
                self.assertTrue(zsh.offers("outboard se", "serve", "sessions", "settings"))
                self.assertTrue(zsh.offers("outboard run --to", "--token-file"))
                self.assertTrue(zsh.offers("outboard token ", "create", "list", "revoke"))
                self.assertFalse(zsh.offers("outboard se", "bench", seconds=1))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
