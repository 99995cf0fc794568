#!/usr/bin/env python3
"""Small files in small folders: reports the shape of the code and fails on a file above 600 lines (tables, *.def, excepted),
and on a folder of src/ with more than 60 files."""
import collections
import sys

import tree

LIMIT = 600
FOLDER_LIMIT = 60


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
    folders = collections.Counter(path.parent.relative_to(root).as_posix() for path in tree.files(root))
    crowded = [(name, files) for name, files in folders.items() if name.startswith("src/") and files > FOLDER_LIMIT]
    for name, files in crowded:
        print(f"{name}: {files} files; the limit is {FOLDER_LIMIT}: what belongs together gets a folder of its own")
    sys.exit(1 if over or crowded else 0)


main()
