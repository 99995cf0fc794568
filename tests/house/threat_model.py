#!/usr/bin/env python3
"""Each threat of docs/threat-model.md (a heading with ###) says what can be tried, what holds it and which test shows
it: "Attack", "Defence", "Shown by" and, if need be, "Remains", in this order. "Shown by" names a test that exists (a path
with a pattern, a program of tests/programs, a fuzz target), or says "no test". Every path of the document exists.

usage: threat_model.py ROOT, or threat_model.py --self-test"""
import pathlib
import re
import sys
import tempfile

SECTION = re.compile(r"^### (.*?)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
LABEL = re.compile(r"^- \*\*([A-Z][a-z ]+):\*\*", re.MULTILINE)
ORDERS = (["Attack", "Defence", "Shown by"], ["Attack", "Defence", "Shown by", "Remains"])
PATH = re.compile(r"`((?:src|tests|fuzz)/[\w/.*-]+)`")
FUZZ = re.compile(r"fuzz targets? ((?:`\w+`(?:,| and|) ?)+)")


def problems(root):
    text = (root / "docs/threat-model.md").read_text()
    for path in sorted(set(PATH.findall(text))):
        if not list(root.glob(path)):
            yield f"{path} is not there"
    for name in sorted({word for found in FUZZ.findall(" ".join(text.split())) for word in re.findall(r"`(\w+)`", found)}):
        if not (root / f"fuzz/{name}.cc").exists():
            yield f"fuzz target {name} is not there"
    for title, body in SECTION.findall(text):
        labels = LABEL.findall(body)
        if labels not in ORDERS:
            yield f"'{title}' has {', '.join(labels) or 'nothing'}; it wants Attack, Defence, Shown by, and may have Remains"
            continue
        shown = re.search(r"\*\*Shown by:\*\*(.*?)(?=^- \*\*|\Z)", body, re.DOTALL | re.MULTILINE)[1]
        tests = [path for path in PATH.findall(shown) if path.startswith("tests/") or "_test." in path]
        if not tests and not shown.split()[:2] == ["no", "test;"]:
            yield f"'{title}': no test shows it"


GOOD = """# T\n\n### A\n\n- **Attack:** a.\n- **Defence:**\n    - b (`src/a.cc`)\n- **Shown by:** `tests/a_test.py`;
  fuzz target\n  `a`\n- **Remains:** c.\n\n## B\n### D\n- **Attack:** a.\n- **Defence:** b.\n- **Shown by:** no test; why\n"""
BAD = """### A\n- **Attack:** a.\n- **Defence:** b (`src/gone.cc`).\n- **Shown by:** `src/a.cc`; fuzz targets `a` and `b`
### B\n- **Attack:** a.\n- **Shown by:** `tests/a_test.py`\n## C\n"""


def self_test():
    """Each rule finds what breaks it, in a small tree, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("docs/threat-model.md", "src/a.cc", "tests/a_test.py", "fuzz/a.cc"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(GOOD)
        assert not list(problems(root)), list(problems(root))
        (root / "docs/threat-model.md").write_text(BAD)
        said = list(problems(root))
        for part in ("src/gone.cc is not", "fuzz target b is", "'A': no test", "'B' has Attack, Shown by"):
            assert any(part in problem for problem in said), (part, said)
        assert len(said) == 4, said
    print("threat_model: the rules bite")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "threat_model: every threat has its test")
    return sys.exit(1 if found else 0)


main()
