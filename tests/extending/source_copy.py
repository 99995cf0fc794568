"""A copy of the source in memory, to which examples are applied: text is put behind, before or in the place of text
that is there, never at a line's number, so that the examples survive changes of the source."""
import contextlib

import tree


class Moved(Exception):
    """What an example leans on is not there, or not once."""


class SourceCopy:
    def __init__(self, source):
        self.source = source.resolve()
        self.paths = {path.relative_to(source).as_posix() for path in tree.files(source)}
        self.changed, self._touched = {}, None

    @contextlib.contextmanager
    def touching(self):
        """Collects the paths that are changed or added inside."""
        self._touched = set()
        yield self._touched
        self._touched = None

    def text(self, path):
        if path not in self.changed and path not in self.paths:
            raise Moved(f"{path} is not there")
        return self.changed.get(path) or (self.source / path).read_text()

    def _write(self, path, text):
        self.changed[path] = text
        if self._touched is not None:
            self._touched.add(path)

    def add(self, path, text):
        if path in self.paths or path in self.changed:
            raise Moved(f"{path} is there already")
        self._write(path, text)

    def append(self, path, text):
        self._write(path, self.text(path).rstrip("\n") + "\n" + text)

    def replace(self, path, old, new):
        text = self.text(path)
        if text.count(old) != 1:
            raise Moved(f"{path} has {text.count(old)} times: {old}")
        self._write(path, text.replace(old, new))

    def after(self, path, anchor, text):
        """Behind the one line that has the anchor."""
        self.replace(path, self._line(path, anchor), self._line(path, anchor) + text)

    def before(self, path, anchor, text):
        self.replace(path, self._line(path, anchor), text + self._line(path, anchor))

    def _line(self, path, anchor):
        found = [line for line in self.text(path).splitlines(keepends=True) if anchor in line]
        if len(found) != 1:
            raise Moved(f"{path} has {len(found)} lines with: {anchor}")
        return found[0]

    def at_end(self, path, text):
        """At the end of the namespace that a file of C++ is in."""
        whole = self.text(path)
        at = whole.rindex("}  // namespace outboard")
        self._write(path, whole[:at] + text.strip("\n") + "\n\n" + whole[at:])
