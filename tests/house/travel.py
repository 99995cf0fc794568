#!/usr/bin/env python3
"""The lines of src/api/cuda/*.def say how functions travel, and nothing else does: a CUSTOM line has a request or a via (a
per-thread twin is one of a line that has), a LOCAL line and a generated one neither; the back-end has a handler for every
request, of that name, in one place, and for no other line; no list of functions binds handlers.
usage: travel.py ROOT | --self-test"""
import pathlib
import re
import sys

import tree
from tables import lines

HANDLER = re.compile(r"^outcome (?:ends::)?(cu[A-Z]\w*)\(", re.MULTILINE)
TWIN = re.compile(r"_pt[sd][sz]$")


def faults(root):
    all_lines = list(lines(root))
    asks = {name for _, name, words in all_lines if any(word.startswith("request ") for word in words)}
    known = {name for _, name, _ in all_lines}
    for kind, name, words in all_lines:
        travels = [word for word in words if re.match(r"(request|via) ", word)]
        if kind != "CUSTOM" and travels:
            yield f"{name}: a {kind} line says {', '.join(travels)}"
        if kind == "CUSTOM" and TWIN.search(name) and (travels or TWIN.sub("", name) not in known):
            yield f"{name}: a twin says how it travels, or is one of nothing"
        if kind == "CUSTOM" and not TWIN.search(name) and not travels:
            yield f"{name}: a CUSTOM line without request or via"
    handlers = {}
    for source in sorted(root.glob("src/backend/**/*.cc")):
        if "opencl" not in source.parts and "nvml" not in source.parts:
            for name in HANDLER.findall(source.read_text()):
                handlers.setdefault(name, []).append(str(source.relative_to(root)))
    for name in sorted(asks - set(handlers)):
        yield f"{name}: has a request and no handler"
    for name in sorted(set(handlers) - asks):
        yield f"{name}: has a handler ({handlers[name][0]}) and no request"
    for name, places in handlers.items():
        if len(places) > 1:
            yield f"{name}: handlers in {', '.join(places)}"
    for table in sorted(root.glob("src/backend/cuda/**/*.def")):
        for name in re.findall(r"^\w+\((cu[A-Z]\w*)", table.read_text(), re.MULTILINE):
            yield f"{table.relative_to(root)}: lists {name}; the line in src/api/cuda is the place"


def self_test():
    tables = {"src/api/cuda/a.def": "CUSTOM(cuA, in p; request a_body)\nCUSTOM(cuA_ptsz, in p)\nCUSTOM(cuB, ; via cuA)\nLOCAL(cuC, in p)\n",
              "src/backend/cuda/a.cc": "outcome ends::cuA(call& c, const marshal::a_body& body) {\n}\n"}
    wrong = [("src/api/cuda/a.def", "LOCAL(cuC", "CUSTOM(cuC"), ("src/api/cuda/a.def", "LOCAL(cuC, in p)", "LOCAL(cuC, in p; via cuA)"),
             ("src/api/cuda/a.def", "CUSTOM(cuA_ptsz, in p)", "CUSTOM(cuA_ptsz, in p; via cuB)"), ("src/backend/cuda/a.cc", "cuA", "cuB"),
             ("src/api/cuda/a.def", "cuA_ptsz", "cuD_ptsz"), ("src/backend/cuda/more.def", "", "HANDLER(cuA)\n")]
    for path, old, new in [("src/backend/cuda/more.def", "", ""), *wrong]:
        with tree.small({**tables, path: tables.get(path, "").replace(old, new, 1)}) as root:
            found = list(faults(root))
            if bool(found) != bool(new):
                sys.exit(f"{path} with {new!r}: {found}")
    print(f"{len(wrong)} faults are found, and none where there is none")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(faults(pathlib.Path(sys.argv[1])))
    print(f"{len(found)} faults in how functions travel", *found, sep="\n")
    sys.exit(1 if found else 0)


main()
