"""packaging/outboard.toml names every key of the configuration, in its section, and no other.

usage: settings.py ROOT
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
source = (root / "src/base/config_file.cc").read_text()
sections = {"top_keys": ""} | {array: name for name, array in re.findall(r'\{"(\w+)",\s*(\w+_keys)\}', source)}
known = {("transport.NAME", "library")}
for array, section in sections.items():
    rows = re.search(rf"constexpr key {array}\[\]\{{(.*?)\n?\}};", source, re.S).group(1)
    known |= {(section, key) for key in re.findall(r'\{"(\w+)",', rows)}
shown, section = set(), ""
for line in (root / "packaging/outboard.toml").read_text().splitlines():
    if begins := re.match(r"(?:# )?\[([\w.]+)\]", line):
        section = begins.group(1)
    elif key := re.match(r"(?:# )?(\w+) = ", line):
        shown.add((section, key.group(1)))
wrong = [f"{'.'.join(filter(None, k))} is missing in packaging/outboard.toml" for k in sorted(known - shown)]
wrong += [f"packaging/outboard.toml: no such key: {'.'.join(filter(None, k))}" for k in sorted(shown - known)]
print("\n".join(wrong) or f"{len(known)} keys")
sys.exit(1 if wrong else 0)
