#!/usr/bin/env python3
"""docs/glossary.md explains the project's own nouns, and is true to the sources:
  - its entries are sorted, and each word has one;
  - the file that ends an entry is there, and has the word in its name, its declarations or its comments;
  - a header of frontend/, backend/, wire/ or transport/ that is named by one word has an entry for the word (aside for
    asides.hh), or the word is ORDINARY: one that any engineer of the field knows, or that a manual explains;
  - a word of ORDINARY has no entry, and still names a header;
  - the ten words of docs/design.md, section 1, have entries.

usage: glossary.py ROOT, or glossary.py --self-test"""
import pathlib
import re
import sys
import tempfile

import tree

FOLDERS = ("src/frontend/", "src/backend/", "src/wire/", "src/transport/")
ORDINARY = set("""
    activities activity address admin allocations annotations answer answers arrays attribute audit bucket buffered build
    callbacks capture checkpoint checkpoints child code coherence command confinement connection context contexts control
    copies coredump cursor daemon death dial encryption engine entries export extensions faulty features folder frame
    functions futex guard handshake headers hello identities idle injection integrity kinds landlock layout library list load
    local loopback markers md2 memory message monitor notify numbers objects output parts pipe places plugin pool probe
    process profile questions ranges receiver reconnector remote removal requests reread resume resumption
    settings sharing shm shown socket suite tcp text texts tool trace transfer unacknowledged unix url wakeup
    """.split())
OTHER_NAMES = {"cls": "context-local storage"}
ENTRY = re.compile(r"^- \*\*([^*]+)\*\*: (.*?)(?=^- \*\*|\Z)", re.DOTALL | re.MULTILINE)
WORDS_OF_DESIGN = re.compile(r"^## 1\. Words$(.*?)^## ", re.DOTALL | re.MULTILINE)


def forms(word):
    """A word as sources write it, in the singular or the plural: stand-by, stand_by, warm_workers."""
    inside = r"[\s_-]+".join(re.split("[ -]", word))
    plural = inside[:-1] + "(?:ys?|ies)" if word.endswith("y") else inside + "(?:e?s)?"
    return re.compile(f"(?<![a-zA-Z])(?:{plural})(?![a-zA-Z])", re.IGNORECASE)


def has(path, word):
    text = re.sub(r"\s*\n\s*//+<?\s*", " ", path.read_text(errors="replace"))  # words of a comment across two lines
    return bool(forms(word).search(path.stem) or forms(word).search(text))


def singulars(stem):
    yield stem
    for end, instead in (("ies", "y"), ("es", ""), ("s", "")):
        if stem.endswith(end):
            yield stem[:-len(end)] + instead


def problems(root, ordinary):
    text = (root / "docs/glossary.md").read_text()
    found = ENTRY.findall(text)
    words = [word for word, _ in found]
    for before, word in zip(words, words[1:]):
        if before.lower() >= word.lower():
            yield f"'{word}' is not behind '{before}': sort the entries, one for each word"
    for word, meaning in found:
        file = re.search(r"\.\s+`(src/[\w/]+\.\w+)`\s*\Z", meaning)
        if not file:
            yield f"'{word}' does not end with a sentence and the file of src/ that defines it"
        elif not (root / file[1]).is_file():
            yield f"'{word}': {file[1]} is not there"
        elif not has(root / file[1], word):
            yield f"'{word}': {file[1]} does not have the word"
    stems = {}
    for path in tree.files(root):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".hh" and name.startswith(FOLDERS) and "_" not in path.stem:
            stems.setdefault(path.stem, name)
    for stem, name in sorted(stems.items()):
        if stem not in ordinary and not {*singulars(OTHER_NAMES.get(stem, stem))} & {*words}:
            yield f"{name}: '{stem}' has no entry; write one, or add the word to ORDINARY in tests/house/glossary.py"
    for stem in sorted(ordinary):
        if stem not in stems:
            yield f"ORDINARY: no header is named '{stem}' any more"
        elif stem in words:
            yield f"ORDINARY: '{stem}' has an entry; take it out of ORDINARY"
    section = WORDS_OF_DESIGN.search((root / "docs/design.md").read_text())
    for word in re.findall(r"^\| ([a-z-]+) \|", section[1] if section else "", re.MULTILINE):
        if word != "word" and word not in words:
            yield f"docs/design.md, section 1: '{word}' has no entry in docs/glossary.md"


GOOD = {
    "docs/glossary.md": "# Glossary\n\n- **aside**: A piece.\n  `src/frontend/asides.hh`\n- **stand-by**: A thread. "
                        "`src/wire/turn.hh`\n- **turn**: A right. `src/wire/turn.hh`\n- **warm worker**: Early. `src/w.hh`\n",
    "docs/design.md": "# D\n\n## 1. Words\n\n| word | means |\n|---|---|\n| turn | a right |\n\n## 2. More\n",
    "src/frontend/asides.hh": "class asides;\n",
    "src/wire/turn.hh": "// The stand_by waits.\nclass turn;\n",
    "src/wire/frame.hh": "", "src/wire/two_words.hh": "", "src/w.hh": "// has warm\n// workers\n",
}
BAD = {
    "docs/glossary.md": "# Glossary\n\n- **turn**: A right. `src/wire/turn.hh`\n- **aside**: A piece. `src/wire/turn.hh`\n"
                        "- **frame**: Bytes. `src/wire/gone.hh`\n- **gone**: No file.\n",
    "docs/design.md": GOOD["docs/design.md"].replace("| turn | a", "| lane | an order |\n| turn | a"),
    "src/wire/errand.hh": "",
}
SAID = ("'aside' is not behind 'turn'", "'aside': src/wire/turn.hh does not have", "'frame': src/wire/gone.hh is not there",
        "'gone' does not end", "src/wire/errand.hh: 'errand' has no entry", "ORDINARY: 'frame' has", "'past' any more",
        "section 1: 'lane'")


def self_test():
    """Each rule finds what breaks it, in a small tree, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)

        def found(files, *ordinary):
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(problems(root, set(ordinary)))

        assert not found(GOOD, "frame"), found(GOOD, "frame")
        said = found(BAD, "frame", "past")
        for part in SAID:
            assert any(part in problem for problem in said), (part, said)
        assert len(said) == len(SAID), said
    print("glossary: the rules bite")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(problems(pathlib.Path(sys.argv[1]), ORDINARY))
    print("\n".join(found) or "glossary: every entry is in its file")
    return sys.exit(1 if found else 0)


main()
