#!/usr/bin/env python3
"""What is done with a driver function is said by words on its line in src/api, and decided nowhere else by its name or
opcode.

No source outside src/api compares anything with a function's name, prefix or suffix, compares an opcode with a
function's, or has a case label of one; nor does the back-end, a device or a shim name a function's opcode at all.
(The front-end names one to send a request, which is no decision.) The places that may are listed here, each with its
reason; an entry that is not needed any more fails, too.

usage: behaviour_words.py ROOT | behaviour_words.py --self-test
"""
import pathlib
import re
import sys
import tempfile

FUNCTION = r"(?:cu|cl|nvml)[A-Z]\w*"
OPCODE = rf"(?:\w+::)*opcode::{FUNCTION}"
TEXT = rf'"(?:{FUNCTION}|(?:cu|cl|nvml)|_pts[zd]?|_ptds)"'
DECISIONS = [
    (re.compile(rf"\b(?:starts_with|ends_with|find|contains)\s*\(\s*{TEXT}"), "looks for a part of a function's name"),
    (re.compile(rf"[=!]=\s*{TEXT}|{TEXT}\s*[=!]="), "compares with a function's name"),
    (re.compile(rf"[=!]=\s*{OPCODE}|{OPCODE}\s*[=!]="), "compares with a function's opcode"),
    (re.compile(rf"\bcase\s+(?:{OPCODE}|(?:cu|nvml)[A-Z]\w*)\s*:"), "has a case label of a function"),
]
NAMED = re.compile(OPCODE)
FOLDERS_WITHOUT_NAMES = ("src/backend/", "src/device/", "src/shim/")

# File: reason. As short as possible: a word on the line is the way.
MAY_DECIDE = {
    "src/backend/cuda/any_thread.cc": "reads the stream, or the attributes of a launch, where a few posts have it",
    "src/backend/opencl/dispatch.cc": "the generated handlers' hand-written parts, each in the template of its function",
    "src/shim/nvml/exports.cc": "refused lines have no prototype: their names say which take a device",
    "src/shim/opencl/entries.cc": "a loader asks for the one extension function by name",
}
MAY_NAME = {
    "src/backend/cuda/chapters/peer.cc": "takes back the record of the request that it undoes",
    "src/backend/cuda/graph/graph_records.cc": "writes the requests that make a graph again",
    "src/backend/cuda/memory/virtual_ranges.cc": "writes the requests that make mappings again",
    "src/backend/cuda/objects.cc": "records of one function end with a value of 8 bytes instead of 4",
    "src/backend/cuda/records.cc": "writes the requests that make memory again",
}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def findings(root):
    """{file: [(line, what)]} of every decision outside src/api and the tests."""
    found = {}
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".cc", ".hh") or name.startswith("src/api/") or "_test." in name:
            continue
        text = without_comments(path.read_text())
        seen = [(text.count("\n", 0, m.start()) + 1, what) for pattern, what in DECISIONS for m in pattern.finditer(text)]
        if name.startswith(FOLDERS_WITHOUT_NAMES):
            seen += [(text.count("\n", 0, m.start()) + 1, f"names {m.group(0)}") for m in NAMED.finditer(text)]
        if seen:
            found[name] = sorted(seen)
    return found


def check(root):
    found, bad = findings(root), []
    for name, seen in found.items():
        for line, what in seen:
            decides = not what.startswith("names ")
            if name not in MAY_DECIDE and (decides or name not in MAY_NAME):
                bad.append(f"{name}:{line}: {what}; say it by a word on the function's line (src/api/describe.hh)")
    for name in sorted({**MAY_DECIDE, **MAY_NAME}):
        if name not in found:
            bad.append(f"tests/house/behaviour_words.py: {name} needs its entry no more")
    return bad


def self_test():
    sources = {
        "front.cc": ['name.starts_with("cuMemcpy")', 'name == "cuEventCreate"', 'name.ends_with("_ptsz")',
                     "if (Op == api::opcode::cuArrayDestroy)", "api::opcode::cuCtxSynchronize != code",
                     "case opcode::cuLaunchKernel:", "case cuLaunchKernel:"],
        "fine.cc": ["request r(api::opcode::cuMemFree_v2, own);", "// name == \"cuEventCreate\"",
                    "case CUDA_ERROR_ASSERT:", 'entry<F>("cuMemFree_v2")', "c.driver().cuMemFree_v2(address)"],
    }
    for folder in ("frontend", "backend"):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "src" / folder).mkdir(parents=True)
            for name, lines in sources.items():
                (root / "src" / folder / name).write_text("\n".join(lines))
            found = findings(root)
            wrong = {line for line, _ in found.get(f"src/{folder}/front.cc", [])}
            assert wrong == set(range(1, 8)), (folder, found)
            named = found.get(f"src/{folder}/fine.cc", [])
            assert [line for line, _ in named] == ([1] if folder == "backend" else []), (folder, named)


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    bad = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
