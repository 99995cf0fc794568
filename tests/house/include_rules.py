#!/usr/bin/env python3
"""Folder = CMake target, and its link list is its include rule.

Each folder of src/ names in its CMakeLists.txt what it USES (and, for its *_test.cc and *_testing.hh, TEST_USES). A source may include
headers of its own folder and of what it uses, directly or through those; anything else fails here with file and line.
A folder nested in another (transport/tcp) that has a CMakeLists.txt is a folder of its own; its parent may not reach into it unasked. One
without belongs to the folder around it, whose FOLDERS name it. APART keeps two such folders of one target apart: "session<cuda" says that
session may not include cuda, nor what lies in it.

usage: include_rules.py ROOT | include_rules.py --self-test
"""
import pathlib
import re
import sys
import tempfile

CALL = re.compile(r"outboard_library\(\s*([\w/]+)([^)]*)\)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
KEYWORDS = {"APART", "FOLDERS", "USES", "LIBRARIES", "PRECOMPILE", "TEST_USES", "TEST_LIBRARIES"}
# The command puts the parts together; it may use anything (and declares it all the same).
FREE = {"tool"}


def without_comments(text):
    return re.sub(r"#.*", "", text)


def transports(source):
    """What src/CMakeLists.txt puts into OUTBOARD_TRANSPORTS: a folder for each line of schemes.def."""
    listed = source / "base" / "schemes.def"
    names = re.findall(r"^TRANSPORT\((\w+),", listed.read_text(), re.MULTILINE) if listed.exists() else []
    return " ".join(f"transport/{name}" for name in names)


def read_rules(source):
    """{folder: (uses, test_uses, apart)} of every outboard_library() below source/."""
    rules, linked = {}, transports(source)
    for listfile in sorted(source.rglob("CMakeLists.txt")):
        for name, rest in CALL.findall(without_comments(listfile.read_text())):
            rest = rest.replace("${OUTBOARD_TRANSPORTS}", linked)
            lists, key = {k: [] for k in KEYWORDS}, None
            for word in rest.split():
                if word in KEYWORDS:
                    key = word
                elif key:
                    lists[key].append(word)
            folder = listfile.parent.relative_to(source).as_posix()
            if name not in (folder, folder.replace("/", "_")):
                raise SystemExit(f"{listfile}: target {name} does not carry its folder's name {folder}")
            rules[folder] = (set(lists["USES"]), set(lists["TEST_USES"]),
                             [pair.split("<") for pair in lists["APART"]])
    return rules


def closure(rules, start):
    """Everything that may be reached from the folders in start: link lists are public."""
    seen, todo = set(), list(start)
    while todo:
        folder = todo.pop()
        if folder not in seen:
            seen.add(folder)
            todo += rules.get(folder, (set(), set(), []))[0]
    return seen


def folder_of(path, rules, source):
    """The nearest folder with a target, walking up from the file; None for a folder without one."""
    for parent in pathlib.PurePosixPath(path).parents:
        if parent.as_posix() in rules:
            return parent.as_posix()
        if parent.name and (source / parent / "CMakeLists.txt").exists():
            return parent.as_posix()  # a folder that is a program (the shims): judged by what it says below
    return None


def declared_by_program(listfile):
    """A folder without outboard_library() (a program or a shared library) declares by its link lines."""
    text = without_comments(listfile.read_text())
    found = set()
    for call in re.findall(r"target_link_libraries\(([^)]*)\)", text):
        found |= {word[len("outboard_"):] for word in call.split() if word.startswith("outboard_")}
    return found


def not_compiled(source, rules):
    """Folders with sources that belong to another one, whose CMakeLists.txt does not name them: nobody compiles them."""
    for folder in sorted({path.parent for path in source.rglob("*.cc")}):
        name = folder.relative_to(source).as_posix()
        own = folder_of(f"{name}/x.cc", rules, source)
        if own is None or own == name:
            continue
        inner = name[len(own) + 1:]
        words = re.split(r"[\s()]+", without_comments((source / own / "CMakeLists.txt").read_text()))
        if inner not in words and f"{inner}/*.cc" not in words:
            yield f"src/{name}: src/{own}/CMakeLists.txt has to name it among its FOLDERS"


def violations(source):
    rules = read_rules(source)
    by_target = {folder.replace("/", "_"): folder for folder in rules}
    bad = list(not_compiled(source, rules))
    for folder, (uses, tests, apart) in sorted(rules.items()):
        for pair in apart:
            if len(pair) != 2 or not all((source / folder / inner).is_dir() for inner in pair):
                bad.append(f"src/{folder}/CMakeLists.txt: APART {'<'.join(pair)} names no two folders of it")
                pair[:] = []
        for used in sorted(uses | tests):
            if used not in rules:
                bad.append(f"src/{folder}/CMakeLists.txt: uses {used}, which is no folder of src/")
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".cc", ".hh", ".h", ".def"):
            continue
        name = path.relative_to(source).as_posix()
        own = folder_of(name, rules, source)
        if own is None:
            bad.append(f"src/{name}: belongs to no folder with a CMakeLists.txt")
            continue
        if own in FREE:
            continue
        if own in rules:
            uses, tests, apart = rules[own]
            allowed = closure(rules, {own} | uses | (tests if path.stem.endswith(("_test", "_testing")) else set()))
        else:
            direct = {by_target.get(t, t) for t in declared_by_program(source / own / "CMakeLists.txt")}
            allowed, apart = closure(rules, direct) | {own}, []
        text = path.read_text()
        for found in INCLUDE.finditer(text):
            target = found.group(1)
            line = text.count("\n", 0, found.start()) + 1
            where = f"src/{name}:{line}"
            if not (source / target).exists():
                if (path.parent / target).exists():
                    bad.append(f'{where}: "{target}": write the path from src/')
                elif target.split("/")[0] in {f.split("/")[0] for f in rules}:
                    bad.append(f'{where}: "{target}" does not exist')
                continue  # a header of somebody else's in quotes
            theirs = folder_of(target, rules, source)
            if theirs not in allowed:
                bad.append(f'{where}: {own} may not include "{target}" of {theirs}; it may use: '
                           f"{', '.join(sorted(allowed - {own})) or 'nothing'}")
            for one, other in filter(None, apart):
                if name.startswith(f"{own}/{one}/") and target.startswith(f"{own}/{other}/"):
                    bad.append(f'{where}: {own}/{one} may not include "{target}": they are APART')
    return bad


