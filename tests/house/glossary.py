#!/usr/bin/env python3
"""The glossary of docs/overview.md and the sources agree about the project's own words.

- Every word of the glossary, and every other form of it that a row sets in *italics*, is used in src/.
- The rows are in alphabetical order, one for each word.
- A word of COINED is used for something of ours: in a name or a comment only while the glossary has it.
- A word of ORDINARY reads well in a comment, but names nothing: no file, type, function or variable is called by it
  alone, unless the glossary has it. glossary.txt says how many names (word, number) still are; the numbers only go down.

usage: glossary.py ROOT [--tighten] | glossary.py --self-test
"""
import pathlib
import re
import sys

import tree

COINED = ("aside attendant bell crew drain errand flight gatekeeper keeper landing lease nap passage patience "
          "remover shield tally teller tidier tombstone visitor").split()
ORDINARY = "door doors elsewhere hope meeting odd odds shown sought surroundings told wishes".split()

ROW = re.compile(r"^\| (?!-)([^|]+?) \| (.+) \|$", re.MULTILINE)
ITALIC = re.compile(r"\*([a-z][a-zA-Z -]+)\*")
COMMENT = re.compile(r"//[^\n]*")
TEXT = re.compile(r'R"(\w*)\((?s:.*?)\)\1"|"(?:\\.|[^"\\\n])*"')
NAME = re.compile(r"\b[a-z_][a-z0-9_]*\b")


def glossary(overview):
    """{word: [itself and its other forms]}."""
    section = re.search(r"^## Glossary\n(.*?)(?=^## |\Z)", overview, re.MULTILINE | re.DOTALL)
    rows = ROW.findall(section[1] if section else "")
    return [(word, [word, *ITALIC.findall(means)]) for word, means in rows if word != "word"]


def used(form, text):
    """As words or as a part of a name, in the singular or in the plural."""
    words = r"[\s_/*-]+".join(map(re.escape, re.split(r"[ -]", form.lower())))
    return re.search(rf"(?<![a-z]){words}(?:s|es|d|ed|ing)?(?![a-z])", text) is not None


def bare_names(texts):
    """{word: [file, ...]} of the words of ORDINARY that are names, or the stems of files, by themselves."""
    found = {word: [] for word in ORDINARY}
    for name, text in texts.items():
        names = set(NAME.findall(TEXT.sub('""', COMMENT.sub("", text))))
        for word in ORDINARY:
            if word in names or word + "_" in names or pathlib.PurePath(name).stem == word:
                found[word].append(name)
    return found


def problems(overview, texts, limits):
    rows = glossary(overview)
    if not rows:
        yield "docs/overview.md has no glossary"
    words = [word for word, _ in rows]
    for word, follower in zip(words, words[1:]):
        if re.sub(r"[ -]", "", word.lower()) >= re.sub(r"[ -]", "", follower.lower()):
            yield f"docs/overview.md: \"{follower}\" stands behind \"{word}\""
    together = "\n".join([*texts, *texts.values()]).lower()
    for word, forms in rows:
        for form in forms:
            if not used(form, together):
                yield f"docs/overview.md: \"{form}\" is in the glossary and nowhere in src/"
    known = {form for _, forms in rows for form in forms}
    for word in COINED:
        if word not in known:
            for name, text in texts.items():
                if used(word, (name + "\n" + text).lower()):
                    yield f"{name}: uses \"{word}\", which is not in the glossary of docs/overview.md"
    for word, names in bare_names(texts).items():
        if word not in known and len(names) > limits.get(word, 0):
            yield f"{len(names)} files call something \"{word}\", {limits.get(word, 0)} may: " + ", ".join(names)


def self_test():
    overview = "## Glossary\n\n| word | means |\n|---|---|\n| lane | x; the *lane loop* |\n| top-side | y |\n\n## Then\n| z | z |\n"
    good = {"src/a.hh": "// A lane, and lane loops.\nint top_side;\n", "src/b.cc": 'f("told"); // told elsewhere\nint told_late;\n'}

    def found(document=overview, limits=None, **changed):
        return list(problems(document, {**good, **changed}, limits or {}))
    assert found() == [], found()
    assert found("nothing") != []
    assert "not" not in overview and '"gone" is in the glossary' in found(overview.replace("| y |", "| *gone* |"))[0]
    assert '"zebra" is in the glossary' in found(overview.replace("top-side", "zebra"))[0]
    assert '"lane" stands behind' in found(overview.replace("| top-side | y |", "| top-side | y |\n| lane | x |"))[0]
    assert '"lane" stands behind' in found(overview.replace("top-side", "lane"))[0]
    assert 'uses "tally"' in found(c="// a tally\n")[0]
    assert 'uses "tally"' in found(c="class memory_tally;\n")[0]
    assert found(overview.replace("| top-side | y |", "| tally | x |\n| top-side | y |"), c="class memory_tally;\n") == []
    assert "totally" in "totally" and found(c="// totally\n") == []
    assert '1 files call something "hope", 0 may' in found(c="const auto hope = judge();\n")[0]
    assert found(c="const auto hope = judge();\n", limits={"hope": 1}) == []
    assert '"door"' in found(c="class x { int door_; };\n")[0]
    print("the self-test bites as it should")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    numbers = root / "tests/house/glossary.txt"
    limits = {word: int(limit) for word, limit in (line.split() for line in numbers.read_text().splitlines())}
    texts = {}
    for path in tree.files(root):
        name = path.relative_to(root).as_posix()
        if name.startswith("src/") and path.suffix in (*tree.CODE, ".def", ".h"):
            texts[name] = path.read_text()
    names = bare_names({name: text for name, text in texts.items() if "_test." not in name})
    overview = (root / "docs/overview.md").read_text()
    if "--tighten" in sys.argv:
        numbers.write_text("".join(f"{word} {len(files)}\n" for word, files in names.items() if files))
        return None
    plain = {name: text for name, text in texts.items() if "_test." not in name}
    wrong = list(problems(overview, plain, limits))
    for word, files in names.items():
        if len(files) < limits.get(word, 0):
            print(f"{word}: {len(files)}, and {limits[word]} would be allowed: run glossary.py . --tighten")
    print("\n".join(wrong) or f"{len(glossary(overview))} words, all in use")
    return sys.exit(bool(wrong))


main()
