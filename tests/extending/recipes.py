"""The recipes of docs/extending.md and the examples of them. A recipe has a block of code whose fence says `files-NAME`,
a line for each file, and above it the numbers: "Touches 2 files by hand; 1 is printed."

  src/api/cuda/<chapter>.def   what is written there
  src/transport/<scheme>/      a folder: what is new in it counts as one place
  docs/coverage.md             printed by ...
  (docs/other.md)              in brackets: not always
"""
import fnmatch
import importlib.util
import re

BLOCK = re.compile(r"^Touches (\d+) (?:file|place)s? by hand(?:; (\d+) (?:is|are) printed)?[.:,][^\n]*\n\n```files-(\w+)\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```files-(\w+)$", re.MULTILINE)


class Recipe:
    def __init__(self, name, lines):
        self.name, self.needed, self.optional, self.printed = name, [], [], []
        for line in lines:
            path, _, comment = line.partition(" ")
            bare = path.strip("()")
            kind = (self.printed if comment.strip().startswith("printed") else
                    self.optional if bare != path else self.needed)
            kind.append(bare)

    def misfits(self, touched):
        """What an example touched that the recipe does not name, and what it names that the example left alone."""
        wrong = []
        for path in sorted(touched):
            if not any(matches(path, name) for name in self.needed + self.optional):
                wrong.append(f"{self.name}: the example touches {path}, which the recipe does not name")
        for name in self.needed:
            if not any(matches(path, name) for path in touched):
                wrong.append(f"{self.name}: the recipe names {name}, which the example leaves alone")
        return wrong


def matches(path, name):
    pattern = re.sub(r"<[^>]*>", "*", name)
    if pattern.endswith("/"):
        return fnmatch.fnmatchcase(path, pattern + "*")
    return fnmatch.fnmatchcase(path, pattern) and path.count("/") == name.count("/")


def read(document):
    """{name: recipe}, and what is wrong with the document itself."""
    known, wrong = {}, []
    for by_hand, printed, name, lines in BLOCK.findall(document):
        recipe = Recipe(name, lines.splitlines())
        said, are = (int(by_hand), int(printed or 0)), (len(recipe.needed), len(recipe.printed))
        if said != are:
            wrong.append(f"docs/extending.md: {name} says {said[0]} by hand and {said[1]} printed, and names {are[0]} and {are[1]}")
        known[name] = recipe
    wrong += [f"docs/extending.md: the block of {name} has no line 'Touches ...' above it"
              for name in FENCE.findall(document) if name not in known]
    return known, wrong


def examples(folder, known):
    """{name: module} in the document's order, which is the order in which they are applied."""
    found = {}
    for name in known:
        path = folder / name / "example.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location(f"example_{name}", path)
            found[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found[name])
    return found


def with_those_below(names, known):
    """The names and the examples that theirs build on, in the order of the document."""
    wanted, todo = set(), list(names)
    while todo:
        name = todo.pop()
        wanted.add(name)
        todo += [below for below in getattr(known[name], "NEEDS", []) if below not in wanted]
    return [name for name in known if name in wanted]
