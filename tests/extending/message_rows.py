"""Puts the rows of messages into docs/wire.md, as a developer does with what wire_document.py prints."""
import re


def add_to(copy):
    """The rows of the example's messages, instead of those that are there."""
    bodies = [path for path in sorted(copy.paths) if re.fullmatch(r"src/marshal/(cuda/)?\w*bodies\.hh", path)]
    text = "\n".join(map(copy.text, bodies))
    rows = ""
    for name, fields in re.findall(r"^struct (example_\w+) \{\n.*?OUTBOARD_FIELDS\((.*?)\)", text, re.MULTILINE | re.DOTALL):
        use = "request" if name.endswith("body") else "reply"
        described = ", ".join(f"{field} u32" for field in re.split(r",\s*", fields))
        rows += f"| `{name}` | {described} | {use} of cuExampleCustom |\n"
    for old in re.findall(r"^\| `example_\w+` \|.*\n", copy.text("docs/wire.md"), re.MULTILINE):
        copy.replace("docs/wire.md", old, "")
    copy.after("docs/wire.md", "| `peer_body` |", rows)
