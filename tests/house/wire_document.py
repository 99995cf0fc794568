#!/usr/bin/env python3
"""docs/wire.md lists the fields of every hand-written message as *bodies.hh in src/marshal (and work_record.hh, board_sample.hh) have them, and
of which functions it is the request or the reply, as their lines have it (CUSTOM in src/api/cuda, services.def); and every service, with
both.
(Bytes are compared by the unit tests, which read the document's examples.)

usage: wire_document.py ROOT [--write] | wire_document.py --self-test
--write: changes what is not as it must be in the rows of messages and services in docs/wire.md, up to their last column, which is
written by hand; and adds the rows of those that are missing, each behind the one that stands before it in the source, a message's with
the comment of its struct."""
import pathlib
import re
import sys

STRUCT = re.compile(r"^((?:///[^\n]*\n)*)struct (\w+)(?: : (\w+))? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FIELDS = re.compile(r"(?:OUTBOARD_FIELDS|visit)\((.*?)\)", re.DOTALL)
MEMBER = re.compile(r"^ +([\w:]+(?:<[^;]*>)?) ([^;()]*);", re.MULTILINE)
CUSTOM = re.compile(r"^CUSTOM\((\w+),\s*([\w<>]+),\s*([\w<>]+),", re.MULTILINE)
SERVICE = re.compile(r"^SERVICE\((\w+), (\d+), ([\w<>]+), ([\w<>]+)\)", re.MULTILINE)
FORM = re.compile(r"(with_bytes|by_hand|perhaps)<(\w+)>")
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


def parts(form):
    """(the struct, what is said of it) of a request's or reply's type; raw_bytes and nothing are no structs."""
    kind, struct = FORM.fullmatch(form).groups() if "<" in form else ("", form)
    return struct, {"with_bytes": " and bytes", "perhaps": " or nothing"}.get(kind, "")


def carriers(lines):
    """{struct: what it is the request and the reply of}, of (name, request, reply) in the order of the tables."""
    found = {}
    for name, request, reply in lines:
        struct, more = parts(request)
        found.setdefault(struct, ([], []))[0].append(name + more)
        struct, more = parts(reply)
        found.setdefault(struct, ([], []))[1].append(name + more)
    told = {}
    for struct, (requests, replies) in found.items():
        told[struct] = "; ".join([", ".join(requests)] * bool(requests) + ["reply of " + ", ".join(replies)] * bool(replies))
    return told


def service_row(name, number, request, reply):
    def column(form):
        struct, more = parts(form)
        return {"nothing": "nothing", "raw_bytes": "bytes"}.get(struct, f"`{struct}`{more}")
    return f"| {number} | `{name}` | {column(request)} | {column(reply)} |"


def tables(root):
    """The text of all chapters, in the order of their numbers."""
    api = root / "src/api/cuda"
    chapters = re.findall(r'#include "api/cuda/(\w+\.def)"', (api / "expand.def").read_text())
    return "\n".join((api / chapter).read_text() for chapter in chapters)


def rows(source, carried):
    """(the first three columns, the comment) of each message; what a message begins with, as a base, is none itself."""
    found = STRUCT.findall(source)
    structs = {name: body for _, name, _, body in found}
    bases = {base for _, _, base, _ in found}
    for comment, name, base, body in found:
        if name in bases or not FIELDS.search(body):
            continue
        described = fields_of(structs[base], structs) if base else []
        described += fields_of(body, structs)
        said = re.sub(r"\s*^/// ?", " ", comment, flags=re.MULTILINE).strip().rstrip(".")
        yield f"| `{name}` | {', '.join(described)} | {carried.get(name, '–')} |", said


def name_of(row):
    return re.match(r"\|(?: \d+ \|)? `(\w+)`", row)[1]


def written(document, wanted):
    """The document with the rows that the messages and services must have."""
    lines = document.splitlines()
    at = {name_of(line): n for n, line in reversed([*enumerate(lines)]) if re.match(r"\|(?: \d+ \|)? `\w+` \|", line)}
    last = None
    for row, said in wanted:
        name = name_of(row)
        if name in at:
            if not lines[at[name]].startswith(row):
                lines[at[name]] = f"{row} {lines[at[name]].split('|', row.count('|'))[-1].strip()}"
        elif last:
            lines.insert(at[last] + 1, f"{row} {said} |")
            at = {other: n + (n > at[last]) for other, n in at.items()} | {name: at[last] + 1}
        last = name if name in at else last
    return "\n".join(lines) + "\n"


def self_test():
    source = ("/// cuFirst: does.\n/// More.\nstruct a_body {\n  bool x = false;\n  OUTBOARD_FIELDS(x)\n};\n"
              "struct b_body {\n  std::uint32_t y = 0, z = 0;\n  OUTBOARD_FIELDS(y, z)\n};\n"
              "/// Its reply.\nstruct c_reply {\n  std::uint64_t v = 0;\n  OUTBOARD_FIELDS(v)\n};\n")
    table = ("CUSTOM(cuFirst, with_bytes<a_body>, nothing, in p; noctx)\nVIA(cuFirst_ptsz, cuFirst, in p)\n"
             "CUSTOM(cuSecond, by_hand<b_body>,\n       perhaps<c_reply>, in p)\n")
    service = SERVICE.findall("// first\nSERVICE(send, 7, raw_bytes, c_reply)\n")[0]
    lines = CUSTOM.findall(table) + [(service[0], *service[2:])]
    messages = [*rows(source, carriers(lines))]
    assert messages[0] == ("| `a_body` | x flag | cuFirst and bytes |", "cuFirst: does. More"), messages[0]
    assert messages[2][0] == "| `c_reply` | v u64 | reply of cuSecond or nothing, send |", messages[2]
    assert service_row(*service) == "| 7 | `send` | bytes | `c_reply` |", service
    before = "text\n| 7 | `send` | old | old | says |\n| `b_body` | y u32 | old | second |\n| `a_body` | x flag | cuOld | first |\nend\n"
    after = written(written(before, messages), [(service_row(*service), "")])
    assert after == ("text\n| 7 | `send` | bytes | `c_reply` | says |\n| `b_body` | y u32, z u32 | cuSecond | second |\n"
                     "| `c_reply` | v u64 | reply of cuSecond or nothing, send | Its reply |\n"
                     "| `a_body` | x flag | cuFirst and bytes | first |\nend\n"), after
    assert written(written(after, messages), [(service_row(*service), "")]) == after


def main():
    root = pathlib.Path(sys.argv[1])
    bodies = [*root.glob("src/marshal/*bodies.hh"), *root.glob("src/marshal/cuda/*bodies.hh")]
    files = sorted(bodies, reverse=True) + [root / "src/api/cuda" / name for name in ("work_record.hh", "board_sample.hh")]
    source = "\n".join(path.read_text() for path in files)
    services = SERVICE.findall((root / "src/marshal/cuda/services.def").read_text())
    lines = CUSTOM.findall(tables(root)) + [(name, request, reply) for name, _, request, reply in services]
    carried = carriers(lines)
    messages = list(rows(source, carried))
    told = [(service_row(*service), "") for service in services]
    told.append((f"| `nothing` | | {carried['nothing'].partition(';')[0]} |", ""))
    told.append((f"| `raw_bytes` | bytes to the end of the frame | {carried['raw_bytes']} |", ""))
    document = root / "docs/wire.md"
    if sys.argv[2:] == ["--write"]:
        document.write_text(written(written(document.read_text(), messages), told))
    wanted = [row for row, _ in messages + told]
    written_lines = document.read_text().splitlines()
    missing = [row for row in wanted if not any(line.startswith(row) for line in written_lines)]
    print(f"{len(wanted)} messages and services, {len(missing)} not in docs/wire.md as the tables and *bodies.hh of src/marshal have them")
    print(*[f"docs/wire.md: must have a line that begins: {row}" for row in missing], sep="\n")
    known = {name_of(row) for row in wanted}
    strange = sorted(struct for struct in carried if struct not in known)
    print(*[f"src/api/cuda: a line names {struct}, which no *bodies.hh has" for struct in strange], sep="\n", end="")
    sys.exit(1 if missing or strange else 0)


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else main()
