#!/usr/bin/env python3
"""The rules of style that a machine can tick: headers open with a comment and #pragma once, code files with a comment,
a TODO says its kind and `now` is none, no tabs, no trailing blanks, no binary or generated file."""
import re
import sys

import tree

TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(\((\w+)\))?")
BINARY_ALLOWED = ("docs/", "fuzz/corpus/")  # pictures; bytes that a parser once took


def problems(path, name):
    data = path.read_bytes()
    if b"\0" in data:
        if not name.startswith(BINARY_ALLOWED):
            yield f"{name}: a binary file"
        return
    if path.suffix in (".svg", ".tsv", ".csv") or name.startswith("fuzz/corpus/"):
        return
    text = data.decode(errors="replace")
    if path.suffix == ".hh":
        if not text.startswith("//"):
            yield f"{name}:1: a header opens with a comment: what it is, who owns it, which thread may call"
        if "\n#pragma once\n" not in text:
            yield f"{name}:1: no #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if line != line.rstrip() and path.suffix != ".md":
            yield f"{where}: blanks at the end of the line"
        if "\t" in line and path.suffix in tree.CODE + (".py", ".cmake"):
            yield f"{where}: a tab"
        found = TODO.search(line)
        if found and name != "tests/house/style.py":
            if found.group(1) != "TODO" or not found.group(3):
                yield f"{where}: write TODO(kind): and what"
            elif found.group(3) == "now":
                yield f"{where}: TODO(now) is to be done now"


def main():
    root = sys.argv[1]
    found = []
    paths = tree.files(root)
    for path in paths:
        found += problems(path, path.relative_to(root).as_posix())
    print("\n".join(found) or f"style: {len(paths)} files, nothing to say")
    sys.exit(1 if found else 0)


main()
