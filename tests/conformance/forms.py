#!/usr/bin/env python3
"""Counts the forms of instructions (opcode with modifiers) in PTX files: `forms.py FOLDER_75 FOLDER_90 > forms.txt`.

Each folder holds the PTX of one target. Columns of the result: form, files of the first folder that contain it, files
of the second.
"""
import collections
import pathlib
import re
import sys


def forms(text):
    """The forms in one file, from the statements inside function bodies."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    found = set()
    depth = 0
    in_list = False  # the braces of a vector operand, or of a list of arguments
    for statement in re.finditer(r"[^;{}]*[;{}]", text):
        end = statement.group(0)[-1]
        words = statement.group(0)[:-1].strip()
        words = re.sub(r"^([\w$%]+:\s*)+", "", words)
        if depth + (end == "{") > 0 and not in_list and words and not words.startswith("."):
            opcode = re.match(r"(?:@!?%?[\w$]+\s+)?([a-z][a-z0-9]*(?:[.:][\w:]+)*)(?:\s|$)", words)
            if opcode:
                found.add(opcode.group(1))
        if end == "{":
            depth += 1
            in_list = depth > 1 and re.match(r"(@!?%?\w+\s+)?[a-z]", words) is not None
        elif end == ";":
            in_list = False
        else:
            depth -= 1
    return found


def main():
    counts = [collections.Counter(), collections.Counter()]
    for count, folder in zip(counts, sys.argv[1:3]):
        for file in sorted(pathlib.Path(folder).glob("*.ptx")):
            count.update(forms(file.read_text(errors="replace")))
    for form in sorted(set(counts[0]) | set(counts[1])):
        print(form, counts[0][form], counts[1][form], sep="\t")


main()
