"""Links of documents: which they have, and which anchors a document offers. Code in it has neither."""
import re
import unicodedata

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def targets(text):
    """What the links of a document point to, as written: path, path#anchor, #anchor or URL."""
    plain = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return re.findall(r"\]\(([^)\s]+)", plain)


def as_mkdocs(words):
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def as_forges(words):
    """GitHub and its relatives: each blank is a hyphen."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())


def anchors(text):
    """Names that a link may have behind #: those that mkdocs and the forges give alike; of equal headings the first."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        if as_mkdocs(words) == as_forges(words):
            found.add(as_mkdocs(words))
    return found


def broken(document, root):
    """Sentences about links of a document to files of the repository that do not lead anywhere."""
    name = document.relative_to(root).as_posix()
    for target in targets(document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = document.parent / path if path else document
        if not other.exists():
            yield f"{name}: link to {path}, which is not there"
        elif anchor and (other.suffix != ".md" or anchor not in anchors(other.read_text())):
            yield f"{name}: link to {target}: no heading there has that anchor, with mkdocs and on the forges alike"
