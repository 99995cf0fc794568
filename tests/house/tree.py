"""What the house tests look at: the files of the repository, whether or not git is there."""
import contextlib
import pathlib
import subprocess
import tempfile

FOLDERS = ("src", "tests", "fuzz", "bench", "scripts", "cmake", "docs", "packaging", ".ci")
CODE = (".cc", ".hh", ".cu")


def files(root):
    """Tracked and new files (git knows what is ignored); in an unpacked archive everything in our folders."""
    root = pathlib.Path(root)
    try:
        listed = subprocess.run(["git", "-C", root, "-c", f"safe.directory={root.resolve()}", "ls-files", "-z",
                                 "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True).stdout
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).rglob("*")]
        names += [path.name for path in root.iterdir()]
    return sorted(root / name for name in set(names) if (root / name).is_file())


def code(root):
    return [path for path in files(root) if path.suffix in CODE]


@contextlib.contextmanager
def small(texts):
    """A folder with these files (name: text) for a rule that tests itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        yield root
