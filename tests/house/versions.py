"""The version is the project's, in CMakeLists.txt; debian/changelog names the same.

usage: versions.py ROOT
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
project = re.search(r"project\(outboard VERSION (\S+)", (root / "CMakeLists.txt").read_text()).group(1)
packages = re.match(r"outboard \((\S+)\)", (root / "debian/changelog").read_text()).group(1)
print(f"project {project}, packages {packages}")
sys.exit(0 if packages == project else 1)
