"""Where the copy is laid out, built and tried. Files that are the same as the last time keep their times, so that
only what has changed is compiled again."""
import os
import pathlib
import shutil
import subprocess
import sys

SETTINGS = ("OUTBOARD_", "XDG_CONFIG_HOME", "LD_PRELOAD")
# What a program of the copy prints, and where it belongs.
PRINTED = {
    "docs/coverage.md": ["outboard_coverage"],
    "docs/coverage-nvml.md": ["outboard_coverage", "nvml"],
    "docs/coverage-opencl.md": ["outboard_coverage", "opencl"],
    "docs/settings.md": ["outboard", "settings", "--document"],
    "docs/verbs.md": ["outboard", "help", "--document"],
    "packaging/outboard.toml": ["outboard", "settings", "--example"],
}
# What a program of the copy appends to.
APPENDED = {f"src/api/{api}/opcodes.golden": ["outboard_coverage", "opcodes", api] for api in ("cuda", "nvml", "opencl")}
# What a script of the copy writes the rows of messages into.
WIRE = "docs/wire.md"


class Failed(Exception):
    pass


class Workshop:
    def __init__(self, folder, options):
        self.folder, self.options = folder.resolve(), options
        self.tree = self.folder / "tree"
        self.build, self.headers = self.tree / "build/release", self.tree / "build/headers"

    def lay_out(self, copy):
        """Writes what is not there as the copy has it, and removes what the copy has not."""
        wanted = {path: copy.changed.get(path) for path in copy.paths | set(copy.changed)}
        for path, text in wanted.items():
            to = self.tree / path
            new = (copy.source / path).read_bytes() if text is None else text.encode()
            if not to.exists() or to.read_bytes() != new:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(new)
                if path in copy.paths:
                    shutil.copymode(copy.source / path, to)
        for path in [p for p in self.tree.rglob("*") if p.is_file()]:
            name = path.relative_to(self.tree).as_posix()
            if name not in wanted and not name.startswith("build/"):
                path.unlink()

    def run(self, command, fails=False, **variables):
        """The output of a command of the copy; Failed with its end if it fails, or with `fails` if it does not."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        # The copy has no repository around it, wherever it lies.
        environment.update(variables, XDG_CONFIG_HOME=str(self.folder / "none"), PYTHONDONTWRITEBYTECODE="1",
                           GIT_CEILING_DIRECTORIES=str(self.folder))
        done = subprocess.run([str(word) for word in command], cwd=self.tree, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if (done.returncode != 0) != fails:
            raise Failed(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def configure(self):
        """As the source is built for its tests: what needs none of the examples comes from the compiler's cache."""
        self.run(["cmake", "--preset", "release", "-DOUTBOARD_UNIT_TESTS=OFF",
                  f"-DOUTBOARD_TOOLKIT={self.headers / 'cuda'}", f"-DOUTBOARD_OPENCL_INCLUDE={self.headers / 'opencl'}"])

    def make(self, targets):
        self.run(["cmake", "--build", self.build, "-j", str(self.options.jobs), "--target", *sorted(targets)])

    def print_documents(self):
        """Prints what recipes call printed; the paths of what has changed by it."""
        changed = set()
        for path, command in PRINTED.items():
            text = self.run([self.program(command[0]), *command[1:]])
            if text != (self.tree / path).read_text():
                (self.tree / path).write_text(text)
                changed.add(path)
        for path, command in APPENDED.items():
            before = (self.tree / path).read_text()
            self.run([self.program(command[0]), *command[1:], self.tree / path])
            if (self.tree / path).read_text() != before:
                changed.add(path)
        before = (self.tree / WIRE).read_text()
        self.python("tests/house/wire_document.py", self.tree, "--write")
        return changed | ({WIRE} if (self.tree / WIRE).read_text() != before else set())

    def program(self, name):
        return self.build / "bin" / name

    def house(self, *names):
        """Rules of the repository, on the copy."""
        for name in names:
            self.python(f"tests/house/{name}.py", self.tree)

    def python(self, path, *arguments):
        """A test of the copy's that is a script."""
        self.run([sys.executable, "-B", self.tree / path, *arguments], OUTBOARD_BUILD=str(self.build), OUTBOARD_PRELOAD="")

    def unit_tests(self, program, only):
        output = self.run([self.program(program), f"--gtest_filter={only}", "--gtest_brief=1"])
        if "[  PASSED  ] 0 tests" in output:
            raise Failed(f"{program} has no test {only}")

    def cuda(self, script, device="mock"):
        """Runs a program that uses CUDA, in Python, through the copy's libraries. It finds `cuda`, initialised and
        with a context, and `ok()` for codes. The trace of its calls comes back."""
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        self.run([self.program("outboard"), "run", "--device", device, "--trace", trace, "--", sys.executable, "-c",
                  BEGINNING + script])
        return trace.read_text()


BEGINNING = """
from ctypes import *
cuda = CDLL("libcuda.so.1")
def ok(code):
    assert code == 0, code
ok(cuda.cuInit(0))
context = c_void_p()
ok(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
def address_of(name, version=13000):
    found, answer = c_void_p(), c_int(-1)
    ok(cuda.cuGetProcAddress_v2(name.encode(), byref(found), version, c_uint64(0), byref(answer)))
    return found.value, answer.value
"""
