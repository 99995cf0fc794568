#!/usr/bin/env python3
"""docs/wire.md lists the fields of every hand-written message as src/marshal/cuda/*bodies.hh have them, and behind them
the functions and services whose requests and replies it is, as their lines say; and every service with its messages.
(Bytes are compared by the unit tests, which read the document's examples.) usage: wire_document.py ROOT [--print]"""
import pathlib
import re
import sys

from tables import lines, services

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FIELDS = re.compile(r"OUTBOARD_FIELDS\((.*?)\)", re.DOTALL)
MEMBER = re.compile(r"^ +([\w:]+(?:<[^;]*>)?) ([^;()]*);", re.MULTILINE)
SERVICE = re.compile(r"^  (\w+) = (\d+),", re.MULTILINE)
SIMPLE = {"std::int32_t": "i32", "std::uint32_t": "u32", "std::uint64_t": "u64", "std::int64_t": "i64", "bool": "flag",
          "std::string": "text", "flavour": "u8", "errand": "u8", "std::uint8_t": "u8",
          "std::uint16_t": "u16", "host_block": "u8", "share_token": "32 u8"}

VIEW = re.compile(r"^using (\w+) = (byte|list)_view<(\w+)", re.MULTILINE)


def wire_type(kind, structs, views):
    if kind in SIMPLE:
        return SIMPLE[kind]
    if vector := re.fullmatch(r"std::vector<(.*)>", kind):
        item = wire_type(vector[1], structs, views)
        return "bytes" if item == "u8" else f"list of {item}"
    if kind in views:
        return views[kind]
    if array := re.fullmatch(r"std::array<(.*), (\d+)>", kind):
        return f"{array[2]} {wire_type(array[1], structs, views)}"
    if kind in structs:
        return kind
    raise SystemExit(f"src/marshal/cuda/bodies.hh: {kind} is unknown to {sys.argv[0]}")


def members_of(body):
    """{name: C++ type} of a struct's data members."""
    found = {}
    for kind, names in MEMBER.findall(re.sub(r"//.*", "", body)):
        for name in names.split(","):
            found[re.match(r"\s*(\w+)", name)[1]] = kind
    return found


def users(root):
    """{message: whose request and reply it is}, by the lines of functions and services."""
    found = {}
    for name, words in [*((name, words) for _, name, words in lines(root)), *services(root)]:
        for word in words:
            if use := re.fullmatch(r"(request|reply) (\w+)\??", word):
                found.setdefault(use[2], {}).setdefault(use[1], []).append(name)
    return {message: "; ".join(f"{part} of {', '.join(uses[part])}" for part in ("request", "reply") if part in uses)
            for message, uses in found.items()}


def rows(source, used):
    structs = {name: body for name, body in STRUCT.findall(source)}
    views = {name: "bytes" if kind == "byte" else f"list of {item}" for name, kind, item in VIEW.findall(source)}
    for name, body in structs.items():
        fields = FIELDS.search(body)
        if not fields:
            continue
        described = []
        for field in re.split(r",\s*", fields[1].strip()):
            members, last = members_of(body), field
            while "." in last:  # a field of a member: jit.info_log
                first, last = last.split(".", 1)
                members = members_of(structs[members[first]])
            described.append(f"{field} {wire_type(members[last], structs, views)}")
        yield f"| `{name}` | {', '.join(described)} | {used.get(name, 'of no function')} |"


def main():
    root = pathlib.Path(sys.argv[1])
    source = "\n".join(path.read_text() for path in sorted(
        [*root.glob("src/marshal/*bodies.hh"), *root.glob("src/marshal/cuda/*bodies.hh")], reverse=True))
    wanted = list(rows(source, users(root)))
    numbers = re.search(r"enum class service.*?\};", source, re.DOTALL)[0]
    wanted += [f"| {number} | `{name}` |" for name, number in SERVICE.findall(numbers)]
    if sys.argv[2:] == ["--print"]:
        return print("\n".join(wanted))
    lines = (root / "docs/wire.md").read_text().splitlines()
    missing = [row for row in wanted if not any(line.startswith(row) for line in lines)]
    print(f"{len(wanted)} messages and services, {len(missing)} not in docs/wire.md as the sources have them")
    print(*[f"docs/wire.md: must have a line that begins: {row}" for row in missing], sep="\n")
    sys.exit(1 if missing else 0)


main()
