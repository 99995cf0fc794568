#!/usr/bin/env python3
"""Sentences as English speakers build them: some patterns that this repository's comments and documents were full of,
each with what to write instead.

Documents have none of them, apart from the places that ALLOWED names. Comments have at most as many as english.txt
says (name, number): the numbers only go down. `--tighten` writes what is there now.

usage: english.py ROOT [--tighten] | english.py --self-test
"""
import pathlib
import re
import sys

import tree

START = r"(?:^|(?<=[.:;?!] ))"  # of a sentence, or of what follows a colon
PATTERNS = {
    "whoever": (r"\b[Ww]ho(?:so)?ever\b", "the thread that, the process that, everybody who"),
    "for_ever": (r"\bfor ever\b", "indefinitely, or without a limit"),
    "told": (r"\b(?:told|[Tt]ells? of)\b", "reported, said, notified"),
    "the_same": (START + r"The same[,;:]", "say again what the sentence is about"),
    "of": (START + r"Of (?!course\b)[a-z]", "begin with the subject"),
    "who": (START + r"Who\b[^?]{1,200}?\.(?= |$)", "the thread that, a program that"),
    "no_error": (r"\bis no error\b", "is not an error"),
    "behind": (r"\bone behind the other\b", "one after another"),
    "beside": (r"\b[Bb]eside\b", "next to, besides, while"),
    "nobody": (r"\b[Aa]sks? nobody\b", "asks nothing of the server, does not ask"),
    "odd_phrase": (r"\b(?:of late|thereby|worth while|so that it takes|by nothing|like(?:s)? it goes)\b", "plain words"),
}
COMPILED = {name: re.compile(pattern) for name, (pattern, _) in PATTERNS.items()}

# Document: what stands there on purpose.
ALLOWED = {
    "docs/behaviours.md": ("asks nobody", "ask nobody"),
    "docs/extending.md": ("tells of",),
    "docs/threat-model.md": ("Who may hurt whom",),
}

CODE_COMMENT = re.compile(r"//+<?[ \t]?(.*)$")
SCRIPT_COMMENT = re.compile(r"^\s*#+ (.*)$")
SCRIPTS = (".py", ".sh", ".cmake", ".txt", "")
NOT_READ = ("tests/house/english.py", "tests/house/english.txt")
PRINTED = re.compile(r"docs/(?:coverage[\w-]*|settings)\.md|bench/results/\d[\w.-]*\.md")
NEW_PARAGRAPH = re.compile(r"\s*(?:$|[|#>]|[-*] |\d+\. )")


def comments(text, pattern):
    """(line, text) of each comment; comments on lines of their own that follow each other are one."""
    paragraph, first = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        found = pattern.search(line)
        alone = found and not line[:found.start()].strip()
        if paragraph and not alone:
            yield first, " ".join(paragraph)
            paragraph = []
        if found and alone:
            first = first if paragraph else number
            paragraph.append(found[1].strip())
        elif found:
            yield number, found[1]
    if paragraph:
        yield first, " ".join(paragraph)


def paragraphs(text):
    """(line, text) of a document's paragraphs and cells, without its blocks of code and `code`."""
    fenced, paragraph, first = False, [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced, line = not fenced, ""
        elif fenced:
            continue
        if paragraph and NEW_PARAGRAPH.match(line):
            yield first, " ".join(paragraph)
            paragraph = []
        plain = re.sub(r"^\s*(?:[-*] |#+ |\d+\. )?", "", re.sub(r"`[^`]*`", "``", line)).replace("**", "").strip()
        if plain.startswith("|"):
            yield from ((number, cell.strip()) for cell in plain.strip("|").split("|"))
        elif plain:
            first = first if paragraph else number
            paragraph.append(plain)


def texts(path, name):
    """(line, text) of what a person reads in this file."""
    if name in NOT_READ or PRINTED.fullmatch(name):
        return
    if path.suffix in (*tree.CODE, ".def", ".h"):
        yield from comments(path.read_text(), CODE_COMMENT)
    elif path.suffix == ".md":
        yield from paragraphs(path.read_text())
    elif path.suffix in SCRIPTS and (path.suffix != ".txt" or path.name == "CMakeLists.txt"):
        yield from comments(path.read_text(errors="replace"), SCRIPT_COMMENT)


def findings(found_texts):
    for line, text in found_texts:
        for name, pattern in COMPILED.items():
            for found in pattern.finditer(text):
                yield line, name, text[found.start():found.start() + 50]


def self_test():
    def names(text, reader=lambda text: comments(text, CODE_COMMENT)):
        return [name for _, name, _ in findings(reader(text))]
    assert names("// Whoever asks.\nint a;  // waits for ever\n") == ["whoever", "for_ever"]
    assert names("// Of one receiver.\n") == ["of"]
    assert names("// First. Of\n// one receiver.\n") == ["of"]  # across lines
    assert names("int a;  // Of course\n// one of them\n// The size. Office\n") == []
    assert names("/// The same, but faster.\n/// the same, too\n") == ["the_same"]
    assert names("// Who asks: waits.\n// Who asks?\n") == ["who"]
    assert names("// Who asks?\n") == []
    assert names('call("for ever");\n') == []
    assert names("A file is told of.\n\n```\nfor ever\n```\n`whoever`\n", paragraphs) == ["told"]
    assert names("| Of two | one\n- Whoever\n## Of three\n", paragraphs) == ["of", "whoever", "of"]
    assert names("# for ever\nx = 'for ever'\n", lambda text: comments(text, SCRIPT_COMMENT)) == ["for_ever"]
    assert [line for line, _, _ in findings(comments("x\n// a\n// told\n", CODE_COMMENT))] == [2]
    print("the self-test bites as it should")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    numbers = root / "tests/house/english.txt"
    limits = {name: int(limit) for name, limit in (line.split() for line in numbers.read_text().splitlines())}
    in_comments, wrong = {name: [] for name in PATTERNS}, []
    for path in tree.files(root):
        name = path.relative_to(root).as_posix()
        for line, pattern, text in findings(texts(path, name)):
            if path.suffix != ".md":
                in_comments[pattern].append(f"{name}:{line}: \"{text}\"")
            elif not any(text.startswith(allowed) for allowed in ALLOWED.get(name, ())):
                wrong.append(f"{name}:{line}: \"{text}\": {PATTERNS[pattern][1]}")
    if "--tighten" in sys.argv:
        numbers.write_text("".join(f"{name} {len(places)}\n" for name, places in in_comments.items()))
        return None
    for name, places in in_comments.items():
        if len(places) > limits.get(name, 0):
            wrong += [*places, f"{len(places)} comments have the pattern {name}; english.txt allows {limits.get(name, 0)}. "
                      f"Write: {PATTERNS[name][1]}"]
        elif len(places) < limits.get(name, 0):
            print(f"{name}: {len(places)}, and {limits[name]} would be allowed: run english.py . --tighten")
    print("\n".join(wrong) or "no more of these patterns than before: " + str(sum(map(len, in_comments.values()))))
    return sys.exit(bool(wrong))


main()
