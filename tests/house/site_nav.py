#!/usr/bin/env python3
"""The documents as a site: mkdocs.yml has every document of docs/ in its `nav` once, and no other; a document links to
documents and pictures of docs/ alone, because a site has nothing else.

usage: site_nav.py ROOT, or site_nav.py --self-test"""
import collections
import pathlib
import re
import sys
import tempfile

import links


def listed(configuration):
    """The documents of `nav`, which is the last key: lines `- Title: file.md`."""
    nav = configuration.partition("\nnav:\n")[2]
    return re.findall(r"^\s*- [^:\n]+: (\S+)$", nav, re.MULTILINE)


def problems(root):
    docs = root / "docs"
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    named = collections.Counter(listed((root / "mkdocs.yml").read_text()))
    yield from (f"mkdocs.yml: {name} is not in nav" for name in sorted(there - set(named)))
    yield from (f"mkdocs.yml: nav has {name}, which docs/ has not" for name in sorted(set(named) - there))
    yield from (f"mkdocs.yml: nav has {name} {count} times" for name, count in named.items() if count > 1)
    for name in sorted(there):
        for target in links.targets((docs / name).read_text()):
            path = target.partition("#")[0]
            if re.match(r"[a-z]+:", path):
                continue
            if not ((docs / name).parent / path).resolve().is_relative_to(docs):
                yield f"docs/{name}: links to {target}, which is outside of docs/; name it between backticks"


GOOD = {
    "mkdocs.yml": "site_name: x\nnav:\n  - A: a.md\n  - More:\n      - B: deep/b.md\n",
    "docs/a.md": "# A\n[b](deep/b.md#a-b) `[no](x.md)`\n```\n[no](y.md)\n# No\n```\n## Two `words`, here\n",
    "docs/deep/b.md": "# A B\n[a](../a.md#two-words-here)\n",
}
BAD = {
    "mkdocs.yml": "site_name: x\nnav:\n  - A: a.md\n  - A: a.md\n  - B: deep/b.md\n  - D: d.md\n",
    "docs/c.md": "# C + D\n[out](../mkdocs.yml) [gone](d.md) [no](a.md#no) [apart](#c-d)\n",
}
SAID = ("c.md is not in nav", "nav has d.md, which", "a.md 2 times", "outside of docs/", "link to d.md, which",
        "a.md#no: no", "#c-d: no")


def self_test():
    """Each rule finds what breaks it, in a small tree."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "docs/deep").mkdir(parents=True)

        def found(files):
            for name, text in files.items():
                (root / name).write_text(text)
            broken = [problem for path in root.rglob("*.md") for problem in links.broken(path, root)]
            return [*problems(root), *broken]

        assert not found(GOOD)
        said = found(BAD)
        for part in SAID:
            assert any(part in problem for problem in said), (part, said)
        assert len(said) == len(SAID), said
    print("site_nav: each rule bites")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "mkdocs.yml: every document is in nav once")
    return sys.exit(1 if found else 0)


main()
