#!/usr/bin/env python3
"""What ./check makes of failures: a copy of it runs with stand-ins for cmake and ctest, which fail where we say.

usage: check_program.py ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

STANDINS = {
    "scripts/toolkit": "#!/bin/sh\necho /nowhere\n",
    "scripts/sysroot": "#!/bin/sh\nexit 1\n",
    "bin/cmake": """#!/bin/sh
[ "$1" = --build ] || { mkdir -p "build/$2"; exit 0; }
[ "$(basename "$2")" != "$BREAKS" ] || exit 1
echo "built $*" >>"$BUILT"
echo '[1/2] first'; echo '[2/2] second'
""",
    # The first run of a preset fails the tests in $FAIL, a run of one test those in $FAIL_AGAIN.
    "bin/ctest": """#!/bin/bash
directory=$2
mkdir -p "$directory/Testing/Temporary"
while [ $# -gt 0 ]; do [ "$1" = -R ] && only=$2; shift; done
if [ "$only" = "" ] || [[ $only == *'|'* ]]; then
  bad=($FAIL) of=10
  number=0
  for name in "${bad[@]}"; do number=$((number + 1)); echo "$number:$name"; done >"$directory/Testing/Temporary/LastTestsFailed.log"
else
  bad=() of=1
  for name in $FAIL_AGAIN; do [[ $name =~ $only ]] && bad+=("$name"); done
fi
echo "$((100 * (of - ${#bad[@]}) / of))% tests passed, ${#bad[@]} tests failed out of $of"
echo "Total Test time (real) =   1.00 sec"
[ ${#bad[@]} = 0 ]
""",
}
FLAKY = "# a comment\n" + "".join(f"held_up_{n} another process takes the port\n" for n in range(4))


def run_check(root, arguments, **environment):
    """The exit status, all output, and what was built, of ./check with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for name in ("scripts", "bin", "tests"):
            (copy / name).mkdir()
        shutil.copy(root / "check", copy)
        shutil.copy(root / "scripts/lib.sh", copy / "scripts")
        (copy / "tests/flaky.txt").write_text(FLAKY)
        for name, text in STANDINS.items():
            (copy / name).write_text(text)
            (copy / name).chmod(0o755)
        built = copy / "built"
        built.touch()
        ran = subprocess.run([copy / "check", "--no-install", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=60,
                             env={**os.environ, "PATH": f"{copy}/bin:{os.environ['PATH']}", "BUILT": str(built),
                                  "FAIL": "", "FAIL_AGAIN": "", "BREAKS": "", **environment})
        return ran.returncode, ran.stdout, built.read_text()


def expect(what, condition, output):
    if not condition:
        raise SystemExit(f"{what}, but ./check said:\n{output}")


def flaky_list(root):
    for number, line in enumerate((root / "tests/flaky.txt").read_text().splitlines(), 1):
        if line and not line.startswith("#") and len(line.split()) < 4:
            raise SystemExit(f"tests/flaky.txt:{number}: a name and the reason in words are needed")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    flaky_list(root)
    status, said, _ = run_check(root, ["--only", "dev"])
    expect("all tests pass", status == 0 and "check: PASS: dev" in said
           and "100% tests passed, 0 tests failed out of 10" in said, said)
    status, said, _ = run_check(root, ["--only", "dev"], FAIL="other", CI="true")
    expect("a test that is not in the list has one try, in CI too", status == 1 and "check: FAIL: dev" in said
           and "90% tests passed, 1 tests failed out of 10" in said and "second try of" not in said, said)
    status, said, _ = run_check(root, ["--only", "dev"], FAIL="held_up_1")
    expect("a test in the list is reported", status == 0 and "FLAKY: passed at the second try: dev: held_up_1" in said
           and "100% tests passed, 0 tests failed out of 10" in said, said)
    status, said, _ = run_check(root, ["--only", "dev"], FAIL="held_up_1 other")
    expect("the other failure counts", status == 1 and "FLAKY" in said
           and "90% tests passed, 1 tests failed out of 10" in said, said)
    status, said, _ = run_check(root, ["--only", "dev"], FAIL="held_up_1", FAIL_AGAIN="held_up_1")
    expect("a test that fails twice has failed", status == 1 and "FLAKY" not in said, said)
    status, said, _ = run_check(root, ["--only", "dev"], FAIL="held_up_0 held_up_1 held_up_2 held_up_3")
    expect("too many second tries fail", status == 1 and "4 tests needed a second try, more than 3" in said, said)
    status, said, _ = run_check(root, [], BREAKS="dev")
    expect("a preset that does not build is named",
           status == 1 and said.rstrip().endswith("stopped early while building dev, see above"), said)
    status, said, built = run_check(root, ["--only", "tsan"])
    expect("only the lock-free parts are built under TSan, unless --long asks for all", status == 0
           and "tsan --target lanes_test" in built and "check: PASS: tsan" in said, said + built)
    expect("progress is shown", "2 of 2 steps" in said, said)


main()
