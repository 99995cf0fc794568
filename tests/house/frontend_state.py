#!/usr/bin/env python3
"""CUDA's front-end reaches its state by the lane of the call: process::instance() stands only where the C ABI calls without
one. Requests of hand-written ends are typed by their line: raw_request stands only where the generated ends are made.
usage: frontend_state.py ROOT | --self-test"""
import pathlib
import re
import sys

import tree

LIMIT = 8  # calls of process::instance(): the shim's hooks, exit, fork, the end of a thread, lane::state()
ROOMS = ("src/frontend/cuda", "src/shim/cuda")
RAW = {"src/frontend/cuda/requests.hh", "src/frontend/cuda/remote.hh"}


def faults(root):
    calls = []
    for room in ROOMS:
        for source in sorted((root / room).rglob("*.[ch][ch]")):
            name = str(source.relative_to(root))
            text = re.sub(r"//[^\n]*", "", source.read_text())
            calls += [name] * len(re.findall(r"process::instance\(\)", text))
            if name not in RAW and re.search(r"\braw_request\b", text):
                yield f"{name}: a raw_request; a hand-written end sends request(typed<Op>, ...), call<Op> or post<Op>"
    if len(calls) > LIMIT:
        yield f"process::instance() is called {len(calls)} times, in {', '.join(sorted(set(calls)))}; a call has a lane"


def self_test():
    good = {"src/frontend/cuda/requests.hh": "class raw_request {};\n", "src/shim/cuda/init.cc": "process::instance();\n"}
    wrong = [("src/frontend/cuda/chapters/a.cc", "raw_request r(op, own);\n"),
             ("src/frontend/cuda/chapters/b.cc", "process::instance();\n" * (LIMIT + 1))]
    for extra in [None, *wrong]:
        with tree.small({**good, **dict([extra] if extra else [])}) as root:
            found = list(faults(root))
            if bool(found) != bool(extra):
                sys.exit(f"{extra}: {found}")
    print(f"{len(wrong)} faults are found, and none where there is none")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(faults(pathlib.Path(sys.argv[1])))
    print(f"{len(found)} faults in how the front-end reaches its state and sends", *found, sep="\n")
    sys.exit(1 if found else 0)


main()
