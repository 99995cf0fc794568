#!/usr/bin/env python3
"""docs/behaviours.md names tests that exist, and what it says goes over all transports does. usage: behaviours.py ROOT"""
import pathlib
import re
import sys

NAME = re.compile(r"`([^`]+)`")
UNIT = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
WHOLE = re.compile(r"^(\w+)(?:::(\w+)|\.(\w+))?$")


def rows(text):
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and not set(cells[0]) <= set("-|") and "shown by" not in cells:
            yield cells


class Tests:
    """All that the sources have."""

    def __init__(self, root):
        lists = (root / "tests/programs/CMakeLists.txt").read_text()
        self.everywhere = set(re.search(r"set\(everywhere([^)]*)\)", lists)[1].split())
        programs = root / "tests/programs"
        self.programs = {path.stem for path in programs.rglob("*") if path.is_file() and path.suffix in (".cu", ".cc", "")}
        self.unit = {".".join(found) for path in [*root.glob("src/**/*.cc"), *root.glob("tests/**/*.cc")]
                     for found in UNIT.findall(path.read_text(errors="replace"))}
        self.python = {path.name[:-len("_test.py")]: set(re.findall(r"^    def (test_\w+)", path.read_text(), re.MULTILINE))
                       for path in root.glob("tests/*/*_test.py")}

    def has(self, name):
        file, function, unit = WHOLE.match(name).groups()
        if function:
            return function in self.python.get(file, ())
        return name in self.unit if unit else file in self.programs | self.python.keys() or file in self.everywhere


def problems(root):
    tests = Tests(root)
    text = (root / "docs/behaviours.md").read_text()
    count = 0
    for what, shown, over in rows(text):
        names = [name for name in NAME.findall(shown) if WHOLE.match(name)]
        if not names and "](" not in shown:
            yield f"nothing shows: {what}"
        for name in names:
            count += 1
            if not tests.has(name):
                yield f"no such test: {name}"
            # "all" says so of each program of the row that is named alone.
            program = WHOLE.match(name)[2] is None and WHOLE.match(name)[3] is None
            if over.startswith("all") and program and name not in tests.everywhere | {"huge_copies"}:
                yield f"{name} does not go over every transport (tests/programs/CMakeLists.txt)"
    print(f"{count} tests named")


def main():
    found = sorted(set(problems(pathlib.Path(sys.argv[1]))))
    print("\n".join(found) or "all there, and run as it says")
    sys.exit(1 if found else 0)


main()