def self_test():
    """The rule must bite: a small tree with each kind of wrong, and the same tree without."""
    with tempfile.TemporaryDirectory() as temporary:
        source = pathlib.Path(temporary)

        def write(name, text):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)

        write("base/CMakeLists.txt", "outboard_library(base)")
        write("base/x.hh", "")
        write("wire/CMakeLists.txt", "# USES everything (a comment is no rule)\noutboard_library(wire USES base)")
        write("wire/w.hh", '#include "base/x.hh"\n')
        write("part/CMakeLists.txt",
              "outboard_library(part FOLDERS room hall APART room<hall USES wire)\nadd_subdirectory(inner)")
        write("part/hall/h.hh", '#include "part/room/r.hh"\n')
        write("part/room/r.hh", "")
        write("part/p.cc", '#include "wire/w.hh"\n#include "base/x.hh"\n#include <vector>\n')
        write("part/room/r.cc", '#include "base/x.hh"\n')
        write("part/inner/CMakeLists.txt", "outboard_library(part/inner USES part)")
        write("part/inner/i.hh", '#include "wire/w.hh"\n')
        write("shim/CMakeLists.txt", "add_library(s SHARED s.cc)\ntarget_link_libraries(s PRIVATE outboard_part)")
        write("shim/s.cc", '#include "base/x.hh"\n')
        assert violations(source) == [], violations(source)

        def expect(name, text, piece):
            kept = (source / name).read_text() if (source / name).exists() else None
            write(name, text)
            found = violations(source)
            assert len(found) == 1 and piece in found[0], (name, text, found)
            (source / name).unlink() if kept is None else write(name, kept)

        expect("base/y.cc", '#include "wire/w.hh"\n', "base may not include")
        expect("base/y.cc", '// why\n  #  include "wire/w.hh"\n', "src/base/y.cc:2")
        expect("base/y_test.cc", '#include "wire/w.hh"\n', "base may not include")
        expect("wire/y.cc", '#include "part/inner/i.hh"\n', "of part/inner")
        expect("part/y.cc", '#include "part/inner/i.hh"\n', "part may not include")
        expect("shim/s.cc", '#include "part/inner/i.hh"\n', "shim may not include")
        expect("part/CMakeLists.txt", "outboard_library(part FOLDERS room hall APART room<gone USES wire)\n", "names no two")
        expect("part/CMakeLists.txt", "outboard_library(part FOLDERS room hall APART room USES wire)\n", "names no two")
        expect("wire/y.cc", '#include "w.hh"\n', "write the path from src/")
        expect("wire/y.cc", '#include "base/gone.hh"\n', "does not exist")
        expect("wire/CMakeLists.txt", "outboard_library(wire USES base nowhere)", "no folder of src/")
        expect("lost/y.cc", "", "belongs to no folder")
        expect("part/forgotten/y.cc", "", "has to name it")
        expect("part/room/y.cc", '#include "part/inner/i.hh"\n', "part may not include")
        expect("part/room/y.cc", '#include "part/hall/h.hh"\n', "they are APART")
        write("base/CMakeLists.txt", "outboard_library(base TEST_USES wire)")
        write("base/y_test.cc", '#include "wire/w.hh"\n')
        assert violations(source) == [], violations(source)
    print("include rules: the self-test bites as it should")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    source = pathlib.Path(sys.argv[1]) / "src"
    bad = violations(source)
    print("\n".join(bad) or f"include rules: {len(read_rules(source))} folders, all obey")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
