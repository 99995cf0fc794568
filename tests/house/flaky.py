#!/usr/bin/env python3
"""tests/flaky.txt lets a test fail once, so each of its lines has to be right: the test exists, is named once, and has a
reason that says what outside of the test makes it fail.

usage: flaky.py ROOT | flaky.py --self-test
"""
import pathlib
import re
import sys

import tree

MOST = 30  # lines; more would hide races
LEAST_WORDS = 8  # of a reason
PREFIX = re.compile(r"^(?:arm64_|armhf_)?(?:system|opencl|bench|nvml|tool|errors|session)_")
HISTORY = re.compile(r"\b(?:second try|passed (?:alone|later|again)|earlier runs?|failed once|not looked for)\b")


def problems(listed, defined):
    """`listed`: lines of flaky.txt; `defined`: the words of the CMakeLists.txt that make tests."""
    seen = set()
    lines = [line for line in listed.splitlines() if line and not line.startswith("#")]
    if len(lines) > MOST:
        yield f"{len(lines)} tests may be flaky, {MOST} are allowed"
    for line in lines:
        name, _, reason = line.partition(" ")
        stem = PREFIX.sub("", name)
        if name in seen:
            yield f"{name} is named twice"
        seen.add(name)
        # A name may be put together of several words there: clblast_xaxpy_part.
        pieces = {piece for word in defined for piece in word.split("_")}
        if not {name, stem} & defined and not set(stem.split("_")) <= pieces:
            yield f"{name}: no CMakeLists.txt makes such a test"
        if len(reason.split()) < LEAST_WORDS:
            yield f"{name}: no reason"
        if found := HISTORY.search(reason):
            yield f"{name}: \"{found[0]}\" tells what happened, not what outside of the test makes it fail"


def self_test():
    good = "# a comment\nsystem_storm wants a process gone within a second, which takes longer here\n"

    def found(listed):
        return list(problems(listed, {"storm", "opencl_clblast_", "_part", "xdot"}))
    assert found(good) == [], found(good)
    assert found(good.replace("storm", "clblast_xdot_part")) == []
    assert "named twice" in found(good + good)[0]
    assert "no CMakeLists.txt" in found(good.replace("storm", "calm"))[0]
    assert "no reason" in found("system_storm is slow\n")[0]
    assert "not what outside" in found(good.replace("takes longer here", "passed at its second try"))[0]
    assert "31 tests" in found("".join(f"system_{n}_storm {'x ' * 9}\n" for n in range(31)))[0]
    print("the self-test bites as it should")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    words = set()
    for path in tree.files(root):
        if path.name == "CMakeLists.txt" and path.relative_to(root).parts[0] in ("tests", "bench"):
            words |= set(re.findall(r"\w+", re.sub(r"#[^\n]*", "", path.read_text())))
    found = list(problems((root / "tests/flaky.txt").read_text(), words))
    print("\n".join(found) or "flaky.txt: every line names a test and a reason")
    return sys.exit(bool(found))


main()
