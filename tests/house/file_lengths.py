#!/usr/bin/env python3
"""Small files: reports the shape of the code and fails on a file above 600 lines (tables, *.def, excepted)."""
import sys

import tree

LIMIT = 600


def main():
    root = sys.argv[1]
    lengths = []
    for path in tree.files(root):
        if path.suffix in tree.CODE + (".py", ".cmake", ".sh"):
            with open(path, errors="replace") as file:
                lengths.append((sum(1 for _ in file), path.relative_to(root).as_posix()))
    lengths.sort()
    count = len(lengths)
    print(f"{count} files: median {lengths[count // 2][0]} lines, 90th percentile {lengths[count * 9 // 10][0]}, "
          f"longest {lengths[-1][0]} ({lengths[-1][1]})")
    over = [entry for entry in lengths if entry[0] > LIMIT]
    for length, name in over:
        print(f"{name}: {length} lines; the limit is {LIMIT}: does it do two jobs?")
    sys.exit(1 if over else 0)


main()
