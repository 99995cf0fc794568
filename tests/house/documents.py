#!/usr/bin/env python3
"""Documents that one can read in a terminal and follow: lines of *.md have at most 120 columns (tables, code blocks and
the targets of links apart), cells of tables at most 160; relative links lead to files and headings that exist, and so
do the paths that a document names in `code`.

Not held to the widths: what a program prints (docs/coverage*.md, bench/results/ but its README, and the rows of
docs/wire.md that wire_document.py compares with the code).

usage: documents.py ROOT | documents.py --self-test
"""
import pathlib
import re
import sys
import tempfile

import tree

LINE, CELL = 120, 160
PRINTED = re.compile(r"docs/coverage[\w-]*\.md|bench/results/\d[\w.-]*\.md")
MESSAGE = re.compile(r"\| `\w+_(body|reply)` \| ")  # a row of docs/wire.md that is compared
FENCE = re.compile(r"\s*(```|~~~)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`]*`")
NAMED = re.compile(r"`((?:src|tests|bench|fuzz|docs|scripts|cmake|packaging)/[\w./*{},-]+)`")
HEADING = re.compile(r"#+ +(.*)")


def prose(text):
    """(number, line) of what stands outside of code blocks."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif not fence:
            yield number, line


def anchors(text):
    """The headings as a web page names them: lower case, a hyphen for a blank, no punctuation, -1 for a second one."""
    found = set()
    for _, line in prose(text):
        if heading := HEADING.match(line):
            name = re.sub(r"[^\w\- ]", "", LINK.sub("]", heading[1]).lower()).replace(" ", "-")
            found.add(name if name not in found else
                      next(f"{name}-{n}" for n in range(1, len(found) + 2) if f"{name}-{n}" not in found))
    return found


def width_problems(name, text):
    for number, line in prose(text):
        shown = LINK.sub("]()", line)
        if line.lstrip().startswith("|"):
            widest = max(len(cell.strip()) for cell in re.split(r"(?<!\\)\|", shown))
            if widest > CELL and not (name == "docs/wire.md" and MESSAGE.match(line)):
                yield f"{name}:{number}: a cell of {widest} characters, {CELL} are allowed: two rows, or a sentence below?"
        elif len(shown) > LINE:
            yield f"{name}:{number}: {len(shown)} columns, {LINE} are allowed"


def link_problems(root, document, name, text):
    for number, line in prose(text):
        for target in LINK.findall(CODE.sub("", line)):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (document.parent / path) if path else document
            if not file.exists():
                yield f"{name}:{number}: a link to {path}, which is not there"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                yield f"{name}:{number}: a link to {target}, whose heading is not there"
            elif not file.resolve().is_relative_to(root):
                yield f"{name}:{number}: a link to {path}, which leads out of the repository"


def spellings(path):
    """a/{b,c}/d is two paths."""
    group = re.search(r"\{([^{}]*)\}", path)
    if not group:
        return [path]
    return [one for word in group[1].split(",") for one in spellings(path[:group.start()] + word + path[group.end():])]


def named_problems(root, name, text):
    """A program may be named by its source without the suffix: tests/programs/forks."""
    for number, line in prose(text):
        for path in [one for named in NAMED.findall(line) for one in spellings(named)]:
            if not any(root.glob(path.rstrip("/"))) and not any(root.glob(path + ".*")):
                yield f"{name}:{number}: names {path}, which is not there"


def problems(root, paths):
    root = root.resolve()
    for path in paths:
        document = path.resolve()
        name, text = document.relative_to(root).as_posix(), path.read_text()
        printed = PRINTED.fullmatch(name)
        if not printed:
            yield from width_problems(name, text)
        if not printed and name != "CHANGELOG.md":  # these may name what has gone since
            yield from named_problems(root, name, text)
        yield from link_problems(root, document, name, text)


def self_test():
    """The rule must bite: a small tree that obeys, and the same tree with one of each wrong."""
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)

        def write(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

        def found():
            return list(problems(root, sorted(root.rglob("*.md"))))

        write("src/wire/cursor.hh", "")
        write("tests/programs/forks.cu", "")
        write("docs/other.md", "# Other: a page\n\n## The `code` of it\n\n## Twice\n\n## Twice\n")
        far = "http://" + "x" * 200
        good = f"""# A page

See [the other](other.md#the-code-of-it), [again](other.md#twice-1), [itself](#a-page), [the web]({far}),
`src/wire/cursor.hh`, `src/{{wire,wire}}/*.hh`, `tests/programs/forks`, `src/wire/`, `[no](link)` in code.

| {"x" * CELL} | [link]({far}) |
|---|---|

```sh
{"x" * 200} [no](link) `src/none.cc`
# no heading
```
{"x" * LINE}
"""
        write("docs/page.md", good)
        write("docs/coverage-all.md", "x" * 500 + "\n")
        write("bench/results/2026-01-01-compare.md", "x" * 500 + " `src/gone.cc`\n")
        write("docs/wire.md", f"| `a_body` | {'x' * 500} |\n")
        assert found() == [], found()

        def expect(name, text, piece):
            kept = (root / name).read_text() if (root / name).exists() else None
            write(name, text)
            seen = found()
            assert len(seen) == 1 and piece in seen[0], (name, text, seen)
            (root / name).unlink() if kept is None else write(name, kept)

        expect("docs/page.md", good + "x" * (LINE + 1), "docs/page.md:14: 121 columns")
        expect("README.md", "é" * LINE + "é", "README.md:1: 121 columns")
        expect("docs/page.md", good + f"| {'x' * (CELL + 1)} | |", "a cell of 161")
        expect("docs/page.md", good + "[a](none.md)", "none.md, which is not there")
        expect("docs/page.md", good + "[a](../src/none.hh)", "none.hh, which is not there")
        expect("docs/page.md", good + "[a](other.md#nothing)", "whose heading is not there")
        expect("docs/page.md", good + "[a](#no-heading)", "whose heading is not there")
        expect("docs/page.md", good + "[a](../../../../../../../../../../tmp)", "leads out")
        expect("docs/page.md", good + "see `src/wire/none.cc`", "names src/wire/none.cc")
        expect("docs/page.md", good + "see `src/{wire,none}/cursor.hh`", "names src/none/cursor.hh")
        expect("docs/wire.md", f"| `a_thing` | {'x' * 500} |\n", "a cell of 500")
        expect("bench/results/README.md", "x" * 500, "500 columns")
        expect("bench/results/2026-01-01-compare.md", "[a](none.md)", "none.md, which is not there")
    print("documents: the self-test bites as it should")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    paths = [path for path in tree.files(root) if path.suffix == ".md"]
    found = list(problems(root, paths))
    print("\n".join(found) or f"documents: {len(paths)}, to be read and followed")
    sys.exit(1 if found else 0)


main()
