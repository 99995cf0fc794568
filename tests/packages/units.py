#!/usr/bin/env python3
"""The systemd units of packaging/systemd: systemd-analyze takes them without a word, no setting of a list of one is given twice,
and what hardens the service is there.

usage: units.py ROOT SYSTEMD_ANALYZE, or units.py --self-test SYSTEMD_ANALYZE"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# Each line adds to those before it.
LISTS = {"After", "Wants", "SystemCallFilter", "Environment", "ExecStartPre", "LoadCredential", "SetCredential"}
HARDENED = ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "ProtectProc=invisible", "LimitCORE=0",
            "CapabilityBoundingSet=", "RestrictNamespaces=yes", "StateDirectoryMode=0700", "CacheDirectoryMode=0700")


SOCKET = "[Socket]\nListenStream=/run/outboard/outboard.sock\n"


def said_by_systemd(analyze, text, socket_text):
    """About the service, with a program in its place that every machine has."""
    for variable, value in (("@OUTBOARD_BIN@/outboard", "/bin/true"), ("@OUTBOARD_DOC@", "/usr/share/doc")):
        text = text.replace(variable, value)
    with tempfile.TemporaryDirectory() as folder:
        socket = pathlib.Path(folder, "outboard.socket")
        socket.write_text(socket_text)
        service = pathlib.Path(folder, "outboard.service")
        service.write_text(text)
        done = subprocess.run([analyze, "verify", service, socket], capture_output=True, text=True, timeout=60)
        yield from (f"systemd-analyze: {line}" for line in (done.stdout + done.stderr).splitlines())
        if done.returncode != 0:
            yield f"systemd-analyze gave {done.returncode}"


def problems(analyze, text, socket_text=SOCKET):
    settings = re.findall(r"(?m)^(\w+)=", text)
    for name, count in collections.Counter(settings).items():
        if count > 1 and name not in LISTS:
            yield f"{name} is given {count} times"
    yield from (f"there is no {line}" for line in HARDENED if line not in text.splitlines())
    yield from said_by_systemd(analyze, text, socket_text)


def self_test(analyze):
    good = "[Service]\nExecStart=@OUTBOARD_BIN@/outboard serve\n" + "\n".join(HARDENED) + "\n"
    assert not list(problems(analyze, good)), list(problems(analyze, good))
    for change, part in (("StateDirectoryMode=0700\n", "2 times"), ("NoSuchSetting=1\n", "NoSuchSetting"),
                         ("LimitNPROC=many\n", "many")):
        found = list(problems(analyze, good + change))
        assert found and part in found[0], (change, found)
    assert any("LimitCORE" in said for said in problems(analyze, good.replace("LimitCORE=0\n", "")))
    print("units: each rule bites")


def main():
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2])
    units = pathlib.Path(sys.argv[1], "packaging/systemd")
    found = list(problems(sys.argv[2], (units / "outboard.service.in").read_text(), (units / "outboard.socket").read_text()))
    print("\n".join(found) or "units: systemd takes them")
    return sys.exit(1 if found else 0)


main()
