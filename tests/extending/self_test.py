"""The test must bite: documents and examples with one fault each."""
import pathlib
import tempfile

import recipes
from source_copy import Moved, SourceCopy

DOCUMENT = """# Extending

## A thing

Touches 2 files by hand; 1 is printed. More about it.

```files-thing
src/api/<chapter>.def   the line
src/new/<name>/         its folder
docs/page.md            printed by a program
(src/more.cc)           where it is needed
```
"""


def tree(root):
    for path, text in {"src/api/a.def": "one\n", "src/more.cc": "}  // namespace\n}  // namespace outboard::x\n",
                       "src/other.cc": "twice\ntwice\n"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def touched(root, *steps):
    copy = SourceCopy(root)
    with copy.touching() as paths:
        for step in steps:
            step(copy)
    return paths


def run():
    known, wrong = recipes.read(DOCUMENT)
    assert wrong == [] and list(known) == ["thing"], (known, wrong)
    thing = known["thing"]

    def line(copy):
        copy.append("src/api/a.def", "two\n")

    def folder(copy):
        copy.add("src/new/x/x.cc", "")

    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        tree(root)
        assert thing.misfits(touched(root, line, folder)) == []
        assert thing.misfits(touched(root, line, folder, lambda copy: copy.at_end("src/more.cc", "x"))) == []
        for unnamed in (lambda copy: copy.add("src/new.cc", ""), lambda copy: copy.replace("src/other.cc", "twice\ntwice", "once"),
                        lambda copy: copy.add("src/api/deep/b.def", "")):
            found = thing.misfits(touched(root, line, folder, unnamed))
            assert len(found) == 1 and "does not name" in found[0], found
        assert "leaves alone" in thing.misfits(touched(root, line))[0]
        for moved in (lambda copy: copy.replace("src/other.cc", "twice", ""), lambda copy: copy.after("src/other.cc", "twice", ""),
                      lambda copy: copy.append("src/gone.cc", ""), lambda copy: copy.add("src/other.cc", "")):
            try:
                touched(root, moved)
                raise AssertionError("an example that does not fit the source any more is not noticed")
            except Moved:
                pass
        copy = SourceCopy(root)
        copy.at_end("src/more.cc", "new")
        assert copy.text("src/more.cc") == "}  // namespace\nnew\n\n}  // namespace outboard::x\n", copy.text("src/more.cc")
    for old, new in (("Touches 2", "Touches 3"), ("; 1 is printed", ""), ("Touches 2 files by hand", "It touches two")):
        assert recipes.read(DOCUMENT.replace(old, new))[1], new
    print("extending: the self-test bites as it should")
