#!/usr/bin/env python3
"""Small files and small folders: reports the shape of the code, and fails on a file above 600 lines (tables, *.def,
excepted) and on a folder that holds more than 60 source files itself."""
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
    folders = collections.Counter(name.rpartition("/")[0] for length, name in lengths)
    largest, held = folders.most_common(1)[0]
    print(f"{len(folders)} folders, the largest with {held} files ({largest})")
    full = [folder for folder, files in folders.items() if files > FOLDER_LIMIT]
    for folder in full:
        print(f"{folder}: {folders[folder]} source files; the limit is {FOLDER_LIMIT}: which subjects could have a folder?")
    sys.exit(1 if over or full else 0)


main()
