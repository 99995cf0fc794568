#!/usr/bin/env python3
"""clang-format decides the layout. usage: format.py ROOT CLANG_FORMAT"""
import os
import re
import subprocess
import sys

import tree


def main():
    root, formatter = sys.argv[1:3]
    paths = tree.code(root)
    share = max(1, len(paths) // (os.cpu_count() or 1) + 1)
    runs = [subprocess.Popen([formatter, "--dry-run", "-Werror", *paths[at:at + share]], cwd=root,
                             stderr=subprocess.PIPE, text=True) for at in range(0, len(paths), share)]
    names, failed = set(), False
    for run in runs:
        _, text = run.communicate()
        found = re.findall(r"^(.+?):\d+:\d+: error: code should be", text, re.MULTILINE)
        names |= {os.path.relpath(name, root) for name in found}
        if run.returncode and not found:
            print(text)
        failed = failed or run.returncode != 0
    for name in sorted(names):
        print(f"{name}: not formatted; run: clang-format -i {name}")
    print(f"{len(paths)} files looked at, {len(names)} not formatted")
    sys.exit(1 if failed else 0)


main()
