#!/usr/bin/env python3
"""Messages of the programs name sections of the documents: each of them must be there. What looks like "docs/NAME.md" or
"docs/NAME.md#anchor" in a text of src/ is one.

usage: sections.py ROOT, or sections.py --self-test"""
import pathlib
import re
import sys

import links

TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SECTION = re.compile(r"docs/[\w/-]+\.md(?:#[\w-]*)?")


def sections(source):
    return [found for text in TEXT.findall(source) for found in SECTION.findall(text)]


def problem(root, section):
    """What is wrong with it; empty: nothing."""
    path, _, anchor = section.partition("#")
    document = root / path
    if not document.exists():
        return f"{path} is not there"
    if "#" in section and anchor not in links.anchors(document.read_text()):
        return f"{section}: no heading there has that anchor"
    return ""


def problems(root):
    for path in sorted(root.glob("src/**/*")):
        if path.suffix in (".cc", ".hh", ".def") and not path.stem.endswith("_test"):
            for section in sections(path.read_text()):
                if said := problem(root, section):
                    yield f"{path.relative_to(root)}: {said}"


def self_test(root):
    assert sections('f("see docs/a.md#b, or (docs/c/d.md)"); // docs/no.md') == ["docs/a.md#b", "docs/c/d.md"]
    assert problem(root, "docs/nowhere.md") and problem(root, "docs/command.md#nowhere")
    assert not problem(root, "docs/command.md#encryption") and not problem(root, "docs/install.md")
    print("sections: the rule bites")


def main():
    if sys.argv[1] == "--self-test":
        return self_test(pathlib.Path(__file__).resolve().parents[2])
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "sections: each section that a message names is there")
    return sys.exit(1 if found else 0)


main()
