"""Rows of name, value and unit with tabs between, as benchmarks print them. Used by compare and versions."""
import subprocess

import measuring


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            try:
                rows[fields[0]] = (float(fields[1]), fields[2])
            except ValueError:
                pass
    return rows


def higher_is_better(unit):
    """Whether the unit is a rate; all other units are times (also us/launch)."""
    return unit.endswith("/s")


def advantage(unit, ours, theirs):
    """How many times as good as native Outboard is; above 1 it is better."""
    if ours is None or theirs is None or not ours or not theirs:
        return None
    return ours / theirs if higher_is_better(unit) else theirs / ours


def run_rows(how, limit=600):
    """(rows, None), or (the rows so far, the reason why the program ended)."""
    command, environment = how
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    rows = rows_of(done.stdout)
    if not rows:
        raise measuring.Failed(f"{' '.join(map(str, command))} printed no rows of name, value and unit, and ended with "
                               f"{done.returncode}: {done.stderr.strip()[-600:]}")
    return rows, f"ended with {done.returncode}: {done.stderr.strip()[-300:]}" if done.returncode else None
