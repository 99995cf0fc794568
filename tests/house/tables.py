"""What the house tests read from src/api/cuda/*.def and from the list of services. Not a test."""
import re

LINE = re.compile(r"^(CALL|POST|CUSTOM|LOCAL|REFUSED)\(\s*(\w+)([^()]*)\)", re.MULTILINE)
SERVICE = re.compile(r"^SERVICE\((\w+)([^()]*)\)", re.MULTILINE)


def without_comments(text):
    return re.sub(r"//.*", "", text)


def words_of(text):
    return [word for word in (" ".join(part.split()) for part in text.split(",")) if word]


def lines(root):
    """(kind, function, words) of every line."""
    for table in sorted(root.glob("src/api/cuda/*.def")):
        if table.name != "expand.def":
            for kind, name, rest in LINE.findall(without_comments(table.read_text())):
                yield kind, name, words_of(rest.partition(";")[2])


def services(root):
    """(service, words) of every one."""
    for name, rest in SERVICE.findall(without_comments((root / "src/marshal/cuda/services.def").read_text())):
        yield name, words_of(rest)
