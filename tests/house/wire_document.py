#!/usr/bin/env python3
"""docs/wire.md lists the fields of every hand-written message as *bodies.hh in src/marshal (and work_record.hh, board_sample.hh) have them, and every
service.
(Bytes are compared by the unit tests, which read the document's examples.)

usage: wire_document.py ROOT [--write] | wire_document.py --self-test
--write: changes the fields of the messages in docs/wire.md that are not as they must be, and adds the rows of those that
are missing, each behind the message that stands before it in the source, with the comment of its struct."""
import pathlib
import re
import sys

STRUCT = re.compile(r"^((?:///[^\n]*\n)*)struct (\w+)(?: : (\w+))? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FIELDS = re.compile(r"(?:OUTBOARD_FIELDS|visit)\((.*?)\)", re.DOTALL)
MEMBER = re.compile(r"^ +([\w:]+(?:<[^;]*>)?) ([^;()]*);", re.MULTILINE)
SERVICE = re.compile(r"^  (\w+) = (\d+),", re.MULTILINE)
SIMPLE = {"std::int32_t": "i32", "std::uint32_t": "u32", "std::uint64_t": "u64", "std::int64_t": "i64", "bool": "flag",
          "std::string": "text", "flavour": "u8", "errand": "u8", "std::uint8_t": "u8",
          "std::uint16_t": "u16", "host_block": "u8", "share_token": "32 u8", "work_kind": "u8", "memory_side": "u8", "sample_kind": "u8"}


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


def fields_of(body, structs):
    """["name type"] of a struct's fields, in their order."""
    described = []
    for field in re.split(r",\s*", FIELDS.search(body)[1].strip()):
        members, last = members_of(body), field
        while "." in last:  # a field of a member: jit.info_log
            first, last = last.split(".", 1)
            members = members_of(structs[members[first]])
        described.append(f"{field} {wire_type(members[last], structs)}")
    return described


def rows(source):
    """(the first two columns, the comment) of each message; what a message begins with, as a base, is none itself."""
    found = STRUCT.findall(source)
    structs = {name: body for _, name, _, body in found}
    bases = {base for _, _, base, _ in found}
    for comment, name, base, body in found:
        if name in bases or not FIELDS.search(body):
            continue
        described = fields_of(structs[base], structs) if base else []
        described += fields_of(body, structs)
        said = re.sub(r"\s*^/// ?", " ", comment, flags=re.MULTILINE).strip().rstrip(".")
        yield f"| `{name}` | {', '.join(described)} |", said


def name_of(row):
    return row.split("|")[1].strip()


def written(document, messages):
    """The document with the rows that the messages must have."""
    lines = document.splitlines()
    at = {name_of(line): n for n, line in reversed([*enumerate(lines)]) if line.startswith("| `")}
    last = None
    for row, said in messages:
        name = name_of(row)
        if name in at:
            if not lines[at[name]].startswith(row):
                lines[at[name]] = f"{row} {lines[at[name]].split('|', 3)[3].strip()}"
        elif last:
            lines.insert(at[last] + 1, f"{row} {said} |")
            at = {other: n + (n > at[last]) for other, n in at.items()} | {name: at[last] + 1}
        last = name if name in at else last
    return "\n".join(lines) + "\n"


def self_test():
    source = ("/// cuFirst: does.\n/// More.\nstruct a_body {\n  bool x = false;\n  OUTBOARD_FIELDS(x)\n};\n"
              "struct b_body {\n  std::uint32_t y = 0, z = 0;\n  OUTBOARD_FIELDS(y, z)\n};\n"
              "/// Its reply.\nstruct c_reply {\n  std::uint64_t v = 0;\n  OUTBOARD_FIELDS(v)\n};\n")
    messages = [*rows(source)]
    assert messages[0] == ("| `a_body` | x flag |", "cuFirst: does. More"), messages[0]
    before = "text\n| `b_body` | y u32 | cuSecond |\n| `a_body` | x flag | cuFirst |\nend\n"
    after = written(before, messages)
    assert after == ("text\n| `b_body` | y u32, z u32 | cuSecond |\n| `c_reply` | v u64 | Its reply |\n"
                     "| `a_body` | x flag | cuFirst |\nend\n"), after
    assert written(after, messages) == after


def main():
    root = pathlib.Path(sys.argv[1])
    bodies = [*root.glob("src/marshal/*bodies.hh"), *root.glob("src/marshal/cuda/*bodies.hh")]
    files = sorted(bodies, reverse=True) + [root / "src/api/cuda" / name for name in ("work_record.hh", "board_sample.hh")]
    source = "\n".join(path.read_text() for path in files)
    messages = list(rows(source))
    document = root / "docs/wire.md"
    if sys.argv[2:] == ["--write"]:
        document.write_text(written(document.read_text(), messages))
    wanted = [row for row, _ in messages]
    services = SERVICE.search(source) and re.search(r"enum class service.*?\};", source, re.DOTALL)[0]
    wanted += [f"| {number} | `{name}` |" for name, number in SERVICE.findall(services)]
    lines = document.read_text().splitlines()
    missing = [row for row in wanted if not any(line.startswith(row) for line in lines)]
    print(f"{len(wanted)} messages, {len(missing)} not in docs/wire.md as the *bodies.hh of src/marshal have them")
    print(*[f"docs/wire.md: must have a line that begins: {row}" for row in missing], sep="\n")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else main()
