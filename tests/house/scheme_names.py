#!/usr/bin/env python3
"""No choice by a transport's name: outside src/transport/ the sources ask for traits (base/schemes.hh) or capabilities, and
compare nothing with a scheme. To write a URL down is allowed; to look at one for its scheme is not.

usage: scheme_names.py ROOT | scheme_names.py --self-test
"""
import pathlib
import re
import sys


def patterns(names):
    scheme = f'"(?:{"|".join(names)}):?"'
    return [re.compile(text) for text in (
        rf"[=!]=\s*{scheme}", rf"{scheme}\s*[=!]=",
        rf"\b(?:starts_with|find|compare|strcmp|strncmp|rfind|count|contains)\([^()]*{scheme}",
        rf"\b(?:case|string_view\s+\w+\s*=|char\*\s*(?:const\s+)?\w+\s*=)\s*{scheme}")]


def wrong(text, found_by):
    lines = text.splitlines()
    return [i for i, line in enumerate(lines, 1)
            if any(p.search(line.split("//")[0] if '"' not in line.split("//")[-1] else line) for p in found_by)]


def violations(root):
    source = pathlib.Path(root) / "src"
    names = re.findall(r"^TRANSPORT\((\w+),", (source / "base/schemes.def").read_text(), re.MULTILINE)
    assert names, "schemes.def lists no transport"
    found_by, bad = patterns(names), []
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.suffix not in (".cc", ".hh", ".h") or name.startswith("transport/") or path.stem.endswith("_test"):
            continue
        bad += [f"src/{name}:{line}: a choice by a scheme's name; ask traits_of() or capabilities"
                for line in wrong(path.read_text(), found_by)]
    return bad


def self_test():
    found_by = patterns(["unix", "shm", "tcp"])
    for text in ('if (scheme == "shm") x();', 'return "tcp" != s;', 'url.starts_with("unix:")', 'transports->find("shm")',
                 'constexpr std::string_view rings = "shm";', 'std::strcmp(s, "tcp") == 0'):
        assert wrong(text, found_by) == [1], text
    for text in ('return "unix:" + folder;', '"unix:/path"', 'x == "tcpdump"', 'log("unix: is there")', "// == \"shm\" once"[:3]):
        assert wrong(text, found_by) == [], text


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test()
        sys.exit(0)
    problems = violations(sys.argv[1])
    print("\n".join(problems) or "scheme names: nothing is chosen by them")
    sys.exit(1 if problems else 0)
