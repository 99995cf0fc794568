"""outboard-tls.so exports one function, so no program meets the OpenSSL inside; it needs libc alone, and no C library newer
than the floor of the front-end libraries.
usage: tls_exports_test.py LIBRARY plain|sanitized"""
import re
import subprocess
import sys

FLOOR = (2, 31)
library, plain = sys.argv[1], sys.argv[2] == "plain"


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    wrong = []
    exported = {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", library)}
    if plain and exported != {"outboard_tls_library"}:
        wrong.append(f"exports {sorted(exported)}")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", "\n".join(lines("readelf", "-d", library))))
    if plain and (more := {n for n in needed if not re.match(r"(libc|ld-linux-.*|libm|libpthread|libdl)\.so\.\d+$", n)}):
        wrong.append(f"needs {sorted(more)}")
    asked = re.findall(r"\(GLIBC_([\d.]+)\)\s+(\S+)", "\n".join(lines("objdump", "-T", library)))
    newer = sorted(f"{name} of {version}" for version, name in asked if tuple(map(int, version.split("."))) > FLOOR)
    if plain and (newer or not asked):
        wrong.append(f"asks for more than glibc {'.'.join(map(str, FLOOR))}: {newer}")
    print("\n".join(wrong) or f"{sorted(exported)}, needs {sorted(needed)}")
    return bool(wrong)


sys.exit(main())
