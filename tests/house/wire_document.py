#!/usr/bin/env python3
"""docs/wire.md lists the fields of every hand-written message as *bodies.hh in src/marshal (and work_record.hh) have them, and every
service.
(Bytes are compared by the unit tests, which read the document's examples.) usage: wire_document.py ROOT [--print]"""
import pathlib
import re
import sys

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FIELDS = re.compile(r"(?:OUTBOARD_FIELDS|visit)\((.*?)\)", re.DOTALL)
MEMBER = re.compile(r"^ +([\w:]+(?:<[^;]*>)?) ([^;()]*);", re.MULTILINE)
SERVICE = re.compile(r"^  (\w+) = (\d+),", re.MULTILINE)
SIMPLE = {"std::int32_t": "i32", "std::uint32_t": "u32", "std::uint64_t": "u64", "std::int64_t": "i64", "bool": "flag",
          "std::string": "text", "flavour": "u8", "errand": "u8", "std::uint8_t": "u8",
          "std::uint16_t": "u16", "host_block": "u8", "share_token": "32 u8", "work_kind": "u8", "memory_side": "u8"}


def wire_type(kind, structs):
    if kind in SIMPLE:
        return SIMPLE[kind]
    if vector := re.fullmatch(r"std::vector<(.*)>", kind):
        item = wire_type(vector[1], structs)
        return "bytes" if item == "u8" else f"list of {item}"
    if array := re.fullmatch(r"std::array<(.*), (\d+)>", kind):
        return f"{array[2]} {wire_type(array[1], structs)}"
    if kind.removeprefix("api::") in structs:
        return kind.removeprefix("api::")
    raise SystemExit(f"src/marshal/cuda/bodies.hh: {kind} is unknown to {sys.argv[0]}")


def members_of(body):
    """{name: C++ type} of a struct's data members."""
    found = {}
    for kind, names in MEMBER.findall(re.sub(r"//.*", "", body)):
        for name in names.split(","):
            found[re.match(r"\s*(\w+)", name)[1]] = kind
    return found


def rows(source):
    structs = {name: body for name, body in STRUCT.findall(source)}
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
            described.append(f"{field} {wire_type(members[last], structs)}")
        yield f"| `{name}` | {', '.join(described)} |"


def main():
    root = pathlib.Path(sys.argv[1])
    bodies = [*root.glob("src/marshal/*bodies.hh"), *root.glob("src/marshal/cuda/*bodies.hh")]
    files = sorted(bodies, reverse=True) + [root / "src/api/cuda/work_record.hh"]
    source = "\n".join(path.read_text() for path in files)
    wanted = list(rows(source))
    services = SERVICE.search(source) and re.search(r"enum class service.*?\};", source, re.DOTALL)[0]
    wanted += [f"| {number} | `{name}` |" for name, number in SERVICE.findall(services)]
    if sys.argv[2:] == ["--print"]:
        return print("\n".join(wanted))
    lines = (root / "docs/wire.md").read_text().splitlines()
    missing = [row for row in wanted if not any(line.startswith(row) for line in lines)]
    print(f"{len(wanted)} messages, {len(missing)} not in docs/wire.md as the *bodies.hh of src/marshal have them")
    print(*[f"docs/wire.md: must have a line that begins: {row}" for row in missing], sep="\n")
    sys.exit(1 if missing else 0)


main()
