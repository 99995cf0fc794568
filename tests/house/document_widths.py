#!/usr/bin/env python3
"""The prose of documents is at most 120 columns wide. Not prose: headings, rows of tables, fenced code, HTML, and a
line of one word (a link's address) that cannot be shorter.

usage: document_widths.py ROOT, or document_widths.py --self-test"""
import pathlib
import re
import sys
import tempfile

import tree

WIDTH = 120
# Documents with wider prose, and why. One that has none any more must leave the list.
EXEMPT = {
    "docs/coverage.md": "printed by outboard_coverage, with the names of functions of a chapter in one line",
    "docs/coverage-nvml.md": "printed by outboard_coverage nvml, likewise",
    "docs/coverage-opencl.md": "printed by outboard_coverage opencl, likewise",
}
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
BEFORE = re.compile(r"(?:\s*(?:>|[-+*]\s|\d+[.)]\s))*\s*")  # marks of quotations and items of lists
NO_PROSE = ("#", "|", "<")


def wide(text):
    """Line number and width of each line of prose that is too wide."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end():].strip():
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        words = line[BEFORE.match(line).end():]
        if len(line) > WIDTH and not words.startswith(NO_PROSE) and " " in words.rstrip():
            yield number, len(line)


def problems(root, exempt):
    there = set()
    for path in tree.files(root):
        if path.suffix != ".md":
            continue
        name = path.relative_to(root).as_posix()
        there.add(name)
        found = list(wide(path.read_text()))
        if name not in exempt:
            yield from (f"{name}:{number}: {columns} columns; wrap prose at {WIDTH}" for number, columns in found)
        elif not found:
            yield f"{name}: no line is too wide any more: take it out of EXEMPT in tests/house/document_widths.py"
    for name in sorted(set(exempt) - there):
        yield f"{name}: is in EXEMPT of tests/house/document_widths.py, but is not there"


LONG, WORD = "word " * 24 + "x", "x" * 130
GOOD = {
    "README.md": f"# {LONG}\n\n{LONG[1:]}\n\n| {LONG} |\n\n```sh\n{LONG}\n```\n"
                 f"<p>{LONG}</p>\n- [{WORD}](x.md)\n  {WORD}\n",
    "docs/a.md": f"````\n```\n{LONG}\n````\n\n~~~text\n```\n{LONG}\n~~~\n",
    "docs/printed.md": f"- {LONG}\n",
}
BAD = {
    "README.md": f"{LONG}\n```\n{LONG}\n```\n{LONG}\n\n| a |\n",
    "docs/a.md": f"- {LONG[3:]}\n  {LONG[3:]}\n1. {LONG[3:]}\n> {LONG[3:]}\n`{LONG}`\n",
    "docs/printed.md": "Short.\n",
}
SAID = ("README.md:1: 121", "README.md:5: 121", "a.md:3: 121", "a.md:5: 123", "printed.md: no line", "gone.md: is in")


def self_test():
    """The rule finds what breaks it, in a small tree, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()

        def found(files, *exempt):
            for name, text in files.items():
                (root / name).write_text(text)
            return list(problems(root, exempt))

        assert not found(GOOD, "docs/printed.md"), found(GOOD, "docs/printed.md")
        assert len(found(GOOD)) == 1
        said = found(BAD, "docs/printed.md", "docs/gone.md")
        for part in SAID:
            assert any(part in problem for problem in said), (part, said)
        assert len(said) == len(SAID), said
    print("document_widths: the rule bites")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(problems(pathlib.Path(sys.argv[1]), EXEMPT))
    print("\n".join(found) or f"document_widths: no prose above {WIDTH} columns")
    return sys.exit(1 if found else 0)


main()
