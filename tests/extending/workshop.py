"""Where the copy is laid out, built and tried. Files that are the same as the last time keep their times, so that
only what has changed is compiled again."""
import os
import pathlib
import shutil
import subprocess

SETTINGS = ("OUTBOARD_", "XDG_CONFIG_HOME", "LD_PRELOAD")


class Failed(Exception):
    pass


class Workshop:
    def __init__(self, folder, options):
        self.folder, self.options = folder.resolve(), options
        self.tree, self.build = self.folder / "tree", self.folder / "build"

    def lay_out(self, copy):
        wanted = {path: copy.changed.get(path) for path in copy.paths | set(copy.changed)}
        for path, text in wanted.items():
            to = self.tree / path
            new = (copy.source / path).read_bytes() if text is None else text.encode()
            if not to.exists() or to.read_bytes() != new:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(new)
                shutil.copymode(copy.source / path, to) if (copy.source / path).exists() else None
        for path in [p for p in self.tree.rglob("*") if p.is_file()]:
            if path.relative_to(self.tree).as_posix() not in wanted:
                path.unlink()

    def run(self, command, fails=False, **variables):
        """The output of a command of the copy; Failed with its end if it fails, or with `fails` if it does not."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        environment.update(variables, XDG_CONFIG_HOME=str(self.folder / "none"), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([str(word) for word in command], cwd=self.tree, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if (done.returncode != 0) != fails:
            raise Failed(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def configure(self):
        """Quick to compile, since it runs for seconds only."""
        self.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={self.options.compiler}",
                  "-DCMAKE_CXX_FLAGS=-O0", "-DOUTBOARD_UNIT_TESTS=OFF", f"-DOUTBOARD_TOOLKIT={self.folder / 'toolkit'}",
                  f"-DOUTBOARD_OPENCL_INCLUDE={self.folder / 'opencl'}"])

    def make(self, targets):
        self.run(["cmake", "--build", self.build, "--target", *sorted(targets)])

    def print_documents(self):
        """Prints what recipes call printed; the paths of what has changed by it."""
        def documents():
            return {path.relative_to(self.tree).as_posix(): path.read_text()
                    for path in [*self.tree.glob("docs/*.md"), self.tree / "packaging/outboard.toml"]}
        before = documents()
        self.run([self.program("outboard_coverage"), "docs"])
        for flag, path in (("--document", "docs/settings.md"), ("--example", "packaging/outboard.toml")):
            (self.tree / path).write_text(self.run([self.program("outboard"), "settings", flag]))
        after = documents()
        return {path for path in after if after[path] != before[path]}

    def program(self, name):
        return self.build / "bin" / name

    def house(self, *names):
        """Rules of the repository, on the copy."""
        for name in names:
            self.run(["python3", "-B", self.tree / f"tests/house/{name}.py", self.tree])

    def python_test(self, path):
        """A test of the command, with the copy's."""
        self.run(["python3", "-B", self.tree / path], OUTBOARD_BUILD=str(self.build), OUTBOARD_PRELOAD="")

    def unit_tests(self, program, only):
        output = self.run([self.program(program), f"--gtest_filter={only}", "--gtest_brief=1"])
        if "[  PASSED  ] 0 tests" in output:
            raise Failed(f"{program} has no test {only}")

    def cuda(self, script, device="mock"):
        """Runs a program that uses CUDA, in Python, through the copy's libraries. It finds `cuda`, initialised and
        with a context, and `ok()` for codes. The trace of its calls comes back."""
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        self.run([self.program("outboard"), "run", "--device", device, "--trace", trace, "--", "python3", "-c", BEGINNING + script])
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
def address_of(name, version=13010):
    found, answer = c_void_p(), c_int(-1)
    ok(cuda.cuGetProcAddress_v2(name.encode(), byref(found), version, c_uint64(0), byref(answer)))
    return found.value, answer.value
"""
