"""A front-end library exports the vendor's names and our marker, nothing else; needs libc alone; brings its C++ run time
(libcuda.so.1: compressors, too) along, hidden; asks for no newer C library than the floor; has the SONAME that programs
look for. libcupti's names have its version, or that of the library beside it. Of NVML a LATER line has no symbol: programs look a function up and do without.
usage: exports_test.py LIBRARY TABLES plain|sanitized SONAME LEAST_FUNCTIONS"""
import pathlib
import re
import subprocess
import sys

FLOOR = (2, 31)
library, tables, plain = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "plain"
soname, least = sys.argv[4], int(sys.argv[5])
KINDS = "CALL|POST|CUSTOM|VIA|LOCAL|OURS|OURS_BY_VERSION|REFUSED|NEWER|INJECTED" + ("|LATER" if soname == "libcuda.so.1" else "")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def number(version):
    return tuple(int(part) for part in version.split("."))


def main():
    described = set()
    for table in tables.glob("*.def"):
        if table.name not in ("expand.def", "proc_versions.def", "structs.def", "prototypes.def"):
            described |= set(re.findall(rf"^(?:{KINDS})\((\w+)", table.read_text(), re.M))
    exported = {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", library)}
    wrong = []
    if len(described) < least:
        wrong.append(f"only {len(described)} functions found in {tables}")
    if soname.startswith("libcupti"):  # programs are linked with names of these versions, which are symbols themselves
        own = {soname, "libcheckpoint.so"}
        exported -= own
        versions = {line.split()[-1].rpartition("@")[2] for line in lines("nm", "-D", "--defined-only", library) if "@" in line}
        if versions != own:
            wrong.append(f"its names are of {sorted(versions)}")
    if missing := described - exported:
        wrong.append(f"not exported: {sorted(missing)}")
    if plain and (more := exported - described - {"outboard_frontend_marker"}):
        wrong.append(f"exported beyond the vendor's names: {sorted(more)}")
    dynamic = "\n".join(lines("readelf", "-d", library))
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    if plain and (more := {n for n in needed if not re.match(r"(libc|ld-linux-.*|libm|libpthread|libdl)\.so\.\d+$", n)}):
        wrong.append(f"needs {sorted(more)}")
    asked = re.findall(r"\(GLIBC_([\d.]+)\)\s+(\S+)", "\n".join(lines("objdump", "-T", library)))
    newer = sorted(f"{name} of {version}" for version, name in asked if number(version) > FLOOR)
    if plain and (newer or not asked):
        wrong.append(f"asks for more than glibc {'.'.join(map(str, FLOOR))}: {newer}")
    if "SONAME" not in dynamic or f"[{soname}]" not in dynamic:
        wrong.append(f"the SONAME is not {soname}")
    print("\n".join(wrong) or f"{len(exported)} symbols, needs {sorted(needed)}")
    return bool(wrong)


sys.exit(main())
