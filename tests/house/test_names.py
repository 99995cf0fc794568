#!/usr/bin/env python3
"""Unit tests have one style of name, TEST(snake_case_suite, what_it_shows_in_snake_case), and each name is used once.

A fixture's class is its suite's name, so that it follows from this.

usage: test_names.py ROOT | test_names.py --self-test
"""
import collections
import pathlib
import re
import sys

import tree

TEST = re.compile(r"^\s*((?:TYPED_)?TEST(?:_F|_P)?)\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
STYLE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def problems(files):
    """(where, what) for {place of a target: {file: text}}."""
    for texts in files.values():
        places, kinds = collections.defaultdict(list), collections.defaultdict(set)
        for name, text in texts.items():
            for found in TEST.finditer(text):
                kind, suite, test = found.groups()
                where = f"{name}:{text.count(chr(10), 0, found.start(1)) + 1}"
                for word in (suite, test):
                    if not STYLE.fullmatch(word):
                        yield where, f"{word} is not in snake_case"
                places[suite, test].append(where)
                kinds[suite].add(kind)
        for (suite, test), all_places in places.items():
            for where in all_places[1:]:
                yield where, f"{suite}.{test} is also at {all_places[0]}"
        for suite, used in kinds.items():
            if len(used) > 1:
                yield "in one target", f"{suite} has tests of several kinds: " + ", ".join(sorted(used))


def target(path):
    """The folder whose CMakeLists.txt makes the test's program."""
    return next(folder for folder in path.parents if (folder / "CMakeLists.txt").exists())


def self_test():
    def found(**files):
        return [what for _, what in problems({"x": files})]
    assert found(a="TEST(some_suite, does_2_things) {\n") == []
    assert found(a="TEST(Some, does_it) {\n") == ["Some is not in snake_case"]
    assert found(a="TEST_F(some, DoesIt) {\n") == ["DoesIt is not in snake_case"]
    assert found(a="TEST_P(some, does__it) {\n") == ["does__it is not in snake_case"]
    assert found(a="TEST_F(some,\n       does_It) {\n") == ["does_It is not in snake_case"]
    assert found(a="TEST(some, thing) {\n", b="\nTEST(some, thing) {\n") == ["some.thing is also at a:1"]
    assert found(a="TEST(some, thing) {\n", b="TEST_F(some, other) {\n") == ["some has tests of several kinds: TEST, TEST_F"]
    print("the self-test bites as it should")


def main():
    if sys.argv[1] == "--self-test":
        self_test()
        return
    root, files, count = pathlib.Path(sys.argv[1]), collections.defaultdict(dict), 0
    for path in tree.code(sys.argv[1]):
        text = path.read_text()
        if TEST.search(text):
            files[target(path)][path.relative_to(root).as_posix()] = text
            count += len(TEST.findall(text))
    wrong = list(problems(files))
    for where, what in wrong:
        print(f"{where}: {what}")
    print(f"{count} tests, {len(wrong)} wrong names")
    sys.exit(bool(wrong))


main()
