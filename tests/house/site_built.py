#!/usr/bin/env python3
"""The site as mkdocs makes it: without a warning; each link and anchor of the pages leads to something; no page loads
anything from another machine, or shows a fence or a table as it was written because mkdocs reads it otherwise than forges.

usage: site_built.py ROOT MKDOCS"""
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

LOADS = {"script": "src", "img": "src", "link": "href"}  # the browser fetches these by itself


class Page(html.parser.HTMLParser):
    """The anchors of a page, its links, what the browser loads for it, and lines of it that are no text."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads, self.unread = set(), [], [], []
        self.depth = 0  # of <pre> and <code>
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get(LOADS.get(tag)):
            self.loads.append(values[LOADS[tag]])
        self.depth += tag in ("pre", "code")

    def handle_endtag(self, tag):
        self.depth -= tag in ("pre", "code")

    def handle_data(self, data):
        if self.depth == 0:
            self.unread += re.findall(r"^\s*((?:```|\|[ -]).*)", data, re.MULTILINE)


def problems(site):
    # 404.html is served at any address, so its links begin at the root of a server.
    pages = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        yield from (f"{name}: mkdocs does not understand: {line}" for line in page.unread)
        for link in page.links + page.loads:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                if link in page.loads:
                    yield f"{name} loads {link}, from another machine"
                continue
            other = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if not other.is_file():
                yield f"{name}: link to {link}, which is not there"
            elif url.fragment and other in pages and urllib.parse.unquote(url.fragment) not in pages[other].anchors:
                yield f"{name}: link to {link}: no such anchor"


def main():
    root, mkdocs = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([mkdocs, "build", "--strict", "--config-file", root / "mkdocs.yml", "--site-dir", folder],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mkdocs build --strict gave {done.returncode}:\n{done.stdout}{done.stderr}")
        site = pathlib.Path(folder).resolve()
        found = list(problems(site))
        print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, no warning, no dead link")
    sys.exit(1 if found else 0)


main()
