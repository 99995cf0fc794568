#!/usr/bin/env python3
"""What a function of CUDA's does is said by its line in src/api/cuda/*.def, and decided in its own handlers (the folders chapters/ and
entries/): no other code compares names, prefixes or opcodes of functions. What still does is in LEFT, which only gets shorter: this test
fails for a new place, and for a number that is too high. To send a request under an opcode is allowed.

usage: function_names.py ROOT | function_names.py --self-test
"""
import pathlib
import re
import sys

# {file: (comparisons, why they stand)}
LEFT = {
    "api/cuda/functions.hh": (2, "what a twin for per-thread streams is called"),
    "frontend/cupti/functions.cc": (1, "the one function that CUPTI has no number for"),
}

OPCODE = r"(?:api::)?(?:opcode::)?cu[A-Z]\w+"
FOUND = [re.compile(text) for text in (
    rf"[=!]= *{OPCODE}\b(?! *\()", r"\bcase (?:(?:api::)?opcode::)?cu[A-Z]\w+:",
    r"\b(?:starts|ends)(?:_with)?\(\"(?:cu[A-Z]|cuda[A-Z]|_pt[sd][sz])", r"\bname(?:\(\))? [=!]= \"cu[A-Z]",
    r"\bname(?:\(\))?\.(?:find|contains|rfind|compare)\(\"(?:cu[A-Z]|Async|D8|D16|D32|Query|Peer)",
    r"\bchapter(?:\(\))? [=!]= \"")]
DECIDES = ("chapters/", "entries/", "device/mock/", "nvml", "opencl")


def comparisons(text):
    return sum(len(p.findall(line.split(" //")[0])) for line in text.splitlines() for p in FOUND)


def violations(source, left):
    bad, seen = [], set()
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.suffix not in (".cc", ".hh") or path.stem.endswith(("_test", "_testing")) or any(d in name for d in DECIDES):
            continue
        n, allowed = comparisons(path.read_text()), left.get(name, (0, ""))[0]
        seen.add(name)
        if n > allowed:
            bad.append(f"src/{name}: {n} comparisons with names or opcodes of functions, {allowed} are left; say it on their lines")
        elif n < allowed:
            bad.append(f"src/{name}: {n} comparisons with names or opcodes of functions; LEFT says {allowed}: take it down")
    return bad + [f"src/{name}: is in LEFT and does not exist" for name in left if name not in seen]


def self_test():
    for text, n in (
            ('if (code == api::opcode::cuMemAlloc_v2) x();', 1), ('  case opcode::cuStreamQuery:', 1), ('  case cuInit:', 1),
            ('name.starts_with("cuMem")', 1), ('starts("cuMem")', 1), ('name.ends_with("_ptsz") || name.ends_with("_ptds")', 2),
            ('f.name == "cuInit"', 1), ('name.find("Async") != npos', 1), ('request r(api::opcode::cuMemAlloc_v2, own);', 0),
            ('x(); // == cuMemAlloc', 0), ('code == cuda_code', 0), ('  if (d.cuStreamQuery(s) == CUDA_SUCCESS) return;', 0),
            ('name == "cubin"', 0), ('chapter == "logs"', 1), ('chapter != current', 0)):
        assert comparisons(text) == n, (text, comparisons(text))
    import tempfile
    with tempfile.TemporaryDirectory() as temporary:
        source = pathlib.Path(temporary)
        (source / "a.cc").write_text("x == opcode::cuInit\n")
        assert violations(source, {"a.cc": (1, "")}) == []
        assert "0 are left" in violations(source, {})[0]
        assert "take it down" in violations(source, {"a.cc": (2, "")})[0]
        assert "does not exist" in violations(source, {"a.cc": (1, ""), "b.cc": (1, "")})[0]


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test()
        sys.exit(0)
    problems = violations(pathlib.Path(sys.argv[1]) / "src", LEFT)
    print("\n".join(problems) or f"function names: {sum(n for n, _ in LEFT.values())} comparisons are left, no new one")
    sys.exit(1 if problems else 0)
