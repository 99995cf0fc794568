#!/usr/bin/env python3
"""What README.md and docs/ tell a stranger to run or to read exists: ./programs, linked files and their anchors,
folders of the map, and every `outboard VERB` is a verb that the interface has."""
import pathlib
import re
import sys

import links

VERBS = {"serve", "run", "devices", "sessions", "doctor", "settings", "completion", "cdi", "bench", "help", "version"}
MADE = ("build/", "outboard_")  # made by the commands themselves, and by scripts/release; my_... is the reader's own


def blocks(text):
    return re.findall(r"```(?:sh|console|bash)?\n(.*?)```", text, re.DOTALL)


def problems(root, document):
    text = document.read_text()
    name = document.relative_to(root).as_posix()
    yield from links.broken(document, root)
    commands = re.findall(r"(?<![\w/.\"])\./([\w./-]+)", text) + re.findall(r"(?<![\w/.])(scripts/[\w-]+)", text)
    compiled = re.findall(r"nvcc -o ([\w-]+)", text)
    for command in commands:
        path = root / command
        if not command.startswith((*MADE, "my_")) and command not in compiled and not path.exists():
            yield f"{name}: names {command}, which is not there"
    if document.name in ("README.md", "overview.md"):
        for block in blocks(text):
            for verb in re.findall(r"^\$?\s*(?:\S*/)?outboard\s+([a-z]+)", block, re.MULTILINE):
                if verb not in VERBS:
                    yield f"{name}: `outboard {verb}`: no such verb"
    if document.name == "overview.md":
        # The map names every folder of src/ and of the top, and only those that exist.
        for folder in re.findall(r"^\|\s*`([\w./]+)/`", text, re.MULTILINE):
            if not (root / folder).is_dir():
                yield f"{name}: the map names {folder}/, which is not there"
        top = [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
        for path in sorted([p for p in (root / "src").iterdir() if p.is_dir()] + top):
            folder = path.relative_to(root).as_posix()
            if folder not in ("build", "src") and f"`{folder}/`" not in text:
                yield f"{name}: the map lacks {folder}/"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    documents = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [problem for document in documents for problem in problems(root, document)]
    for program in ("quickstart", "check", ".ci/run"):
        if not (root / program).stat().st_mode & 0o111:
            found.append(f"{program} is not executable")
    print("\n".join(found) or f"{len(documents)} documents: what they name exists")
    sys.exit(1 if found else 0)


main()
